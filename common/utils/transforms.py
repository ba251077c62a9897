"""Cameras, world-to-camera composition of body-model parameters, mirror flips, alignment. Metres, pixels, radians."""
import cv2
import numpy as np


def world2cam(points, R, t):
    """World points (..., 3) -> camera space R x + t; R (3, 3), t (3,) in the unit of the points."""
    return points @ np.transpose(R) + t


def cam2pixel(points, focal, princpt):
    """Camera space (..., 3) metres -> (..., 3): x, y in pixels, and the depth z as it was. focal, princpt: (2,)."""
    z = points[..., 2]  # an axis at a time: seven times as fast as both at once
    return np.stack([points[..., axis] / z * focal[axis] + princpt[axis] for axis in (0, 1)] + [z], -1)


def pixel2cam(points, focal, princpt):
    """The inverse of cam2pixel: (..., 3) x, y in pixels and depth z in metres -> (..., 3) metres in camera space."""
    z, focal, princpt = points[..., 2], np.asarray(focal), np.asarray(princpt)
    xy = [(points[..., i] - princpt[..., i]) / focal[..., i] * z for i in (0, 1)]
    return np.stack([*xy, z], -1)


def apply_affine(trans, points):
    """Apply a (2, 3) affine to the x, y of points (..., >= 2); further columns are dropped. Returns (..., 2)."""
    return points[..., :2] @ trans[:, :2].T + trans[:, 2]


def rotate_pose(pose, rotation):
    """Axis-angle pose (K*3,) with its root turned by a matrix (3, 3) from the left: the body seen from a new frame."""
    root = rotation @ cv2.Rodrigues(np.asarray(pose[:3], np.float64))[0]
    return np.concatenate([cv2.Rodrigues(root)[0][:, 0], pose[3:]])


def world2cam_trans(trans, root_joint, R, t):
    """Translation (3,) metres in camera space that belongs to a root rotation composed with R.

    A body model turns about its root joint, at `root_joint` (3,) metres before translation, and not about the origin:
    R (V + trans) + t = (R (V - root) + root) + [R trans + t - root + R root], and the bracket is returned.
    """
    return R @ trans + t - root_joint + R @ root_joint


def z_rotation(degrees):
    """Rotation (3, 3) about the optical axis: from x (right) towards y (down)."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def flip_pose(pose, flip_order):
    """Mirror an axis-angle pose (K*3,): left and right joints change places (flip_order: (K,) indices), and the
    rotation of each joint is mirrored in the plane x = 0. Returns (K*3,)."""
    return (pose.reshape(-1, 3)[flip_order] * (1, -1, -1)).reshape(-1)


def flip_shift_x(root, camera, width):
    """Shift (metres) along x that completes the flip of a body whose root stays at `root` (3,) metres: the middle
    between old and new root is then seen in the middle column of a picture `width` pixels wide."""
    middle = ((width - 1) / 2 - camera.princpt[0]) / camera.focal[0] * root[2]
    return 2 * middle - 2 * root[0]


def depth_from_box(bbox, focal, box_size):
    """Depth (metres) at which a square of `box_size` metres fills the area of a processed box (4,) xywh (pixels)."""
    return float(box_size * np.sqrt(focal[0] * focal[1] / (bbox[2] * bbox[3])))


def rigid_align(source, target):
    """Move `source` onto `target` by the best similarity: scale, rotation without reflection, translation.

    source, target: (..., N, 3) in one unit. Returns the moved source, (..., N, 3). Umeyama, 1991. Degenerate input
    (fewer than three distinct points) gives some best alignment, never NaN; NaN comes out only where it went in.
    """
    # an axis after the other in memory: three times as fast
    s, t = (np.ascontiguousarray(np.swapaxes(x, -1, -2), np.float64) for x in (source, target))
    with np.errstate(invalid='ignore', over='ignore'):
        mean_s, mean_t = s.mean(-1, keepdims=True), t.mean(-1, keepdims=True)
        s, t = s - mean_s, t - mean_t
        product = t @ np.swapaxes(s, -1, -2)
        variance = np.einsum('...in,...in->...', s, s)
    known = np.isfinite(product).all((-1, -2)) & np.isfinite(variance)  # the decomposition does not take NaN
    u, d, vt = np.linalg.svd(np.where(known[..., None, None], product, 0))
    sign = np.ones_like(d)
    sign[..., -1] = np.where(np.linalg.det(u @ vt) < 0, -1, 1)  # a reflection would make a mirrored pose look right
    scale = np.where(known, (d * sign).sum(-1) / np.where(variance > 0, variance, 1), np.nan)
    rotation = scale[..., None, None] * ((u * sign[..., None, :]) @ vt)
    return np.swapaxes(rotation @ s + mean_t, -1, -2)
