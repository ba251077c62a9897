"""Geometry that the converters share: boxes of image points, and rigid motions of fitted bodies."""
import numpy as np
import torch

from common.human_model import HumanModel
from common.utils.transforms import rotate_pose, world2cam_trans


def tight_box(points: np.ndarray, width: int, height: int) -> list[float] | None:
    """The xywh box (4 floats, pixels) around image points (N, >= 2), cut to the image; None if none of it is inside."""
    low = np.maximum(points[:, :2].min(0), 0)
    high = np.minimum(points[:, :2].max(0), [width - 1, height - 1])
    if not (high > low).all():
        return None
    return [*low.tolist(), *(high - low).tolist()]


@torch.no_grad()
def run_body(body: HumanModel, poses: np.ndarray, shapes: np.ndarray,
             trans: np.ndarray | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Vertices (N, V, 3) and kinematic joints (N, K, 3), float32 metres, of poses (N, K*3), shapes (N, 10) and trans
    (N, 3)."""
    offset = None if trans is None else torch.tensor(trans, dtype=torch.float32)
    return body(torch.tensor(poses, dtype=torch.float32), torch.tensor(shapes, dtype=torch.float32), offset)


def move_fits(poses: np.ndarray, trans: np.ndarray, pelvis: np.ndarray, rotations: np.ndarray,
              translations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parameters of N bodies after the rigid motions x -> R x + t of their surfaces.

    Args:
        poses: (N, K*3) axis-angle, radians.
        trans: (N, 3) metres.
        pelvis: (N, 3) root joints before translation, metres.
        rotations: (N, 3, 3) R.
        translations: (N, 3) t, metres.
    Returns:
        The new poses (N, K*3) and trans (N, 3), float64.
    """
    new_poses = []
    new_trans = []
    for i, rotation in enumerate(rotations):
        new_poses.append(rotate_pose(poses[i], rotation))
        new_trans.append(world2cam_trans(trans[i], pelvis[i], rotation, translations[i]))
    return np.stack(new_poses), np.stack(new_trans)


def rigid_motion(source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rigid motions x -> R x + t that move points closest to others: least squares (Kabsch), no reflection.

    Args:
        source: (N, P, 3) points.
        target: (N, P, 3) where they should be.
    Returns:
        Rotations (N, 3, 3) and translations (N, 3).
    """
    source_mean = source.mean(1, keepdims=True)
    target_mean = target.mean(1, keepdims=True)
    u, _, vt = np.linalg.svd(np.swapaxes(source - source_mean, 1, 2) @ (target - target_mean))
    v = np.swapaxes(vt, 1, 2)
    ut = np.swapaxes(u, 1, 2)
    sign = np.ones((len(u), 3))
    sign[:, 2] = np.linalg.det(v @ ut)
    rotation = (v * sign[:, None]) @ ut
    translation = target_mean[:, 0] - np.einsum('nab,nb->na', rotation, source_mean[:, 0])
    return rotation, translation


def move_points(points: np.ndarray, rotations: np.ndarray, translations: np.ndarray) -> np.ndarray:
    """(N, P, 3) points after the motions x -> R x + t of rotations (N, 3, 3) and translations (N, 3)."""
    return np.einsum('nab,npb->npa', rotations, points) + translations[:, None]
