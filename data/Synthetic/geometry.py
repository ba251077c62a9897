"""Rotations, joints and distances that the random poses are made of."""
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation


def rotation_about(axis: ArrayLike, degrees: float) -> np.ndarray:
    """Rotation matrix (3, 3) by an angle in degrees about axis (3,), which need not have unit length."""
    direction = np.asarray(axis, np.float64)
    x, y, z = direction / np.linalg.norm(direction)
    c = np.cos(np.deg2rad(degrees))
    s = np.sin(np.deg2rad(degrees))
    d = 1 - c
    return np.array([[c + x * x * d, x * y * d - z * s, x * z * d + y * s],
                     [x * y * d + z * s, c + y * y * d, y * z * d - x * s],
                     [x * z * d - y * s, y * z * d + x * s, c + z * z * d]])


def forward_kinematics(rotations: np.ndarray, rest_joints: np.ndarray,
                       parents: Sequence[int]) -> np.ndarray:
    """Positions (K, 3) metres of the joints after the local rotations (K, 3, 3), with the root joint at its rest."""
    world = [rotations[0]]
    position = [rest_joints[0]]
    for k in range(1, len(parents)):
        p = parents[k]
        position.append(position[p] + world[p] @ (rest_joints[k] - rest_joints[p]))
        world.append(world[p] @ rotations[k])
    return np.stack(position)


def clipped_normal(rng: np.random.Generator, mean: float, std: float, low: float,
                   high: float) -> float:
    """One normally distributed number, clipped to low..high."""
    return float(np.clip(rng.normal(mean, std), low, high))


def axis_angle(rotations: np.ndarray) -> np.ndarray:
    """Matrices (K, 3, 3) as axis-angle (K * 3,) float32, radians."""
    return Rotation.from_matrix(rotations).as_rotvec().ravel().astype(np.float32)


def unit(v: np.ndarray) -> np.ndarray:
    """The vector v (3,) at length one."""
    return v / np.linalg.norm(v)


def segment_distance(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Distances (N, M) of points (N, 3) to the M segments from start (M, 3) to end (M, 3)."""
    along = end - start
    t = ((points[:, None] - start) * along).sum(2) / ((along ** 2).sum(1) + 1e-12)
    nearest = start + np.clip(t, 0, 1)[..., None] * along
    return np.linalg.norm(points[:, None] - nearest, axis=2)
