"""Drawing results: shaded meshes, vertices, skeletons and boxes over a photo, side views, and the OBJ text of a mesh.

Images are (H, W, 3) uint8 RGB and are never changed in place. Pixels: a centre lies at its integer coordinate.
"""
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import ArrayLike

from common.utils.render import rasterise, vertex_normals

Color = Sequence[int]  # RGB, 0..255

# Colours of several people, told apart also by the colour-blind; the first is the usual blue-grey of mesh images.
PALETTE = ((166, 189, 219), (244, 165, 96), (127, 191, 123), (231, 138, 195), (255, 217, 47), (102, 194, 165),
           (175, 141, 195), (229, 196, 148))
OBJ_AXES = {'y_up': 'metres: x right, y up, z towards the camera, which stands in the origin',
            'camera': 'metres, camera space: x right, y down, z forward'}
STRIP = 1 << 22  # samples of an image that are drawn at a time: bounds the memory for huge photos


def person_color(number: int) -> Color:
    """Colour (3,) 0..255 RGB of the person with this number."""
    return PALETTE[number % len(PALETTE)]


def shade(vertices: ArrayLike, faces: np.ndarray, color: Color) -> np.ndarray:
    """Vertex colours (V, 3) in 0..1 of a mesh (V, 3) in camera space, lit by a lamp at the camera."""
    finite = np.nan_to_num(np.asarray(vertices, np.float32), nan=0., posinf=0., neginf=0.)
    view = -finite / (np.linalg.norm(finite, axis=1, keepdims=True) + 1e-12)
    facing = np.clip((vertex_normals(finite, faces) * view).sum(1), 0, 1)
    return (0.3 + 0.7 * facing)[:, None] * np.asarray(color, np.float32) / 255


def draw_meshes(img: np.ndarray, meshes: Sequence[np.ndarray], faces: np.ndarray, focal: ArrayLike,
                princpt: ArrayLike, colors: Sequence[Color] | None = None, alpha: float = 0.9,
                supersample: int = 2) -> np.ndarray:
    """Draw several meshes of one topology over an image with one z-buffer, so that the nearer hides the farther.

    Huge images are drawn strip by strip.

    Args:
        img: (H, W, 3) uint8 RGB.
        meshes: Each (V, 3) metres in camera space.
        faces: (F, 3) vertex indices.
        focal: (2,) pixels.
        princpt: (2,) pixels.
        colors: One for each mesh; None: the palette's.
        alpha: Opacity, 0..1.
        supersample: Samples per pixel and axis.
    Returns:
        (H, W, 3) uint8 RGB.
    """
    out = img.copy()
    if not len(meshes):
        return out
    if colors is None:
        colors = [person_color(i) for i in range(len(meshes))]
    shades = np.concatenate([shade(v, faces, c) for v, c in zip(meshes, colors, strict=True)])
    vertices = np.concatenate(meshes).astype(np.float32)
    all_faces = np.concatenate([faces + i * len(meshes[0]) for i in range(len(meshes))])
    x0, y0, x1, y1 = _seen_box(vertices, focal, princpt, img.shape[:2])
    center_x, center_y = np.asarray(princpt)
    rows = max(STRIP // max((x1 - x0) * supersample ** 2, 1), 1)
    for top in range(y0, y1, rows):
        strip = out[top:min(top + rows, y1), x0:x1]
        center = (center_x - x0, center_y - top)
        rgb, coverage = rasterise(vertices, all_faces, shades, focal, center, strip.shape[:2], supersample)
        drawn = strip * (1 - alpha * coverage[..., None]) + rgb * (255 * alpha)
        strip[:] = np.clip(drawn + 0.5, 0, 255).astype(np.uint8)
    return out


def draw_points(img: np.ndarray, pixels: ArrayLike, color: Color, radius: int | None = None) -> np.ndarray:
    """Draw points (N, 2), in pixels, as dots; radius None: by the size of the image."""
    out = np.ascontiguousarray(img).copy()
    if radius is None:
        radius = _line_width(img, 800)
    for x, y in _drawable(pixels):
        cv2.circle(out, (x, y), radius, color, -1)
    return out


def draw_skeleton(img: np.ndarray, pixels: ArrayLike, skeleton: Sequence[tuple[int, int]],
                  confidence: Sequence[float | None] | None = None, thickness: int | None = None) -> np.ndarray:
    """Draw joints, and the bones between them, coloured along the rainbow.

    Args:
        img: (H, W, 3) uint8 RGB.
        pixels: (J, 2).
        skeleton: Index pairs.
        confidence: (J,) 0..1, which colours the joints from red to green; None, also for some: white.
        thickness: Pixels; None: by the size of the image.
    """
    out = np.ascontiguousarray(img).copy()
    if thickness is None:
        thickness = _line_width(img, 300)
    hue = np.linspace(0, 170, max(len(skeleton), 1)).astype(np.uint8)
    hsv = np.stack([hue, np.full_like(hue, 200), np.full_like(hue, 255)], -1)
    colors = cv2.cvtColor(hsv[None], cv2.COLOR_HSV2RGB)[0].tolist()
    points = _drawable(pixels)
    for (a, b), color in zip(skeleton, colors, strict=True):
        cv2.line(out, points[a], points[b], color, thickness, cv2.LINE_AA)
    for point, value in zip(points, confidence or [None] * len(points), strict=True):
        cv2.circle(out, point, thickness + 1, confidence_color(value), -1, cv2.LINE_AA)
    return out


def confidence_color(value: float | None) -> Color:
    """From red (0) over yellow to green (1); None: white."""
    if value is None:
        return (255, 255, 255)
    share = min(max(value, 0.), 1.)
    return (round(255 * min(2 - 2 * share, 1)), round(255 * min(2 * share, 1)), 0)


def draw_box(img: np.ndarray, box: ArrayLike, color: Color, label: str = '',
             thickness: int | None = None) -> np.ndarray:
    """Draw the outline of a (4,) xywh box, with a label inside its upper left corner."""
    out = np.ascontiguousarray(img).copy()
    if thickness is None:
        thickness = _line_width(img, 300)
    x, y, w, h = (round(float(v)) for v in np.asarray(box))
    cv2.rectangle(out, (x, y), (x + w, y + h), color, thickness)
    if label:
        size = max(img.shape[:2]) / 700  # 14 pixels high for an image of 480
        corner = (max(x, 0) + 2 * thickness, max(y, 0) + round(25 * size))
        cv2.putText(out, label, corner, cv2.FONT_HERSHEY_SIMPLEX, size, color, thickness, cv2.LINE_AA)
    return out


def render_view(vertices: np.ndarray, faces: np.ndarray, size: tuple[int, int], yaw_deg: float,
                color: Color = PALETTE[0], fits_all_sides: bool = False) -> np.ndarray:
    """Draw the mesh alone on white, turned about the vertical axis, centred and filling 90 %.

    Args:
        vertices: (V, 3) metres in camera space.
        faces: (F, 3) vertex indices.
        size: (height, width) pixels.
        yaw_deg: Degrees; 90: seen from its side.
        color: Of the mesh.
        fits_all_sides: The scale is one at which the mesh fits from all sides; else from this one.
    Returns:
        (height, width, 3) uint8 RGB.
    """
    height, width = size
    c = np.cos(np.deg2rad(yaw_deg))
    s = np.sin(np.deg2rad(yaw_deg))
    turn = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    turned = (vertices - (vertices.max(0) + vertices.min(0)) / 2) @ turn.T
    low = turned.min(0)
    high = turned.max(0)
    if fits_all_sides:
        radius = np.hypot(turned[:, 0], turned[:, 2]).max()
        low[[0, 2]] = -radius
        high[[0, 2]] = radius
    extent = np.maximum(high - low, 1e-6)
    distance = 10 * extent.max()  # far away: hardly any perspective
    focal = 0.9 * min(width / extent[0], height / extent[1]) * (distance - extent[2] / 2)
    turned = turned - [(high[0] + low[0]) / 2, (high[1] + low[1]) / 2, -distance]
    white = np.full((height, width, 3), 255, np.uint8)
    return draw_meshes(white, [turned], faces, (focal, focal), ((width - 1) / 2, (height - 1) / 2), [color], alpha=1.)


def panels(images: Sequence[np.ndarray], titles: Sequence[str], height: int = 480) -> np.ndarray:
    """One image of several side by side at the same height, each under its title."""
    bar = 28
    gap = np.full((height + bar, 6, 3), 255, np.uint8)
    columns = []
    for image, title in zip(images, titles, strict=True):
        width = min(max(round(image.shape[1] * height / image.shape[0]), 120), 4 * height)
        scaled = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        head = np.full((bar, width, 3), 255, np.uint8)
        cv2.putText(head, title, (4, 20), cv2.FONT_HERSHEY_SIMPLEX, 0.55, (0, 0, 0), 1, cv2.LINE_AA)
        columns += [np.concatenate([head, scaled]), gap]
    return np.concatenate(columns[:-1], axis=1)


def obj_text(vertices: ArrayLike, faces: ArrayLike, axes: str = 'y_up') -> str:
    """A mesh as Wavefront OBJ, which counts from 1.

    Args:
        vertices: (V, 3) metres in camera space.
        faces: (F, 3) vertex indices.
        axes: One of OBJ_AXES: 'y_up' turns the vertices half round the x axis, 'camera' leaves them as they are.
    """
    points = np.asarray(vertices)
    if axes == 'y_up':
        points = points * [1, -1, -1]
    vertex_lines = '\n'.join(f'v {x:.6f} {y:.6f} {z:.6f}' for x, y, z in points.tolist())
    face_lines = '\n'.join(f'f {a} {b} {c}' for a, b, c in (np.asarray(faces) + 1).tolist())
    return f'# {OBJ_AXES[axes]}\n{vertex_lines}\n{face_lines}\n'


def _line_width(img: np.ndarray, parts: int) -> int:
    """One of so many parts of the image's longer side, at least a pixel."""
    return max(1, round(max(img.shape[:2]) / parts))


def _seen_box(vertices: np.ndarray, focal: ArrayLike, princpt: ArrayLike,
              size: tuple[int, ...]) -> tuple[int, int, int, int]:
    """x0, y0, x1, y1 (exclusive): the part of an image of `size` (height, width) that vertices can be seen in."""
    front = vertices[np.isfinite(vertices).all(1) & (vertices[:, 2] > 0)].astype(np.float64)
    if not len(front):
        return 0, 0, 0, 0
    pixels = front[:, :2] / front[:, 2:] * focal + princpt
    x0, y0 = np.clip(np.floor(pixels.min(0)) - 1, 0, size[::-1]).astype(int).tolist()
    x1, y1 = np.clip(np.ceil(pixels.max(0)) + 2, 0, size[::-1]).astype(int).tolist()
    return x0, y0, x1, y1


def _drawable(pixels: ArrayLike) -> list[list[int]]:
    """(N, 2) -> integers in a range that OpenCV's drawing takes; non-finite values are moved out of the image."""
    finite = np.nan_to_num(np.asarray(pixels, np.float64)[:, :2], nan=-1e4, posinf=-1e4, neginf=-1e4)
    return np.rint(np.clip(finite, -30000, 30000)).astype(int).tolist()
