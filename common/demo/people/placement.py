"""Where a person stands in camera space: the translation that puts the parametric mesh onto the lixel mesh.

The lixel mesh gives pixels, the parametric mesh root-relative metres. For a pinhole camera with focal lengths
f = (fx, fy) and principal point c, a vertex (X, Y, Z) moved by T = (Tx, Ty, Tz) falls on the pixel u = (ux, uy) when

    fx Tx - (ux - cx) Tz = (ux - cx) Z - fx X        and the same in y,

which is linear in T: no depth network is needed.
"""
import numpy as np
from numpy.typing import ArrayLike

from common.errors import UserError
from common.utils.transforms import pixel2cam

FOCAL_RANGE = (1., 1e6)  # pixels; beyond, float32 coordinates lose their meaning
MAX_DEPTH = 1e5  # metres, for the same reason
MIN_DEPTH_PARTS = 0.05  # a person's nearest point stays this part of the body's box in front of the camera


def fit_translation(points: np.ndarray, pixels: np.ndarray, focal: ArrayLike, princpt: ArrayLike,
                    depth: float | None = None) -> np.ndarray | None:
    """The translation of points that projects them to pixels, by least squares.

    Args:
        points: (V, 3) metres.
        pixels: (V, 2).
        focal: (2,) pixels.
        princpt: (2,) pixels.
        depth: z of the translation, metres; None: it is fitted too.
    Returns:
        (3,) metres, or None where the equations do not determine a translation in front of the camera.
    """
    points = np.asarray(points, np.float64)
    offset = np.asarray(pixels, np.float64) - np.asarray(princpt, np.float64)
    focal = np.asarray(focal, np.float64)
    if not (np.isfinite(points).all() and np.isfinite(offset).all()):
        return None
    if depth is not None:
        x, y = (offset * (points[:, 2:] + depth) / focal - points[:, :2]).mean(0)
        return np.array([x, y, depth])
    left = np.zeros((len(points), 2, 3))
    left[:, 0, 0] = focal[0]
    left[:, 1, 1] = focal[1]
    left[:, :, 2] = -offset
    right = offset * points[:, 2:] - focal * points[:, :2]
    translation, _, rank, _ = np.linalg.lstsq(left.reshape(-1, 3), right.reshape(-1), rcond=None)
    if rank < 3 or not translation[2] > 0:
        return None
    return translation


def root_on_pixel(root_row: np.ndarray, pixels: np.ndarray, focal: np.ndarray, princpt: np.ndarray,
                  depth: float) -> np.ndarray:
    """Where the original's demo puts the root joint of the parametric mesh: on the lixel mesh's root pixel.

    Args:
        root_row: (V,) row of the joint regressor that gives the root joint.
        pixels: (V, 2) lixel mesh in the image, pixels.
        focal: (2,) pixels.
        princpt: (2,) pixels.
        depth: of the root joint, metres.
    Returns:
        (3,) root joint in camera space, metres.
    """
    root_img = np.append(root_row @ pixels, depth)
    return pixel2cam(root_img, focal, princpt)


def check_camera(focal: ArrayLike | None, princpt: ArrayLike | None, root_depth: float | None,
                 box_size_m: float) -> None:
    """Check what a user says of the camera; None: not given.

    Args:
        focal: pixels.
        princpt: (2,) pixels.
        root_depth: metres from the camera to the root joint.
        box_size_m: side of the cube around a person, metres.
    Raises:
        UserError: no camera has such values.
    """
    if focal is not None and not (np.min(focal) >= FOCAL_RANGE[0] and np.max(focal) <= FOCAL_RANGE[1]):
        raise UserError('--focal must be a positive number of pixels, from 1 to 1000000')
    if princpt is not None and not (np.abs(princpt) <= FOCAL_RANGE[1]).all():
        raise UserError('--princpt must be two finite numbers of pixels, at most 1000000')
    nearest = (0.5 + MIN_DEPTH_PARTS) * box_size_m
    if root_depth is not None and not (nearest <= root_depth <= MAX_DEPTH):
        raise UserError(f'--root_depth must be at least {nearest:g} m (from the camera to the root joint: nearer, a '
                        f'part of the mesh lies behind the camera) and at most {MAX_DEPTH:g} m')
