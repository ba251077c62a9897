"""SURREAL: from the official clips to pictures and to the JSON files that data/SURREAL reads.

    python tool/SURREAL/convert.py /path/to/SURREAL/data/cmu

reads {train,val,test}/**/*_info.mat with the *.mp4 beside each and writes

    data/SURREAL/data/SURREAL_{train,validation,test}.json      as for 3DPW: see tool/3DPW/convert.py
    data/SURREAL/data/imageFiles/<clip>/image_<frame>.jpg       every tenth frame (--every)

The gendered SMPL models are needed. A clip's `pose` lacks the person's heading and place in the world, which are found
by moving the body onto `joints3D`. SURREAL's camera is fixed but for its place; its matrix has determinant -1, so that
pictures are mirrored where it was applied as published: `joints2D` decides, and the pose is then mirrored as well.
"""
# ruff: noqa: E402
import sys
from pathlib import Path

import cv2
import numpy as np
import torch
from scipy.io import loadmat
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from common.arguments import Parser
from common.errors import UserError, run_main
from common.files.images import write_image
from common.human_model import get_human_model
from common.utils.joint_set import SMPL
from common.utils.transforms import cam2pixel, flip_pose
from tool.conversion import move_fits, numbers, rigid_motion, tight_box, write_json

SPLITS = {'train': 'train', 'val': 'validation', 'test': 'test'}
WIDTH, HEIGHT = 320, 240  # pixels
FOCAL, PRINCPT = (600., 600.), (160., 120.)  # 60 mm lens, 32 mm sensor, pixels
WORLD_TO_CAMERA = np.array([[0., 0., -1.], [0., 1., 0.], [-1., 0., 0.]])  # SURREAL's camera, y down, z forward
LARGEST_ERROR_2D = 3.  # pixels, median, between projected joints3D and joints2D
LARGEST_ERROR_3D = .03  # metres, mean, between the body's joints and joints3D
FLIP = SMPL.flip_order()[:24]


def read_clip(path):
    """pose (T, 72), shape (10,), joints3D (T, 24, 3) world metres, joints2D (T, 24, 2) pixels, camera place (3,) and
    gender ('male', 'female') of an _info.mat file."""
    try:
        info = loadmat(path)
        joints = info['joints3D'].astype(np.float64).reshape(3, 24, -1).transpose(2, 1, 0)
        pixels = info['joints2D'].astype(np.float64).reshape(2, 24, -1).transpose(2, 1, 0)
        pose = info['pose'].astype(np.float64).reshape(72, -1).T
        shape = info['shape'].astype(np.float64).reshape(10, -1)[:, 0]
        place = info['camLoc'].astype(np.float64).reshape(3)
        gender = ('female', 'male')[int(info['gender'].ravel()[0])]
    except Exception as error:  # a damaged MATLAB file can raise anything
        raise UserError(f'{path} is no _info.mat file of SURREAL ({error}): download the clip again') from error
    return pose, shape, joints, pixels, place, gender


def to_camera(joints, pixels, place):
    """joints (T, 24, 3) in camera space, metres, and whether the picture is mirrored; None where neither the published
    camera nor its mirror image explains `pixels` (T, 24, 2)."""
    camera = (joints - place) @ WORLD_TO_CAMERA.T
    candidates = [(camera, True), (camera * [-1, 1, 1], False)]
    errors = [np.median(np.linalg.norm(cam2pixel(candidate, FOCAL, PRINCPT)[..., :2] - pixels, axis=-1))
              for candidate, _ in candidates]
    return candidates[int(np.argmin(errors))] if min(errors) < LARGEST_ERROR_2D else None


@torch.no_grad()
def camera_fits(pose, shape, joints, body):
    """Move bodies onto their joints in camera space.

    pose (T, 72), shape (10,), joints (T, 24, 3) metres. Returns pose (T, 72), trans (T, 3), the mean joint error (T,)
    in metres, vertices (T, V, 3) and regressed joints (T, J, 3), metres.
    """
    betas = torch.tensor(shape, dtype=torch.float32).expand(len(pose), -1)
    own = body(torch.tensor(pose, dtype=torch.float32), betas, None)[1].double().numpy()
    rotation, translation = rigid_motion(own, joints)
    error = np.linalg.norm(np.einsum('nab,njb->nja', rotation, own) + translation[:, None] - joints, axis=2).mean(1)
    pose, trans = move_fits(pose, np.zeros((len(pose), 3)), own[:, 0], rotation, translation)
    vertices, _ = body(torch.tensor(pose, dtype=torch.float32), betas, torch.tensor(trans, dtype=torch.float32))
    return pose, trans, error, vertices.numpy(), (body.joint_regressor @ vertices).numpy()


def save_frames(video, folder, frames):
    """Write the given frames (ascending) of a video as JPEG files into a folder; what is there already is kept."""
    paths = {frame: folder / f'image_{frame:05d}.jpg' for frame in frames}
    if all(path.exists() for path in paths.values()):
        return
    reader = cv2.VideoCapture(str(video))
    for frame in range(frames[-1] + 1):
        if not reader.grab():
            raise UserError(f'{video} is missing, broken or has fewer than {frame + 1} frames: download the clip again')
        if frame in paths:
            ok, picture = reader.retrieve()
            if not ok:
                raise UserError(f'frame {frame} of {video} cannot be decoded: download the clip again')
            write_image(paths[frame], picture[..., ::-1])
    reader.release()


def convert_clip(path, human_model_dir, every):
    """(frame, annotation without ids) of every `every`-th frame of a clip in which the person can be seen."""
    pose, shape, joints, pixels, place, gender = read_clip(path)
    frames = np.arange(0, len(pose), every)
    camera = to_camera(joints[frames], pixels[frames], place)
    if camera is None:
        return []
    joints, mirrored = camera
    pose = pose[frames]
    if mirrored:
        pose, joints = np.stack([flip_pose(p, FLIP) for p in pose]), joints[:, FLIP]
    people = []
    body = get_human_model('smpl', human_model_dir, gender)
    pose, trans, error, vertices, regressed = camera_fits(pose, shape, joints, body)
    for row, frame in enumerate(frames):
        if error[row] > LARGEST_ERROR_3D or vertices[row, :, 2].min() <= 0:
            continue
        box = tight_box(cam2pixel(vertices[row], FOCAL, PRINCPT), WIDTH, HEIGHT)
        if box is not None:
            fit = dict(pose=numbers(pose[row]), shape=numbers(shape), trans=numbers(trans[row]), gender=gender)
            people.append((int(frame), dict(person_id=0, bbox=numbers(box, 3), smpl_param=fit,
                                            joint_cam=numbers(regressed[row], 5))))
    return people


def main(argv=None):
    parser = Parser(__doc__)
    parser.add_argument('raw', type=Path, help='folder with train/, val/ and test/, such as SURREAL/data/cmu')
    parser.add_argument('--split', nargs='+', choices=SPLITS, default=tuple(SPLITS), help='splits to convert')
    parser.add_argument('--every', type=int, default=10, metavar='N', help='take every N-th frame')
    parser.add_argument('--out', type=Path, default=ROOT / 'data/SURREAL/data', help='folder to write to')
    parser.add_argument('--human_model_dir', type=Path, default=ROOT / 'data/human_models',
                        help='folder with the gendered SMPL files')
    args = parser.parse_args(argv)
    if args.every < 1:
        raise UserError(f'--every {args.every}: must be 1 or more')
    camera = dict(focal=list(FOCAL), princpt=list(PRINCPT))
    for split in args.split:
        clips = sorted((args.raw / split).rglob('*_info.mat'))
        if not clips:
            raise UserError(f'no *_info.mat below {args.raw / split}: give the folder with train/, val/ and test/, or '
                            'choose other splits with --split')
        images, annotations, unused = [], [], 0
        for path in tqdm(clips, desc=split, unit='clip'):
            people = convert_clip(path, args.human_model_dir, args.every)
            clip = '_'.join(path.relative_to(args.raw).with_name(path.name.removesuffix('_info.mat')).parts)
            if people:
                video = path.with_name(path.name.removesuffix('_info.mat') + '.mp4')
                save_frames(video, args.out / 'imageFiles' / clip, [frame for frame, _ in people])
            unused += not people
            for frame, annotation in people:
                number = len(images)
                images.append(dict(id=number, file_name=f'image_{frame:05d}.jpg', sequence=clip, frame_idx=frame,
                                   width=WIDTH, height=HEIGHT, cam_param=camera))
                annotations.append(dict(id=number, image_id=number, **annotation))
        if not images:
            raise UserError(f'none of the {len(clips)} clips below {args.raw / split} has a frame whose fit lands on '
                            'its joints: are they official SURREAL files, and SMPL the official model?')
        out = args.out / f'SURREAL_{SPLITS[split]}.json'
        write_json(dict(images=images, annotations=annotations), out)
        print(f'{out}: {len(images)} frames of {len(clips) - unused} clips; {unused} clips could not be used')


if __name__ == '__main__':
    run_main(main)
