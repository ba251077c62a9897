"""What the tests of the synthetic data share."""
import numpy as np
import torch

from main.config import Config


def config(*overrides, tmp_path='/nonexistent'):
    """The nano configuration with a handful of samples."""
    cfg = Config()
    cfg.load('nano')
    cfg.override(['synthetic_train_size=6', 'synthetic_test_size=4', 'synthetic_cache=false', 'num_thread=0',
                  'aug_rotation=30', 'aug_scale=0.25', f'output_dir={tmp_path}', *overrides])
    return cfg


def mesh_of(body, d):
    """Vertices (V, 3) and joints (J, 3) of a Rendering, metres in camera space."""
    inputs = [torch.from_numpy(a)[None] for a in (d.pose, d.shape, d.trans)]
    vertices, joints = body(*inputs)
    return vertices[0].numpy(), body.fit_joints(vertices, joints)[0].numpy()


def mesh_rest(body):
    """Vertices (V, 3) and skeleton joints (K, 3) of the rest pose, metres."""
    vertices, joints = body(torch.zeros(1, 72), torch.zeros(1, 10))
    return vertices[0].numpy(), joints[0].numpy().astype(float)


def unit(v):
    """The vector at length one."""
    return v / np.linalg.norm(v)


def bend(a, b, c):
    """Angle in degrees by which the path a, b, c turns at b."""
    return np.rad2deg(np.arccos(np.clip(unit(b - a) @ unit(c - b), -1, 1)))


def rotation_angle(matrix):
    """Angle of a rotation matrix, degrees."""
    return np.rad2deg(np.arccos(np.clip((np.trace(matrix) - 1) / 2, -1, 1)))
