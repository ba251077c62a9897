"""SURREAL: from the official clips to images and to the JSON files that data/SURREAL reads.

    python tool/SURREAL/convert.py /path/to/SURREAL/data/cmu

reads {train,val,test}/**/*_info.mat with the *.mp4 beside each and writes

    data/SURREAL/data/SURREAL_{train,validation,test}.json      as for 3DPW: see tool/3DPW/convert.py
    data/SURREAL/data/imageFiles/<clip>/image_<frame>.jpg       every tenth frame (--every)

The gendered SMPL models are needed. A clip's `pose` lacks the person's heading and place in the world, which are found
by moving the body onto `joints3D`. SURREAL's camera is fixed but for its place; its matrix has determinant -1, so that
images are mirrored where it was applied as published: `joints2D` decides, and the pose is then mirrored as well.
"""
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from scipy.io import loadmat
from tqdm import tqdm

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[2] / 'main' / 'init_path.py'))

from common.arguments import Parser, show_help
from common.errors import UserError, run_main
from tool.convert.parser import add_max_damaged, make_parser

SPLITS = {'train': 'train', 'val': 'validation', 'test': 'test'}


def own_parser() -> Parser:
    """The parser of the command line."""
    raw = 'folder with train/, val/ and test/, such as SURREAL/data/cmu'
    parser = make_parser(__doc__, 'SURREAL', raw, SPLITS, 'the gendered SMPL files')
    add_max_damaged(parser)
    parser.add_argument('--every', type=int, default=10, metavar='N', help='take every N-th frame')
    return parser


if __name__ == '__main__':
    show_help(own_parser)  # before PyTorch is imported, which takes seconds

from common.files.images import write_image
from common.files.listing import visible_files
from common.human_model import HumanModel, get_human_model
from common.utils.joint_set import SMPL
from common.utils.transforms import cam2pixel, flip_pose
from data.checks.limits import LARGEST_DEPTH, fit_fault, within
from data.sample import Fit
from tool.convert.damaged import Damaged, DamagedItem
from tool.convert.fits import move_fits, move_points, rigid_motion, run_body, tight_box
from tool.files.write import numbers, write_json

WIDTH = 320  # pixels
HEIGHT = 240
FOCAL = (600., 600.)  # of a 60 mm lens on a 32 mm sensor, pixels
PRINCPT = (160., 120.)  # pixels
WORLD_TO_CAMERA = np.array([[0., 0., -1.], [0., 1., 0.], [-1., 0., 0.]])  # y down, z forward
LARGEST_ERROR_2D = 3.  # pixels, median, between projected joints3D and joints2D
LARGEST_ERROR_3D = .03  # metres, mean, between the body's joints and joints3D
FLIP = SMPL.flip_order()[:24]


@dataclass
class Clip:
    """What an _info.mat file says of T frames of one person."""
    pose: np.ndarray    # (T, 72) axis-angle, radians
    shape: np.ndarray   # (10,)
    joints: np.ndarray  # (T, 24, 3) world space, metres
    pixels: np.ndarray  # (T, 24, 2) the joints in the images, pixels
    place: np.ndarray   # (3,) of the camera in the world, metres
    gender: str         # male or female


def read_clip(path: Path) -> Clip:
    """Read an _info.mat file. DamagedItem: it is not one, or broken."""
    try:
        info = loadmat(path)
        clip = Clip(
            pose=info['pose'].astype(np.float64).reshape(72, -1).T,
            shape=info['shape'].astype(np.float64).reshape(10, -1)[:, 0],
            joints=info['joints3D'].astype(np.float64).reshape(3, 24, -1).transpose(2, 1, 0),
            pixels=info['joints2D'].astype(np.float64).reshape(2, 24, -1).transpose(2, 1, 0),
            place=info['camLoc'].astype(np.float64).reshape(3),
            gender=('female', 'male')[int(info['gender'].ravel()[0])])
    except Exception as error:  # a damaged MATLAB file can raise anything
        raise DamagedItem(f'{path} is no _info.mat file of SURREAL ({error}): download the clip again') from error
    if not len(clip.pose) == len(clip.joints) == len(clip.pixels) > 0:
        raise DamagedItem(f'{path} has no frames, or not as many poses as joints: download the clip again')
    fault = fit_fault(Fit(clip.pose, clip.shape, clip.place), None)
    if not (within(clip.joints, LARGEST_DEPTH) and within(clip.pixels, LARGEST_DEPTH)):
        fault = 'joints not finite, or impossibly far'
    if fault:
        raise DamagedItem(f'{path}: {fault}: download the clip again')
    return clip


def to_camera(joints: np.ndarray, pixels: np.ndarray,
              place: np.ndarray) -> tuple[np.ndarray, bool] | None:
    """Move joints into camera space.

    Args:
        joints: (T, 24, 3) world space, metres.
        pixels: (T, 24, 2) where they are in the images.
        place: (3,) of the camera, metres.
    Returns:
        The joints (T, 24, 3) in camera space, metres, and whether the images are mirrored; None where neither the
        published camera nor its mirror image explains `pixels`.
    """
    camera = (joints - place) @ WORLD_TO_CAMERA.T
    candidates = [(camera, True), (camera * [-1, 1, 1], False)]
    errors = []
    for candidate, _ in candidates:
        distances = np.linalg.norm(cam2pixel(candidate, FOCAL, PRINCPT)[..., :2] - pixels, axis=-1)
        errors.append(np.median(distances))
    if min(errors) >= LARGEST_ERROR_2D:
        return None
    return candidates[int(np.argmin(errors))]


def camera_fits(pose: np.ndarray, shape: np.ndarray, joints: np.ndarray,
                body: HumanModel) -> tuple[np.ndarray, ...]:
    """Move bodies onto their joints in camera space.

    Args:
        pose: (T, 72) axis-angle, radians.
        shape: (10,).
        joints: (T, 24, 3) camera space, metres.
        body: The SMPL model of the person's gender.
    Returns:
        pose (T, 72), trans (T, 3), mean joint error (T,), vertices (T, V, 3) and regressed joints (T, J, 3), metres.
    """
    shapes = np.tile(shape, (len(pose), 1))
    own = run_body(body, pose, shapes)[1].double().numpy()
    rotation, translation = rigid_motion(own, joints)
    error = np.linalg.norm(move_points(own, rotation, translation) - joints, axis=2).mean(1)
    pose, trans = move_fits(pose, np.zeros((len(pose), 3)), own[:, 0], rotation, translation)
    vertices, _ = run_body(body, pose, shapes, trans)
    regressed = body.get_buffer('joint_regressor') @ vertices
    return pose, trans, error, vertices.numpy(), regressed.numpy()


def save_frames(video: Path, folder: Path, frames: list[int]) -> None:
    """Write the given frames (ascending) of a video as JPEG files into a folder; what is there already is kept."""
    paths = {frame: folder / f'image_{frame:05d}.jpg' for frame in frames}
    if all(path.exists() for path in paths.values()):
        return
    reader = cv2.VideoCapture(str(video))
    for frame in range(frames[-1] + 1):
        there, image = reader.read()
        if not there:
            raise DamagedItem(f'{video} is missing, broken or has fewer than {frame + 1} frames: download the clip '
                              'again')
        if image.shape[:2] != (HEIGHT, WIDTH):
            raise DamagedItem(f'{video} is {image.shape[1]} x {image.shape[0]} pixels large, not {WIDTH} x {HEIGHT}: '
                              'take the official clip')
        if frame in paths:
            write_image(paths[frame], image[..., ::-1])
    reader.release()


def convert_clip(path: Path, human_model_dir: Path, every: int) -> list[tuple[int, dict[str, Any]]]:
    """(frame, annotation without ids) of every `every`-th frame of a clip in which the person can be seen."""
    clip = read_clip(path)
    frames = np.arange(0, len(clip.pose), every)
    camera = to_camera(clip.joints[frames], clip.pixels[frames], clip.place)
    if camera is None:
        return []
    joints, mirrored = camera
    pose = clip.pose[frames]
    if mirrored:
        pose = np.stack([flip_pose(one, FLIP) for one in pose])
        joints = joints[:, FLIP]
    body = get_human_model('smpl', human_model_dir, clip.gender)
    pose, trans, error, vertices, regressed = camera_fits(pose, clip.shape, joints, body)
    people = []
    for row, frame in enumerate(frames):
        if error[row] > LARGEST_ERROR_3D or vertices[row, :, 2].min() <= 0:
            continue
        box = tight_box(cam2pixel(vertices[row], FOCAL, PRINCPT), WIDTH, HEIGHT)
        if box is None:
            continue
        fit = dict(pose=numbers(pose[row]), shape=numbers(clip.shape), trans=numbers(trans[row]),
                   gender=clip.gender)
        people.append((int(frame), dict(
            person_id=0, bbox=numbers(box, 3), smpl_param=fit, joint_cam=numbers(regressed[row], 5))))
    return people


def convert_split(split: str, raw: Path, out: Path, human_model_dir: Path, every: int,
                  max_damaged: float) -> None:
    """Convert all clips of a split: write their images and the JSON file into `out`.

    UserError: more than the share `max_damaged` of the clips are damaged.
    """
    clips = visible_files(raw / split, '**/*_info.mat')
    if not clips:
        raise UserError(f'no *_info.mat below {raw / split}: give the folder with train/, val/ and test/, or '
                        'choose other splits with --split')
    camera = dict(focal=list(FOCAL), princpt=list(PRINCPT))
    images: list[dict] = []
    annotations: list[dict] = []
    unused = 0
    damaged = Damaged(len(clips), 'clips', max_damaged)
    for path in tqdm(clips, desc=split, unit='clip'):
        video = path.with_name(path.name.removesuffix('_info.mat') + '.mp4')
        sequence = '_'.join(video.relative_to(raw).with_suffix('').parts)
        try:
            people = convert_clip(path, human_model_dir, every)
            if people:
                save_frames(video, out / 'imageFiles' / sequence, [frame for frame, _ in people])
        except DamagedItem as error:
            damaged.add(error)
            people = []
        if not people:
            unused += 1
        for frame, annotation in people:
            number = len(images)
            images.append(dict(
                id=number, file_name=f'image_{frame:05d}.jpg', sequence=sequence, frame_idx=frame,
                width=WIDTH, height=HEIGHT, cam_param=camera))
            annotations.append(dict(id=number, image_id=number, **annotation))
    if not images:
        raise UserError(f'none of the {len(clips)} clips below {raw / split} has a frame whose fit lands on '
                        'its joints: are they official SURREAL files, and SMPL the official model?')
    path = out / f'SURREAL_{SPLITS[split]}.json'
    write_json(path, dict(images=images, annotations=annotations))
    print(f'{path}: {len(images)} frames of {len(clips) - unused} clips; {unused} clips could not be used')
    damaged.report()


def main(argv: list[str] | None = None) -> None:
    """Run the command line `argv` (default: the process's own)."""
    args = own_parser().parse_args(argv)
    if args.every < 1:
        raise UserError(f'--every {args.every}: must be 1 or more')
    for split in args.split:
        convert_split(split, args.raw, args.out, args.human_model_dir, args.every, args.max_damaged)


if __name__ == '__main__':
    run_main(main)
