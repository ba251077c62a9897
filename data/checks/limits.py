"""Which values a camera, a fit, a box and a depth may have: one rule for every split.

The limits are far beyond what any photograph or person has; what lies beyond them is damage, and would pass as numbers
(a mesh in one pixel, or upside down) or overflow.
"""
import numpy as np

from common.utils.transforms import Camera
from data.sample import Fit

FOCAL = 0.05, 1e3     # times the longer side of the image
CENTRE = 10.          # times the longer side that the principal point may be away from the image's centre
LARGEST_ANGLE = 1e3   # radians; degrees taken for radians stay below, and have a message of their own
LARGEST_SHAPE = 1e3   # shape coefficient
FARTHEST = 500.       # times the size of a body or hand: 1 km, 150 m
LARGEST_NUMBER = 3.4e38  # what is beyond it is infinite in float32
LARGEST_DEPTH = 1e6   # metres, or millimetres
UNROUND = 0.05        # how far an element of R R^T may be from that of the unit matrix: annotations are rounded
BOX_SIDE = 0.01, 10.  # pixels, and times the longer side of the image


def within(values: np.ndarray | None, limit: float) -> bool:
    """Whether all values are finite and no larger than a limit. None is: there is nothing to be wrong."""
    return values is None or bool((np.abs(values) <= limit).all())


def camera_fault(camera: Camera, img_shape: tuple[int, int]) -> str | None:
    """What is impossible about the camera of an image (height, width), or None."""
    side = max(img_shape)
    focal = np.asarray(camera.focal)
    if not ((focal >= FOCAL[0] * side) & (focal <= FOCAL[1] * side)).all():
        return 'camera with an impossible focal length'
    centre = np.asarray(img_shape[::-1]) / 2
    if not within(np.asarray(camera.princpt) - centre, CENTRE * side):
        return 'camera whose centre is far outside of the image'
    return world_fault(camera.R, camera.t)


def world_fault(R: np.ndarray | None, t: np.ndarray | None) -> str | None:
    """What is impossible about the way from a world to a camera, a rotation (3, 3) and metres (3,), or None."""
    if R is not None:
        if not within(R, 2):
            return 'camera whose rotation R is not finite'
        if not within(R @ R.T - np.eye(3), UNROUND) or np.linalg.det(R) < 0:
            return 'camera whose R is not a rotation'
    if not within(t, LARGEST_DEPTH):
        return 'camera whose translation t is not finite, or impossibly far'
    return None


def box_fault(bbox: np.ndarray, img_shape: tuple[int, int]) -> str | None:
    """What is impossible about a box (4,) xywh in an image (height, width), or None."""
    height, width = img_shape
    x, y, w, h = bbox
    if not (np.isfinite(bbox).all() and w > 0 and h > 0 and -w < x < width and -h < y < height):
        return 'box off the image'
    if min(w, h) < BOX_SIDE[0] or max(w, h) > BOX_SIDE[1] * max(img_shape):
        return 'box of impossible size'
    return None


def fit_fault(fit: Fit, size: float | None) -> str | None:
    """What is impossible about a fit, or None. size: metres, of the cube around a body or hand; None: unknown."""
    parts = (fit.pose, fit.shape, fit.trans)
    if not all(within(part, LARGEST_NUMBER) for part in parts):
        return 'fit not finite'
    if not (within(fit.pose, LARGEST_ANGLE) and within(fit.shape, LARGEST_SHAPE)):
        return 'fit with an impossible pose or shape'
    if not within(fit.trans, FARTHEST * (size or LARGEST_DEPTH)):
        return 'fit of impossible distance: is its translation in another unit (metres, millimetres)?'
    return world_fault(fit.R, fit.t)
