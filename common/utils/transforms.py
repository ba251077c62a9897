"""Cameras, world-to-camera composition of body-model parameters, mirror flips, alignment. Metres, pixels, radians."""
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import ArrayLike

Numbers = Sequence[float] | np.ndarray


@dataclass
class Camera:
    """A pinhole camera.

    Attributes:
        focal: (2,) focal length, pixels.
        princpt: (2,) principal point, pixels.
        focal_source: Where the focal length comes from, as text for the demo's record.
        R: (3, 3) world-to-camera rotation, where the annotations are in a world, or None.
        t: (3,) metres, the translation after it, or None.
    """
    focal: np.ndarray
    princpt: np.ndarray
    focal_source: str = ''
    R: np.ndarray | None = None
    t: np.ndarray | None = None


def world2cam(points: np.ndarray, R: np.ndarray, t: np.ndarray) -> np.ndarray:
    """World points (..., 3) -> camera space R x + t; R (3, 3), t (3,) in the unit of the points."""
    return points @ np.transpose(R) + t


def cam2pixel(points: np.ndarray, focal: Numbers, princpt: Numbers) -> np.ndarray:
    """Camera space (..., 3) metres -> (..., 3): x, y in pixels, and the depth z as it was. focal, princpt: (2,)."""
    z = points[..., 2]  # one axis at a time: seven times as fast as both at once
    x = points[..., 0] / z * focal[0] + princpt[0]
    y = points[..., 1] / z * focal[1] + princpt[1]
    return np.stack([x, y, z], -1)


def pixel2cam(points: np.ndarray, focal: ArrayLike, princpt: ArrayLike) -> np.ndarray:
    """The inverse of cam2pixel: (..., 3) x, y in pixels and depth z in metres -> (..., 3) metres in camera space."""
    focal = np.asarray(focal)
    princpt = np.asarray(princpt)
    z = points[..., 2]
    x = (points[..., 0] - princpt[..., 0]) / focal[..., 0] * z
    y = (points[..., 1] - princpt[..., 1]) / focal[..., 1] * z
    return np.stack([x, y, z], -1)


def rotate_pose(pose: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Axis-angle pose (K*3,) with its root turned by a matrix (3, 3) from the left: the body seen from a new frame."""
    root = rotation @ cv2.Rodrigues(np.asarray(pose[:3], np.float64))[0]
    return np.concatenate([cv2.Rodrigues(root)[0][:, 0], pose[3:]])


def world2cam_trans(trans: np.ndarray, root_joint: np.ndarray, R: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Translation in camera space that belongs to a root rotation composed with R.

    A body model turns about its root joint, not about the origin:
    R (V + trans) + t = (R (V - root) + root) + [R trans + t - root + R root], and the bracket is returned.

    Args:
        trans: (3,) metres, in the world.
        root_joint: (3,) metres, before translation.
        R: (3, 3) world-to-camera rotation.
        t: (3,) metres, world-to-camera translation.
    Returns:
        (3,) metres.
    """
    return R @ trans + t - root_joint + R @ root_joint


def z_rotation(degrees: float) -> np.ndarray:
    """Rotation (3, 3) about the optical axis: from x (right) towards y (down)."""
    c = np.cos(np.deg2rad(degrees))
    s = np.sin(np.deg2rad(degrees))
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def flip_pose(pose: np.ndarray, flip_order: np.ndarray) -> np.ndarray:
    """Mirror an axis-angle pose (K*3,) in the plane x = 0.

    Left and right joints change places (flip_order: (K,) indices), and the rotation of each joint is mirrored.
    """
    return (pose.reshape(-1, 3)[flip_order] * (1, -1, -1)).reshape(-1)


def flip_shift_x(root: np.ndarray, camera: Camera, width: int) -> float:
    """Shift along x that completes the flip of a body whose root stays in place.

    The middle between the old and the new root is then seen in the middle column of the image.

    Args:
        root: (3,) metres.
        camera: Of the image.
        width: Of the image, pixels.
    Returns:
        Metres.
    """
    middle = ((width - 1) / 2 - camera.princpt[0]) / camera.focal[0] * root[2]
    return 2 * middle - 2 * root[0]


def depth_from_box(bbox: Numbers, focal: Numbers, box_size: float) -> float:
    """Depth (metres) at which a square of `box_size` metres fills the area of a processed box (4,) xywh (pixels)."""
    return float(box_size * np.sqrt(focal[0] * focal[1] / (bbox[2] * bbox[3])))


def rigid_align(source: ArrayLike, target: ArrayLike) -> np.ndarray:
    """Move `source` onto `target` by the best similarity: scale, rotation without reflection, translation.

    Umeyama, 1991. Degenerate input (fewer than three distinct points) gives some best alignment, never NaN; NaN comes
    out only where it went in.

    Args:
        source: (..., N, 3).
        target: (..., N, 3) in the same unit.
    Returns:
        The moved source, (..., N, 3).
    """
    s = _axes_first(source)
    t = _axes_first(target)
    with np.errstate(invalid='ignore', over='ignore'):
        mean_s = s.mean(-1, keepdims=True)
        mean_t = t.mean(-1, keepdims=True)
        s = s - mean_s
        t = t - mean_t
        product = t @ np.swapaxes(s, -1, -2)
        variance = np.einsum('...in,...in->...', s, s)
    # the decomposition does not take NaN
    known = np.isfinite(product).all((-1, -2)) & np.isfinite(variance)
    u, d, vt = np.linalg.svd(np.where(known[..., None, None], product, 0))
    sign = np.ones_like(d)
    # a reflection would make a mirrored pose look right
    sign[..., -1] = np.where(np.linalg.det(u @ vt) < 0, -1, 1)
    scale = np.where(known, (d * sign).sum(-1) / np.where(variance > 0, variance, 1), np.nan)
    rotation = scale[..., None, None] * ((u * sign[..., None, :]) @ vt)
    return np.swapaxes(rotation @ s + mean_t, -1, -2)


def _axes_first(points: ArrayLike) -> np.ndarray:
    """(..., N, 3) -> (..., 3, N) float64, contiguous: one axis after the other in memory is three times as fast."""
    return np.ascontiguousarray(np.swapaxes(np.asarray(points), -1, -2), np.float64)
