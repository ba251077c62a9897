"""Motions of every body model, for the tests of what leaves the program."""
import re
from pathlib import Path

import numpy as np
import torch

from common.export.motion import Motion, View
from common.human_model import get_human_model
from common.human_model.body_model import HumanModel

FROM_CAMERA = [1, -1, -1]  # camera space (x right, y down, z forward) to the axes of glTF
VIEW = View(np.array([300., 320.]), np.array([160., 120.]), (240, 320))
FPS = 25
MODELS = {'open_body': False, 'open_hand': False, 'left open_hand': True, 'smpl': False, 'mano': False,
          'left mano': True}  # and whether it is a left hand


def model_of(case: str, folder: object) -> HumanModel:
    """The body model of one of MODELS; folder: the stand-ins for the official ones."""
    return get_human_model(case.split()[-1], str(folder))


def wave(human_model: HumanModel, frames: list[int] | range, left_hand: bool = False, seed: int = 0) -> Motion:
    """Somebody who faces the camera, turns and moves all joints, in frames of the given numbers."""
    rng = np.random.default_rng(seed)
    count = human_model.kinematic_joint_num
    phase = np.array(list(frames))[:, None] / 15 + rng.uniform(0, 6, 3 * count)
    poses = 0.4 * np.sin(phase)
    poses[:, 0] += np.pi
    trans = np.stack([0.3 * np.sin(phase[:, 0]), 0.1 * np.cos(phase[:, 1]), 4 + 0.2 * np.sin(phase[:, 2])], 1)
    if human_model.is_hand:
        trans *= 0.15
    return Motion(poses, trans, rng.normal(size=10), np.array(list(frames)) / FPS, np.array(list(frames)), left_hand,
                  VIEW)


def truth(human_model: HumanModel, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (T, V, 3) and kinematic joints (T, K, 3) by the body model itself, metres, camera space."""
    rows = [torch.as_tensor(np.asarray(part, np.float32)) for part in (motion.poses, motion.trans)]
    betas = torch.as_tensor(np.float32(motion.betas)).expand(len(rows[0]), -1)
    with torch.inference_mode():
        vertices, joints = human_model(rows[0], betas, rows[1])
    side = np.array([-1., 1, 1]) if motion.left_hand else np.ones(3)
    return vertices.numpy() * side, joints.numpy() * side


def guide_blocks() -> list[str]:
    """The Python blocks of docs/export.md that run as they are."""
    guide = Path(__file__).resolve().parents[1] / 'docs' / 'export.md'
    return re.findall(r'^```python\n(.*?)^```', guide.read_text(encoding='utf-8'), re.S | re.M)
