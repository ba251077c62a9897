"""A motion in the layout of AMASS (Mahmood et al., ICCV 2019), which animation tools read.

Field names and shapes are those of AMASS's public files: `poses`, `trans`, `betas`, `dmpls`, `gender` and
`mocap_framerate` of its SMPL+H files, `mocap_frame_rate` of its SMPL-X files.
"""
import json

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from common.export.motion import Motion
from common.human_model.body_model import HumanModel

# From camera space (x right, y down, z forward) to AMASS's axes, z up: who faces the camera faces along -y there.
Z_UP = np.array([[1., 0, 0], [0, 0, 1], [0, -1, 0]])
POSE = 156  # values of SMPL+H: 22 joints of the body, 15 of each hand
BODY_POSE = 66  # of those, the ones of the body
BETAS = 16
SHAPE = 10  # of those, the ones of the body models here
DMPLS = 8
AXES = 'x right, y forward, z up; the camera stands in the origin'
UNITS = {
    'poses': f'radians: axis-angle of the 52 joints of SMPL+H, those of the hands zero; the root in the axes {AXES}. '
             'Hands: of the 16 joints of MANO',
    'trans': f'metres, for poses: {AXES}',
    'betas': 'the 10 shape coefficients of the body model, and zeros',
    'dmpls': 'soft tissue, zero',
    'pose': 'radians: axis-angle of the joints of the body model, the root in camera space',
    'trans_camera': 'metres, for pose: camera space, x right, y down, z forward',
    'frames': 'numbers of the frames of pose and trans_camera; poses and trans have all frames from the first to the '
              'last, and hold still where the person is missing',
    'times': 'seconds from the start of the video, of those frames',
    'fps': 'frames per second; as mocap_framerate and mocap_frame_rate',
    'focal': 'pixels: fx, fy',
    'princpt': 'pixels: cx, cy',
    'size': 'pixels: height, width of the video',
}


def amass_arrays(motion: Motion, human_model: HumanModel, fps: float) -> dict[str, np.ndarray]:
    """What a person_<n>.npz holds: a motion in the layout of AMASS, and as `common.export.saved` reads it.

    Args:
        motion: one person's.
        human_model: the body model that it is of.
        fps: frames per second.
    Returns:
        {name: array}, with a JSON text of UNITS.
    """
    rows = np.searchsorted(motion.frames, np.arange(motion.frames[0], motion.frames[-1] + 1), side='right') - 1
    poses, trans = upright(motion, human_model)
    if not human_model.is_hand:
        hands = np.zeros((len(poses), POSE - BODY_POSE), poses.dtype)
        poses = np.concatenate([poses[:, :BODY_POSE], hands], axis=1)
    arrays: dict[str, np.ndarray] = {
        'poses': poses[rows],
        'trans': trans[rows],
        'betas': np.pad(motion.betas, (0, BETAS - len(motion.betas))),
        'dmpls': np.zeros((len(rows), DMPLS), poses.dtype),
        'gender': np.array(human_model.gender),
        'mocap_framerate': np.array(fps, np.float64),
        'mocap_frame_rate': np.array(fps, np.float64),
        'fps': np.array(fps, np.float64),
        'pose': motion.poses,
        'trans_camera': motion.trans,
        'body_model': np.array(human_model.name),
        'frames': motion.frames,
        'times': motion.times,
        'left_hand': np.array(motion.left_hand),
        'units': np.array(json.dumps(UNITS)),
    }
    if motion.view is not None:
        arrays |= {
            'focal': motion.view.focal,
            'princpt': motion.view.princpt,
            'size': np.array(motion.view.size),
        }
    return arrays


def upright(motion: Motion, human_model: HumanModel) -> tuple[np.ndarray, np.ndarray]:
    """Poses (T, K * 3) and translations (T, 3) that give the same meshes, turned by Z_UP.

    A body model turns a body about its root joint, not about the origin: the translation makes up for that.
    """
    poses = np.array(motion.poses)
    root = Rotation.from_matrix(Z_UP) * Rotation.from_rotvec(poses[:, :3])
    poses[:, :3] = root.as_rotvec()
    device = human_model.get_buffer('joint_regressor').device
    rest = torch.zeros((1, poses.shape[1]), device=device)
    betas = torch.as_tensor(np.float32(motion.betas), device=device)[None]
    with torch.inference_mode():
        _, joints = human_model(rest, betas)
    pivot = joints[0, 0].cpu().numpy().astype(np.float64)
    return poses, (pivot + motion.trans) @ Z_UP.T - pivot
