"""A z-buffer in NumPy: exact, slow, and independent of OpenCV's."""
import numpy as np


def zbuffer(vertices, faces, colors, focal, center, size, chunk=1 << 20):
    """rgb (h, w, 3) and depth (h, w) of a mesh, as render._zbuffer draws it; `chunk` samples are handled at a time."""
    height, width = size
    depth, rgb = np.full(height * width, np.inf), np.zeros((height * width, 3), np.float32)
    inverse = 1 / vertices[:, 2].astype(np.float64)
    tri = (vertices[:, :2] * inverse[:, None] * focal + center)[faces]  # (F, 3 corners, 2) pixels
    low = np.clip(np.ceil(tri.min(1) - 0.5), 0, (width, height)).astype(np.int64)
    span = np.clip(np.floor(tri.max(1) - 0.5) + 1, 0, (width, height)).astype(np.int64) - low
    count = np.where((span > 0).all(1), span.prod(1), 0)
    group = np.cumsum(count) // chunk
    for g in np.unique(group[count > 0]):
        member = np.flatnonzero((group == g) & (count > 0))
        face = np.repeat(member, count[member])
        step = np.arange(len(face)) - np.repeat(np.cumsum(count[member]) - count[member], count[member])
        col, row = low[face, 0] + step % span[face, 0], low[face, 1] + step // span[face, 0]
        weight = _barycentric(tri[face], np.stack([col, row], axis=1) + 0.5)
        inside = (weight >= 0).all(1)
        face, weight, where = face[inside], weight[inside], (row * width + col)[inside]
        weight *= inverse[faces[face]]  # perspective: 1/z is linear on the screen
        z = 1 / weight.sum(1)
        order = np.lexsort((z, where))
        nearest = order[np.r_[True, np.diff(where[order]) > 0]] if len(order) else order
        nearest = nearest[z[nearest] < depth[where[nearest]]]
        depth[where[nearest]] = z[nearest]
        rgb[where[nearest]] = np.einsum('nk,nkc->nc', weight[nearest] * z[nearest, None], colors[faces[face[nearest]]])
    return rgb.reshape(height, width, 3), depth.reshape(height, width).astype(np.float32)


def _barycentric(tri, point):
    """Weights (N, 3) of the corners tri (N, 3, 2) at point (N, 2); negative outside, -1 for empty triangles."""
    def cross(a, b):
        return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]

    a, b, c = (tri[:, k] - point for k in range(3))
    weight = np.stack([cross(b, c), cross(c, a), cross(a, b)], axis=1)
    area = weight.sum(1, keepdims=True)
    return np.where(area == 0, -1, weight / np.where(area == 0, 1, area))
