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
# ruff: noqa: E402
import mmap
import sys
from pathlib import Path

import cv2
import numpy as np
import torch
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from common.arguments import Parser
from common.errors import UserError, run_main
from common.files.records import Record, to_array
from common.files.safe_pickle import SafeUnpickler
from common.human_model import get_human_model
from common.utils.transforms import cam2pixel
from tool.conversion import move_fits, numbers, tight_box, write_json

SPLITS = ('train', 'validation', 'test')
GENDERS = {'m': 'male', 'f': 'female', 'male': 'male', 'female': 'female', 'n': 'neutral', 'neutral': 'neutral'}
FIELDS = ('poses', 'trans', 'betas', 'genders', 'cam_poses', 'cam_intrinsics', 'campose_valid')
BATCH = 64  # bodies at a time


def plain(value):
    """A value of a sequence file, or the values of a list, with its arrays as NumPy arrays."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return to_array(value) if isinstance(value, Record) else value


def read_sequence(path):
    """The fields used here of one official sequence file, checked; nothing that the pickle asks for is run.

    Keys: FIELDS and `sequence`, `poses2d` (None where the file has none). Lists have one entry per person.
    """
    try:
        with open(path, 'rb') as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            stored = SafeUnpickler(content).load()
        sequence = {field: plain(stored[field]) for field in FIELDS}
        sequence['poses2d'] = plain(stored.get('poses2d'))
    except KeyError as error:
        raise UserError(f'{path} is not a 3DPW sequence: it lacks {error}') from error
    except Exception as error:  # a damaged or forged file can fail in any way
        raise UserError(f'{path} is broken ({error}): unpack sequenceFiles.zip of 3DPW again') from error
    sequence['sequence'] = str(stored.get('sequence', Path(path).stem))
    frames = len(sequence['cam_poses'])
    for person, gender in enumerate(sequence['genders']):
        if gender not in GENDERS:
            raise UserError(f'{path}: person {person} has the gender "{gender}", known are m and f')
        for field, shape in (('poses', (frames, 72)), ('trans', (frames, 3)), ('campose_valid', (frames,))):
            if np.shape(sequence[field][person]) != shape:
                raise UserError(f'{path}: {field} of person {person} has the shape '
                                f'{np.shape(sequence[field][person])}, not {shape}')
    return sequence


def visible_frames(sequence, person):
    """Indices of the frames in which the camera pose is valid and the person was seen (one 2-D keypoint or more).

    Frames with values that are not finite are left out. A sequence whose 2-D keypoints are all zero or absent says
    nothing about who is visible: then all frames count.
    """
    valid = np.asarray(sequence['campose_valid'][person]).astype(bool)
    for values in (sequence['cam_poses'], sequence['poses'][person], sequence['trans'][person]):
        valid &= np.isfinite(values).reshape(len(valid), -1).all(1)
    poses2d = sequence['poses2d']
    if poses2d is not None and any(np.any(points) for points in poses2d):
        points = np.asarray(poses2d[person])  # (frames, 3, 18): x, y, confidence
        confidence = points[:, 2] if points.shape[1] == 3 else points[:, :, 2]
        valid &= (confidence > 0).any(1)
    return np.flatnonzero(valid)


def image_size(sequence, image_dir):
    """(width, height) of a sequence's frames: of its first picture, else twice the principal point (its centre)."""
    for path in sorted((image_dir / sequence['sequence']).glob('image_*'))[:1]:
        picture = cv2.imread(str(path))
        if picture is None:
            raise UserError(f'{path} cannot be read as an image: download imageFiles.zip again')
        return picture.shape[1], picture.shape[0]
    width, height = np.round(2 * np.asarray(sequence['cam_intrinsics'], np.float64)[:2, 2])
    return int(width), int(height)


@torch.no_grad()
def camera_fits(sequence, person, frames, body):
    """Yield, per batch of frames: their indices, pose (n, 72), shape (10,), trans (n, 3), vertices and joints in
    camera space, metres."""
    shape = np.asarray(sequence['betas'][person], np.float64).reshape(-1)[:10]  # some files hold 300
    betas = torch.tensor(shape, dtype=torch.float32)[None]
    pelvis = body(torch.zeros(1, 72), betas, None)[1][0, 0].double().numpy()
    cameras = np.asarray(sequence['cam_poses'], np.float64)
    for start in range(0, len(frames), BATCH):
        index = frames[start:start + BATCH]
        pose, trans = move_fits(sequence['poses'][person][index], sequence['trans'][person][index],
                                np.tile(pelvis, (len(index), 1)), cameras[index, :3, :3], cameras[index, :3, 3])
        vertices, _ = body(torch.tensor(pose, dtype=torch.float32), betas.expand(len(index), -1),
                           torch.tensor(trans, dtype=torch.float32))
        joints = body.joint_regressor @ vertices
        yield index, pose, shape, trans, vertices.numpy(), joints.numpy()


def convert_sequence(sequence, bodies, size, first_image, first_annotation):
    """Images and annotations (lists of dictionaries, ids counting up from the given ones) of one sequence.

    bodies: gender -> HumanModel. size: (width, height) pixels.
    """
    intrinsics = np.asarray(sequence['cam_intrinsics'], np.float64)
    focal, princpt = intrinsics[[0, 1], [0, 1]], intrinsics[:2, 2]
    people = {}
    for person, gender in enumerate(GENDERS[gender] for gender in sequence['genders']):
        frames = visible_frames(sequence, person)
        for index, pose, shape, trans, vertices, joints in camera_fits(sequence, person, frames, bodies[gender]):
            for row, frame in enumerate(index):
                if vertices[row, :, 2].min() <= 0:  # partly behind the camera
                    continue
                box = tight_box(cam2pixel(vertices[row], focal, princpt), *size)
                if box is not None:
                    fit = dict(pose=numbers(pose[row]), shape=numbers(shape), trans=numbers(trans[row]), gender=gender)
                    people.setdefault(int(frame), []).append(dict(
                        person_id=person, bbox=numbers(box, 3), smpl_param=fit, joint_cam=numbers(joints[row], 5)))
    images, annotations = [], []
    camera = dict(focal=numbers(focal), princpt=numbers(princpt))
    for frame in sorted(people):
        image_id = first_image + len(images)
        images.append(dict(id=image_id, file_name=f'image_{frame:05d}.jpg', sequence=sequence['sequence'],
                           frame_idx=frame, width=size[0], height=size[1], cam_param=camera))
        for annotation in people[frame]:
            annotations.append(dict(id=first_annotation + len(annotations), image_id=image_id, **annotation))
    return images, annotations


def parse_args(argv):
    parser = Parser(__doc__)
    parser.add_argument('raw', type=Path, help='folder with sequenceFiles/ (and imageFiles/, for the image sizes)')
    parser.add_argument('--split', nargs='+', choices=SPLITS, default=SPLITS, help='splits to convert')
    parser.add_argument('--out', type=Path, default=ROOT / 'data/PW3D/data', help='folder of the JSON files')
    parser.add_argument('--human_model_dir', type=Path, default=ROOT / 'data/human_models',
                        help='folder with the gendered SMPL files')
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    paths = {split: sorted((args.raw / 'sequenceFiles' / split).glob('*.pkl')) for split in args.split}
    for split, found in paths.items():
        if not found:
            raise UserError(f'no sequence files in {args.raw / "sequenceFiles" / split}: give the folder in which '
                            'sequenceFiles.zip of 3DPW was unpacked, or leave the split out with --split')
    bodies = {}
    next_annotation = 0
    for split, found in paths.items():
        images, annotations = [], []
        for path in tqdm(found, desc=split, unit='sequence'):
            sequence = read_sequence(path)
            for gender in {GENDERS[gender] for gender in sequence['genders']} - set(bodies):
                bodies[gender] = get_human_model('smpl', args.human_model_dir, gender)
            size = image_size(sequence, args.raw / 'imageFiles')
            new = convert_sequence(sequence, bodies, size, len(images), next_annotation)
            images += new[0]
            annotations += new[1]
            next_annotation += len(new[1])
        out = args.out / f'3DPW_{split}.json'
        write_json(dict(images=images, annotations=annotations), out)
        print(f'{out}: {len(annotations)} people in {len(images)} images of {len(found)} sequences')


if __name__ == '__main__':
    run_main(main)
