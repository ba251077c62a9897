"""Where a person stands in the camera frame: the translation that puts the parametric mesh onto the lixel mesh.

The lixel mesh gives pixels, the parametric mesh root-relative metres. For a pinhole camera with focal lengths
f = (fx, fy) and principal point c, a vertex (X, Y, Z) moved by T = (Tx, Ty, Tz) falls on the pixel u = (ux, uy) when

    fx Tx - (ux - cx) Tz = (ux - cx) Z - fx X        and the same in y,

which is linear in T: no depth network is needed.
"""
import numpy as np

from common.errors import UserError
from common.utils.transforms import pixel2cam

DEFAULT_FOCAL = 1500.  # pixels; the normalised focal length of the paper's experiments
FOCAL_RANGE = 1., 1e6  # pixels; beyond, float32 coordinates lose their meaning
MAX_DEPTH = 1e5  # metres, for the same reason
MIN_DEPTH_PARTS = 0.05  # a person's nearest point stays this part of the body's box in front of the camera


def fit_translation(points, pixels, focal, princpt, depth=None):
    """Least squares over the translation of `points` (V, 3), metres, that projects them to `pixels` (V, 2).

    focal (2,), princpt (2,) in pixels. With `depth` (metres) given, only x and y are free. Returns (3,) metres, or
    None where the equations do not determine a translation in front of the camera.
    """
    points, offset = np.asarray(points, np.float64), np.asarray(pixels, np.float64) - princpt
    focal = np.asarray(focal, np.float64)
    if not (np.isfinite(points).all() and np.isfinite(offset).all()):
        return None
    if depth is not None:
        xy = (offset * (points[:, 2:] + depth) / focal - points[:, :2]).mean(0)
        return np.array([*xy, depth])
    rows = np.zeros((len(points), 2, 3))
    rows[:, 0, 0], rows[:, 1, 1] = focal
    rows[:, :, 2] = -offset
    right = offset * points[:, 2:] - focal * points[:, :2]
    translation, _, rank, _ = np.linalg.lstsq(rows.reshape(-1, 3), right.reshape(-1), rcond=None)
    return translation if rank == 3 and translation[2] > 0 else None


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


def check_camera(focal, princpt, root_depth, box_size_m):
    """UserError unless the given values (None: not given) can be a camera."""
    if focal is not None and not (np.min(focal) >= FOCAL_RANGE[0] and np.max(focal) <= FOCAL_RANGE[1]):
        raise UserError('--focal must be a positive number of pixels, from 1 to 1000000 (1500 if not given)')
    if princpt is not None and not (np.abs(princpt) <= FOCAL_RANGE[1]).all():
        raise UserError('--princpt must be two finite numbers of pixels, at most 1000000')
    nearest = (0.5 + MIN_DEPTH_PARTS) * box_size_m
    if root_depth is not None and not (nearest <= root_depth <= MAX_DEPTH):
        raise UserError(f'--root_depth must be at least {nearest:g} m (from the camera to the root joint: nearer, a '
                        f'part of the mesh lies behind the camera) and at most {MAX_DEPTH:g} m')
