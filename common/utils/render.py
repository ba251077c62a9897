"""Drawing a triangle mesh with vertex colours and a z-buffer, by `cv2.triangleRasterize`: no OpenGL, no display.

Camera axes are OpenCV's: x right, y down, z forward, metres; a pixel's centre lies at its integer coordinate.
"""
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import ArrayLike

NEAR_LIMIT = 1e-3  # metres; faces that reach closer to the camera plane than this are not drawn


def vertex_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Unit normals (V, 3) of vertices (V, 3) of a mesh with faces (F, 3): area-weighted means of the faces around."""
    a = vertices[faces[:, 0]]
    u = vertices[faces[:, 1]] - a
    v = vertices[faces[:, 2]] - a
    face_normal = np.stack([u[:, 1] * v[:, 2] - u[:, 2] * v[:, 1],
                            u[:, 2] * v[:, 0] - u[:, 0] * v[:, 2],
                            u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]])
    corner = faces.T.ravel()
    normal = np.stack([np.bincount(corner, np.tile(n, 3), len(vertices)) for n in face_normal], axis=1)
    return (normal / (np.linalg.norm(normal, axis=1, keepdims=True) + 1e-12)).astype(vertices.dtype)


def rasterise(vertices: ArrayLike, faces: ArrayLike, colors: ArrayLike, focal: ArrayLike,
              princpt: ArrayLike, size: tuple[int, int], supersample: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Draw a mesh with interpolated vertex colours.

    Faces with a vertex that is not finite or not in front of the camera are left out.

    Args:
        vertices: (V, 3) metres, camera space.
        faces: (F, 3) vertex indices.
        colors: (V, 3) in 0..1, any channel order.
        focal: (2,) pixels.
        princpt: (2,) pixels.
        size: (height, width) pixels.
        supersample: Samples per pixel and axis.
    Returns:
        rgb: (H, W, 3) float32 in 0..1, already multiplied by the coverage.
        coverage: (H, W) float32 in 0..1.
    Raises:
        ValueError: Face indices outside 0..V-1.
    """
    rgb = np.zeros((*size, 3), np.float32)
    coverage = np.zeros(size, np.float32)
    vertices, faces = _drawable(vertices, faces)
    if len(faces) == 0:
        return rgb, coverage
    x0, y0, x1, y1 = _pixel_box(vertices, faces, focal, princpt, size)
    if x1 <= x0 or y1 <= y0:
        return rgb, coverage
    # Shift by half a pixel: inside the box, image coordinates run from the left edge of pixel x0.
    center = (np.asarray(princpt, np.float64) - (x0, y0) + 0.5) * supersample
    box = ((y1 - y0) * supersample, (x1 - x0) * supersample)
    box_rgb, depth = _zbuffer(vertices, faces, np.asarray(colors, np.float32),
                              np.asarray(focal, np.float64) * supersample, center, box)
    box_coverage = np.isfinite(depth).astype(np.float32)
    if supersample > 1:
        small = (x1 - x0, y1 - y0)
        box_rgb = cv2.resize(box_rgb, small, interpolation=cv2.INTER_AREA)
        box_coverage = cv2.resize(box_coverage, small, interpolation=cv2.INTER_AREA)
    rgb[y0:y1, x0:x1] = box_rgb
    coverage[y0:y1, x0:x1] = box_coverage
    return rgb, coverage


def _drawable(vertices: ArrayLike, faces: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Vertices as float32 without non-finite values, and the faces (int32) that lie wholly in front of the camera."""
    vertices = np.asarray(vertices, np.float32)
    faces = np.asarray(faces)
    if faces.ndim != 2 or faces.shape[1] != 3:
        raise ValueError(f'faces must have the shape (F, 3), not {faces.shape}')
    if faces.size and (faces.min() < 0 or faces.max() >= len(vertices)):  # OpenCV would read foreign memory
        raise ValueError(f'face indices {faces.min()}..{faces.max()} do not fit a mesh of {len(vertices)} vertices')
    faces = faces.astype(np.int32)
    good = np.isfinite(vertices).all(1) & (vertices[:, 2] > NEAR_LIMIT)
    if good.all():
        return vertices, faces
    vertices = np.where(good[:, None], vertices, np.array([0, 0, 1], np.float32))
    return vertices, faces[good[faces].all(1)]


def _pixel_box(vertices: np.ndarray, faces: np.ndarray, focal: ArrayLike, princpt: ArrayLike,
               size: Sequence[int]) -> tuple[int, int, int, int]:
    """x0, y0, x1, y1 (exclusive) of the pixels that the drawn faces can touch, inside the image."""
    used = vertices
    if len(faces) * 3 <= len(vertices):
        used = vertices[np.unique(faces)]
    pixel = used[:, :2].astype(np.float64) / used[:, 2:] * focal + princpt
    limit = np.array(size[::-1])
    low = np.clip(np.floor(pixel.min(0)), 0, limit).astype(int)
    high = np.clip(np.ceil(pixel.max(0)) + 1, 0, limit).astype(int)
    return low[0], low[1], high[0], high[1]


def _zbuffer(vertices: np.ndarray, faces: np.ndarray, colors: np.ndarray, focal: np.ndarray,
             center: np.ndarray, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """rgb (h, w, 3), depth (h, w) metres, inf where nothing is; pixel (i, j) is sampled at (j + 0.5, i + 0.5).

    OpenCV takes OpenGL axes, one field of view and a centred principal point: the rest of the camera goes into the
    vertices. Its float32 z-buffer needs tight planes, and empty pixels return only about the far depth.
    """
    height, width = size
    z = vertices[:, 2]
    near = max(0.5 * float(z.min()), NEAR_LIMIT)
    far = 2 * float(z.max())
    x = (focal[0] * vertices[:, 0] + (center[0] - width / 2) * z) / focal[1]
    y = vertices[:, 1] + (center[1] - height / 2) / focal[1] * z
    points = np.stack([x, -y, -z], axis=1).astype(np.float32)
    settings = cv2.TriangleRasterizeSettings()
    settings.setShadingType(cv2.RASTERIZE_SHADING_SHADED)
    settings.setCullingMode(cv2.RASTERIZE_CULLING_NONE)  # open meshes show their inside
    view_angle = float(2 * np.arctan(height / 2 / focal[1]))
    rgb, depth = cv2.triangleRasterize(
        points[None], np.ascontiguousarray(faces)[None], np.ascontiguousarray(colors)[None],
        np.zeros((height, width, 3), np.float32), np.full((height, width), far, np.float32),
        np.eye(4, dtype=np.float32)[:3], view_angle, near, far, settings)
    depth[depth >= 0.99 * far] = np.inf
    return rgb, depth
