"""Drawing results: shaded meshes, vertices, skeletons and boxes over a photo, side views, and the OBJ text of a mesh.

Pictures are (H, W, 3) uint8 RGB and are never changed in place. Pixels: a centre lies at its integer coordinate.
"""
import cv2
import numpy as np

from common.utils.render import rasterise, vertex_normals

# Colours of several people, told apart also by the colour-blind; the first is the usual blue-grey of mesh pictures.
PALETTE = ((166, 189, 219), (244, 165, 96), (127, 191, 123), (231, 138, 195), (255, 217, 47), (102, 194, 165),
           (175, 141, 195), (229, 196, 148))
STRIP = 1 << 22  # samples of a picture that are drawn at a time: bounds the memory for huge photos


def person_color(number):
    """Colour (3,) 0..255 RGB of the person with this number."""
    return PALETTE[number % len(PALETTE)]


def shade(vertices, faces, color):
    """Vertex colours (V, 3) in 0..1 of a mesh (V, 3) in camera space, lit by a lamp at the camera."""
    vertices = np.nan_to_num(np.asarray(vertices, np.float32), nan=0., posinf=0., neginf=0.)
    view = -vertices / (np.linalg.norm(vertices, axis=1, keepdims=True) + 1e-12)
    facing = np.clip((vertex_normals(vertices, faces) * view).sum(1), 0, 1)
    return (0.3 + 0.7 * facing)[:, None] * np.asarray(color, np.float32) / 255


def draw_meshes(img, meshes, faces, focal, princpt, colors=None, alpha=0.9, supersample=2):
    """Draw several meshes of one topology over a picture with one z-buffer, so that the nearer hides the farther.

    meshes: list of (V, 3) metres in camera space; faces (F, 3); focal, princpt (2,) pixels; colors: one RGB each (None:
    the palette's). Huge pictures are drawn strip by strip.
    """
    out = img.copy()
    if not len(meshes):
        return out
    colors = [person_color(i) for i in range(len(meshes))] if colors is None else colors
    shades = np.concatenate([shade(v, faces, c) for v, c in zip(meshes, colors, strict=True)])
    vertices = np.concatenate(meshes).astype(np.float32)
    faces = np.concatenate([faces + i * len(meshes[0]) for i in range(len(meshes))])
    x0, y0, x1, y1 = _seen_box(vertices, focal, princpt, img.shape[:2])
    rows = max(STRIP // max((x1 - x0) * supersample ** 2, 1), 1)
    for top in range(y0, y1, rows):
        strip = out[top:min(top + rows, y1), x0:x1]
        center = (princpt[0] - x0, princpt[1] - top)
        rgb, coverage = rasterise(vertices, faces, shades, focal, center, strip.shape[:2], supersample)
        drawn = strip * (1 - alpha * coverage[..., None]) + rgb * (255 * alpha)
        strip[:] = np.clip(drawn + 0.5, 0, 255).astype(np.uint8)
    return out


def draw_points(img, pixels, color, radius=None):
    """Draw the points (N, 2), in pixels, as dots; radius None: by the size of the picture."""
    out = np.ascontiguousarray(img).copy()
    radius = max(1, round(max(img.shape[:2]) / 800)) if radius is None else radius
    for x, y in _drawable(pixels):
        cv2.circle(out, (int(x), int(y)), radius, color, -1)
    return out


def draw_skeleton(img, pixels, skeleton, thickness=None):
    """Draw joints (J, 2), in pixels, and the bones between them: index pairs, coloured along the rainbow."""
    out = np.ascontiguousarray(img).copy()
    thickness = max(1, round(max(img.shape[:2]) / 300)) if thickness is None else thickness
    hue = np.linspace(0, 170, max(len(skeleton), 1)).astype(np.uint8)
    colors = cv2.cvtColor(np.stack([hue, np.full_like(hue, 200), np.full_like(hue, 255)], -1)[None], cv2.COLOR_HSV2RGB)
    pixels = _drawable(pixels)
    for (a, b), color in zip(skeleton, colors[0].tolist(), strict=True):
        cv2.line(out, *(tuple(int(v) for v in pixels[j]) for j in (a, b)), color, thickness, cv2.LINE_AA)
    for x, y in pixels:
        cv2.circle(out, (int(x), int(y)), thickness + 1, (255, 255, 255), -1, cv2.LINE_AA)
    return out


def draw_box(img, box, color, thickness=None):
    """Draw the outline of a (4,) xywh box."""
    out = np.ascontiguousarray(img).copy()
    thickness = max(1, round(max(img.shape[:2]) / 300)) if thickness is None else thickness
    x, y, w, h = (round(float(v)) for v in box)
    return cv2.rectangle(out, (x, y), (x + w, y + h), color, thickness)


def render_view(vertices, faces, size, yaw_deg, color=PALETTE[0]):
    """The mesh alone on white, turned by `yaw_deg` degrees about the vertical axis (90: seen from its side).

    vertices (V, 3) metres in camera space; size (height, width) pixels. The mesh is centred and fills 90 %.
    """
    height, width = size
    angle = np.deg2rad(yaw_deg)
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    turned = (vertices - (vertices.max(0) + vertices.min(0)) / 2) @ turn.T
    low, high = turned.min(0), turned.max(0)
    extent = np.maximum(high - low, 1e-6)
    distance = 10 * extent.max()  # far away: hardly any perspective
    focal = 0.9 * min(width / extent[0], height / extent[1]) * (distance - extent[2] / 2)
    turned = turned - [(high[0] + low[0]) / 2, (high[1] + low[1]) / 2, -distance]
    white = np.full((height, width, 3), 255, np.uint8)
    return draw_meshes(white, [turned], faces, (focal, focal), ((width - 1) / 2, (height - 1) / 2), [color], alpha=1.)


def panels(pictures, titles, height=480):
    """One picture of several side by side at the same height, each under its title."""
    bar, gap = 28, 6
    columns = []
    for picture, title in zip(pictures, titles, strict=True):
        width = min(max(round(picture.shape[1] * height / picture.shape[0]), 120), 4 * height)
        scaled = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
        head = np.full((bar, width, 3), 255, np.uint8)
        cv2.putText(head, title, (4, 20), cv2.FONT_HERSHEY_SIMPLEX, 0.55, (0, 0, 0), 1, cv2.LINE_AA)
        columns += [np.concatenate([head, scaled]), np.full((height + bar, gap, 3), 255, np.uint8)]
    return np.concatenate(columns[:-1], axis=1)


def obj_text(vertices, faces):
    """A mesh as Wavefront OBJ: vertices (V, 3) metres in camera space, as they are; faces (F, 3) counted from 1."""
    vertex_lines = '\n'.join(f'v {x:.6f} {y:.6f} {z:.6f}' for x, y, z in np.asarray(vertices).tolist())
    face_lines = '\n'.join(f'f {a} {b} {c}' for a, b, c in (np.asarray(faces) + 1).tolist())
    return f'# metres, camera space: x right, y down, z forward\n{vertex_lines}\n{face_lines}\n'


def _seen_box(vertices, focal, princpt, size):
    """x0, y0, x1, y1 (exclusive): the part of a picture of `size` (height, width) that vertices can be seen in."""
    front = vertices[np.isfinite(vertices).all(1) & (vertices[:, 2] > 0)].astype(np.float64)
    if not len(front):
        return 0, 0, 0, 0
    pixels = front[:, :2] / front[:, 2:] * focal + princpt
    low = np.clip(np.floor(pixels.min(0)) - 1, 0, size[::-1]).astype(int)
    high = np.clip(np.ceil(pixels.max(0)) + 2, 0, size[::-1]).astype(int)
    return *low.tolist(), *high.tolist()


def _drawable(pixels):
    """(N, 2) -> (N, 2) integers in a range that OpenCV's drawing takes; non-finite values leave the picture."""
    pixels = np.nan_to_num(np.asarray(pixels, np.float64)[:, :2], nan=-1e4, posinf=-1e4, neginf=-1e4)
    return np.rint(np.clip(pixels, -30000, 30000)).astype(int)
