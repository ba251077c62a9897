"""Pictures of a triangle mesh: `rasterise` (vertex colours, z-buffer) and `overlay_mesh` (shaded mesh over a photo).

Camera axes are OpenCV's: x right, y down, z forward, metres; a pixel's centre lies at its integer coordinate. The work
is done by `cv2.triangleRasterize` (OpenCV >= 5), else by an exact but slower numpy z-buffer. No OpenGL, no display.
"""
import cv2
import numpy as np

NEAR_LIMIT = 1e-3  # metres; faces that reach closer to the camera plane than this are not drawn


def vertex_normals(vertices, faces):
    """Unit normals (V, 3) of vertices (V, 3) of a mesh with faces (F, 3): area-weighted means of the faces around."""
    a, b, c = vertices[faces[:, 0]], vertices[faces[:, 1]], vertices[faces[:, 2]]
    u, v = b - a, c - a
    face_normal = np.stack([u[:, 1] * v[:, 2] - u[:, 2] * v[:, 1],
                            u[:, 2] * v[:, 0] - u[:, 0] * v[:, 2],
                            u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]])
    corner = faces.T.ravel()
    normal = np.stack([np.bincount(corner, np.tile(n, 3), len(vertices)) for n in face_normal], axis=1)
    return (normal / (np.linalg.norm(normal, axis=1, keepdims=True) + 1e-12)).astype(vertices.dtype)


def rasterise(vertices, faces, colors, focal, princpt, size, supersample=1):
    """Draw a mesh with interpolated vertex colours.

    vertices (V, 3) metres, camera space; faces (F, 3) integer; colors (V, 3) in 0..1, any channel order; focal (2,),
    princpt (2,) pixels; size (height, width) pixels; supersample: samples per pixel and axis.
    Returns rgb (H, W, 3) float32 in 0..1, already multiplied by the coverage, and coverage (H, W) float32 in 0..1.
    Faces with a vertex that is not finite or not in front of the camera are left out.
    Raises ValueError for face indices outside 0..V-1.
    """
    height, width = size
    rgb, coverage = np.zeros((height, width, 3), np.float32), np.zeros((height, width), np.float32)
    vertices, faces = _drawable(vertices, faces)
    if len(faces) == 0:
        return rgb, coverage
    x0, y0, x1, y1 = _pixel_box(vertices, faces, focal, princpt, size)
    if x1 <= x0 or y1 <= y0:
        return rgb, coverage
    # Shift by half a pixel: inside the box, image coordinates run from the left edge of pixel x0.
    focal = np.asarray(focal, np.float64) * supersample
    center = (np.asarray(princpt, np.float64) - (x0, y0) + 0.5) * supersample
    box = ((y1 - y0) * supersample, (x1 - x0) * supersample)
    draw = _zbuffer_opencv if hasattr(cv2, 'triangleRasterize') else _zbuffer_numpy
    box_rgb, depth = draw(vertices, faces, np.asarray(colors, np.float32), focal, center, box)
    box_coverage = np.isfinite(depth).astype(np.float32)
    if supersample > 1:
        small = (x1 - x0, y1 - y0)
        box_rgb = cv2.resize(box_rgb, small, interpolation=cv2.INTER_AREA)
        box_coverage = cv2.resize(box_coverage, small, interpolation=cv2.INTER_AREA)
    rgb[y0:y1, x0:x1], coverage[y0:y1, x0:x1] = box_rgb, box_coverage
    return rgb, coverage


def overlay_mesh(img, vertices, faces, focal, princpt, color=(166, 189, 219), alpha=0.9, supersample=2):
    """Draw a mesh over a photo, lit from the camera.

    img (H, W, 3) uint8; vertices (V, 3) metres, camera space; faces (F, 3); focal, princpt (2,) pixels; color: the
    mesh's, 0..255, in the image's channel order; alpha: its opacity. Returns a new image (H, W, 3) uint8.
    """
    vertices = np.asarray(vertices, np.float32)
    _check_faces(faces, len(vertices))
    finite = np.nan_to_num(vertices, nan=0.0, posinf=0.0, neginf=0.0)
    view = -finite / (np.linalg.norm(finite, axis=1, keepdims=True) + 1e-12)
    facing = np.clip((vertex_normals(finite, np.asarray(faces)) * view).sum(1), 0, 1)
    colors = (0.3 + 0.7 * facing)[:, None] * np.asarray(color, np.float32) / 255
    rgb, coverage = rasterise(vertices, faces, colors, focal, princpt, img.shape[:2], supersample)
    out = img * (1 - alpha * coverage[..., None]) + rgb * (255 * alpha)
    return np.clip(out + 0.5, 0, 255).astype(np.uint8)


def _check_faces(faces, vertex_num):
    """Raise ValueError unless all indices are in 0..vertex_num-1: OpenCV would read foreign memory."""
    faces = np.asarray(faces)
    if faces.ndim != 2 or faces.shape[1] != 3:
        raise ValueError(f'faces must have the shape (F, 3), not {faces.shape}')
    if faces.size and (faces.min() < 0 or faces.max() >= vertex_num):
        raise ValueError(f'face indices {faces.min()}..{faces.max()} do not fit a mesh of {vertex_num} vertices')


def _drawable(vertices, faces):
    """Vertices as float32 without non-finite values, and the faces (int32) that lie wholly in front of the camera."""
    vertices = np.asarray(vertices, np.float32)
    _check_faces(faces, len(vertices))
    faces = np.asarray(faces, np.int32)
    good = np.isfinite(vertices).all(1) & (vertices[:, 2] > NEAR_LIMIT)
    if good.all():
        return vertices, faces
    return np.where(good[:, None], vertices, np.float32([0, 0, 1])), faces[good[faces].all(1)]


def _pixel_box(vertices, faces, focal, princpt, size):
    """x0, y0, x1, y1 (exclusive) of the pixels that the drawn faces can touch, inside the image."""
    used = vertices if len(faces) * 3 > len(vertices) else vertices[np.unique(faces)]
    pixel = used[:, :2].astype(np.float64) / used[:, 2:] * focal + princpt
    limit = np.array(size[::-1])
    low = np.clip(np.floor(pixel.min(0)), 0, limit).astype(int)
    high = np.clip(np.ceil(pixel.max(0)) + 1, 0, limit).astype(int)
    return low[0], low[1], high[0], high[1]


def _zbuffer_opencv(vertices, faces, colors, focal, center, size):
    """rgb (h, w, 3), depth (h, w) metres, inf where nothing is; pixel (i, j) is sampled at (j + 0.5, i + 0.5).

    OpenCV takes OpenGL axes, one field of view and a centred principal point: the rest of the camera goes into the
    vertices. Its float32 z-buffer needs tight planes, and empty pixels return only about the far depth.
    """
    height, width = size
    z = vertices[:, 2]
    near, far = max(0.5 * float(z.min()), NEAR_LIMIT), 2 * float(z.max())
    x = (focal[0] * vertices[:, 0] + (center[0] - width / 2) * z) / focal[1]
    y = vertices[:, 1] + (center[1] - height / 2) / focal[1] * z
    points = np.stack([x, -y, -z], axis=1).astype(np.float32)
    settings = cv2.TriangleRasterizeSettings()
    settings.setShadingType(cv2.RASTERIZE_SHADING_SHADED)
    settings.setCullingMode(cv2.RASTERIZE_CULLING_NONE)  # open meshes show their inside
    rgb, depth = cv2.triangleRasterize(
        points[None], np.ascontiguousarray(faces)[None], np.ascontiguousarray(colors)[None],
        np.zeros((height, width, 3), np.float32), np.full((height, width), far, np.float32),
        np.eye(4, dtype=np.float32)[:3], float(2 * np.arctan(height / 2 / focal[1])), near, far, settings)
    depth[depth >= 0.99 * far] = np.inf
    return rgb, depth


def _zbuffer_numpy(vertices, faces, colors, focal, center, size, chunk=1 << 20):
    """The same as `_zbuffer_opencv` in numpy; chunk: candidate samples handled at a time, which bounds the memory."""
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
