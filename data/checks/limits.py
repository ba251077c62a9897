"""Which values a camera, a fit and a depth may have: one rule for every split.

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
    return None


def fit_fault(fit: Fit, size: float | None) -> str | None:
    """What is impossible about a fit, or None. size: metres, of the cube around a body or hand; None: unknown."""
    parts = (fit.pose, fit.shape, fit.trans, fit.R, fit.t)
    if not all(within(part, LARGEST_NUMBER) for part in parts):
        return 'fit not finite'
    if not (within(fit.pose, LARGEST_ANGLE) and within(fit.shape, LARGEST_SHAPE) and within(fit.R, 2)):
        return 'fit with an impossible pose or shape'
    if not (within(fit.trans, FARTHEST * (size or LARGEST_DEPTH)) and within(fit.t, LARGEST_DEPTH)):
        return 'fit of impossible distance: is its translation in another unit (metres, millimetres)?'
    return None
