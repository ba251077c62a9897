"""3DPW: from the official sequence files to the JSON files that data/PW3D reads.

    python tool/3DPW/convert.py /path/to/3DPW

reads /path/to/3DPW/sequenceFiles/{train,validation,test}/*.pkl and writes
data/PW3D/data/3DPW_{train,validation,test}.json.
Put (or link) the official imageFiles/ beside them, in data/PW3D/data/. The gendered SMPL models are needed.

Every frame whose camera pose is valid gives one annotation per visible person. The fits of the release live in world
space; here the camera pose is merged into the root rotation and the translation, so that the gendered body of
`smpl_param` stands in camera space (metres). `joint_cam` holds the joints regressed from that body's surface.

The people, their boxes and their numbers are this program's choice (data/README.md, "Testing"): RootNet's published
file belongs to the published lists and not to these.
"""
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[2] / 'main' / 'init_path.py'))

from common.arguments import Parser, show_help
from common.errors import UserError, run_main
from tool.convert.parser import add_max_damaged, make_parser

SPLITS = ('train', 'validation', 'test')


def own_parser() -> Parser:
    """The parser of the command line."""
    raw = 'folder with sequenceFiles/ (and imageFiles/, for the image sizes)'
    parser = make_parser(__doc__, 'PW3D', raw, SPLITS, 'the gendered SMPL files')
    add_max_damaged(parser)
    return parser


if __name__ == '__main__':
    show_help(own_parser)  # before PyTorch is imported, which takes seconds

from common.files.listing import visible_files
from common.human_model import HumanModel, get_human_model
from common.utils.transforms import Camera, cam2pixel
from data.checks.limits import camera_fault
from data.records import LARGEST_SIDE
from tool.convert.damaged import Damaged, DamagedItem
from tool.convert.fits import move_fits, run_body, tight_box
from tool.convert.images import first_image_size
from tool.convert.sequence_3dpw import GENDERS, body_shape, read_sequence, visible_frames
from tool.files.write import numbers, write_json

BATCH = 64  # bodies at a time


def image_size(sequence: dict[str, Any], image_dir: Path) -> tuple[int, int]:
    """(width, height) of the frames: of the first image that can be read, else twice the principal point (its centre).

    DamagedItem: there are images, and none can be read; or the camera is impossible.
    """
    intrinsics = np.asarray(sequence['cam_intrinsics'], np.float64)
    size = first_image_size(visible_files(image_dir / sequence['sequence'], 'image_*'))
    if size is None:
        sides = np.round(2 * intrinsics[:2, 2])
        if not ((sides > 0) & (sides <= LARGEST_SIDE)).all():
            raise DamagedItem(f'{sequence["sequence"]}: its camera has an impossible centre, {intrinsics[:2, 2]}')
        size = int(sides[0]), int(sides[1])
    fault = camera_fault(Camera(intrinsics[[0, 1], [0, 1]], intrinsics[:2, 2]), size[::-1])
    if fault:
        raise DamagedItem(f'{sequence["sequence"]}: {fault}')
    return size


def camera_fits(sequence: dict[str, Any], person: int, frames: np.ndarray,
                body: HumanModel) -> Iterator[tuple]:
    """Move the bodies of a person into camera space.

    Yields:
        For each frame of `frames`: its index, pose (72,), shape (10,), trans (3,), vertices (V, 3) and joints (J, 3),
        metres.
    """
    shape = body_shape(sequence, person)
    rest_joints = run_body(body, np.zeros((1, 72)), shape[None])[1].double().numpy()
    for start in range(0, len(frames), BATCH):
        index = frames[start:start + BATCH]
        count = len(index)
        cameras = np.asarray(sequence['cam_poses'], np.float64)[index]
        pose, trans = move_fits(
            sequence['poses'][person][index], sequence['trans'][person][index],
            np.tile(rest_joints[0, 0], (count, 1)), cameras[:, :3, :3], cameras[:, :3, 3])
        vertices, _ = run_body(body, pose, np.tile(shape, (count, 1)), trans)
        joints = (body.get_buffer('joint_regressor') @ vertices).numpy()
        for row, frame in enumerate(index):
            yield int(frame), pose[row], shape, trans[row], vertices[row].numpy(), joints[row]


def convert_sequence(sequence: dict[str, Any], bodies: dict[str, HumanModel], size: tuple[int, int],
                     first_image: int, first_annotation: int) -> tuple[list[dict], list[dict]]:
    """Images and annotations of one sequence.

    Args:
        sequence: What `read_sequence` returned.
        bodies: gender -> body model.
        size: (width, height) of the images, pixels.
        first_image: Id of the first image; the others count up from it.
        first_annotation: The same for the annotations.
    """
    intrinsics = np.asarray(sequence['cam_intrinsics'], np.float64)
    focal = intrinsics[[0, 1], [0, 1]]
    princpt = intrinsics[:2, 2]
    people: dict[int, list[dict]] = {}
    for person, letter in enumerate(sequence['genders']):
        gender = GENDERS[letter]
        frames = visible_frames(sequence, person)
        fits = camera_fits(sequence, person, frames, bodies[gender])
        for frame, pose, shape, trans, vertices, joints in fits:
            if vertices[:, 2].min() <= 0:  # partly behind the camera
                continue
            box = tight_box(cam2pixel(vertices, focal, princpt), *size)
            if box is None:
                continue
            fit = dict(pose=numbers(pose), shape=numbers(shape), trans=numbers(trans), gender=gender)
            people.setdefault(frame, []).append(dict(
                person_id=person, bbox=numbers(box, 3), smpl_param=fit, joint_cam=numbers(joints, 5)))
    images: list[dict] = []
    annotations: list[dict] = []
    camera = dict(focal=numbers(focal), princpt=numbers(princpt))
    for frame in sorted(people):
        image_id = first_image + len(images)
        images.append(dict(
            id=image_id, file_name=f'image_{frame:05d}.jpg', sequence=sequence['sequence'],
            frame_idx=frame, width=size[0], height=size[1], cam_param=camera))
        for annotation in people[frame]:
            number = first_annotation + len(annotations)
            annotations.append(dict(id=number, image_id=image_id, **annotation))
    return images, annotations


def convert_split(split: str, raw: Path, model_dir: Path, first_annotation: int,
                  max_damaged: float) -> dict[str, list[dict]]:
    """The content of a split's JSON file.

    Args:
        split: Its name.
        raw: The official folder.
        model_dir: Folder with the gendered SMPL files.
        first_annotation: Id of the first annotation; ids are unique over all splits.
        max_damaged: Share of the sequences that may be damaged and are left out.
    """
    images: list[dict] = []
    annotations: list[dict] = []
    paths = sequence_files(raw, split)
    damaged = Damaged(len(paths), 'sequences', max_damaged)
    for path in tqdm(paths, desc=split, unit='sequence'):
        try:
            sequence = read_sequence(path)
            size = image_size(sequence, raw / 'imageFiles')
        except DamagedItem as error:
            damaged.add(error)
            continue
        genders = {GENDERS[letter] for letter in sequence['genders']}
        bodies = {gender: get_human_model('smpl', model_dir, gender) for gender in genders}
        new_images, new_annotations = convert_sequence(sequence, bodies, size, len(images),
                                                       first_annotation + len(annotations))
        images += new_images
        annotations += new_annotations
    damaged.report()
    return dict(images=images, annotations=annotations)


def sequence_files(raw: Path, split: str) -> list[Path]:
    """The sequence files of a split, sorted. UserError: there are none."""
    folder = raw / 'sequenceFiles' / split
    found = visible_files(folder, '*.pkl')
    if not found:
        raise UserError(f'no sequence files in {folder}: give the folder in which sequenceFiles.zip of 3DPW was '
                        'unpacked, or leave the split out with --split')
    return found


def main(argv: list[str] | None = None) -> None:
    """Run the command line `argv` (default: the process's own)."""
    args = own_parser().parse_args(argv)
    for split in args.split:
        sequence_files(args.raw, split)  # fail before the work starts
    annotation_num = 0
    for split in args.split:
        content = convert_split(split, args.raw, args.human_model_dir, annotation_num, args.max_damaged)
        annotation_num += len(content['annotations'])
        out = args.out / f'3DPW_{split}.json'
        write_json(out, content)
        print(f'{out}: {len(content["annotations"])} people in {len(content["images"])} images')


if __name__ == '__main__':
    run_main(main)
