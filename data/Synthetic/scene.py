"""Camera, light, background and the finished image around a posed mesh."""
import cv2
import numpy as np
from numpy.typing import ArrayLike

from common.utils.render import rasterise, vertex_normals
from data.Synthetic.geometry import clipped_normal, rotation_about
from data.Synthetic.wardrobe import clothing_color

# image side / person size: a box enlarged 1.25 times, and once more by the augmentation
MARGIN = 1.5625
# Range of the ambient light, and how far the main light strays from the camera.
Light = tuple[tuple[float, float], float]
SOFT_LIGHT: Light = ((.45, .7), .6)
STRONG_LIGHT: Light = ((.25, .7), 1.1)
# vertices (V, 3) metres, faces (F, 3), colours (V, 3) in 0..1
Mesh = tuple[np.ndarray, np.ndarray, np.ndarray]


def place(rng: np.random.Generator, tilt: np.ndarray, facing: np.ndarray, max_heading: float,
          distance: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Where a person or hand is and how the camera looks at it.

    Args:
        rng: Random numbers of the sample.
        tilt: (3, 3) rotation that the pose itself asks for.
        facing: (3, 3) rotation from the rest pose to one that faces the camera.
        max_heading: Largest angle to the camera, degrees.
        distance: Its range, metres.
    Returns:
        The root rotation (3, 3) in camera space and the root joint's place (3,) in metres.
    """
    heading = rng.uniform(-max_heading, max_heading)
    pitch = clipped_normal(rng, 4, 8, -15, 22)
    roll = clipped_normal(rng, 0, 4, -10, 10)
    depth = np.exp(rng.uniform(*np.log(distance)))
    right = clipped_normal(rng, 0, 1, -3, 3)
    down = clipped_normal(rng, 0, 1, -3, 3)
    camera = rotation_about((0, 0, 1), roll) @ rotation_about((1, 0, 0), pitch)
    rotation = camera @ rotation_about((0, 1, 0), -heading) @ facing @ tilt
    return rotation, depth * np.array([np.tan(np.deg2rad(right)), np.tan(np.deg2rad(down)), 1])


def frame(rng: np.random.Generator, vertices: np.ndarray, size: int,
          margin: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Zoom and crop so that an image of size x size pixels is `margin` times as large as the person.

    Args:
        rng: Random numbers of the sample.
        vertices: (V, 3) metres, camera space.
        size: Pixels.
        margin: Image side / size of the person.
    Returns:
        Focal length (2,), principal point (2,) and a box (4,) xywh that is loose by a few percent, as a detector's
        would be: pixels, float32.
    """
    flat = vertices[:, :2] / vertices[:, 2:]
    low = flat.min(0).astype(np.float64)
    high = flat.max(0).astype(np.float64)
    side = (high - low).max()
    focal = size / (side * margin * rng.uniform(.94, 1.06))
    princpt = size / 2 - (low + high) / 2 * focal - .5 + rng.uniform(-.03, .03, 2) * size
    extent = (high - low) * focal * rng.uniform(.97, 1.08, 2)
    center = (low + high) / 2 * focal + princpt + rng.uniform(-.03, .03, 2) * side * focal
    bbox = np.concatenate([center - extent / 2, extent])
    return np.full(2, focal, np.float32), princpt.astype(np.float32), bbox.astype(np.float32)


def lit(rng: np.random.Generator, colors: np.ndarray, normals: np.ndarray,
        light: Light) -> np.ndarray:
    """Vertex colours (V, 3) under a main light from the camera's side, a weak second light and ambient light.

    light: SOFT_LIGHT or STRONG_LIGHT.
    """
    ambient_range, main_spread = light
    ambient = rng.uniform(*ambient_range)
    tint = 1 + rng.normal(0, .04, 3)
    shade = np.full(len(normals), ambient, np.float32)
    for strength, spread in ((1 - ambient, main_spread), (rng.uniform(0, .3), 1.)):
        toward = rng.normal(0, spread, 3) + (0, -.5, -1)
        toward = toward / np.linalg.norm(toward)
        shade += strength * np.clip(normals @ toward.astype(np.float32), 0, None)
    return np.clip(colors * shade[:, None] * tint.astype(np.float32), 0, 1)


def background(rng: np.random.Generator, size: int) -> np.ndarray:
    """An image (size, size, 3) float32 in 0..1: a soft gradient, often with a floor, some shapes, a little noise."""
    grid = rng.random((rng.integers(2, 9), rng.integers(2, 9), 3)).astype(np.float32) - .5
    grey = grid.mean(2, keepdims=True) * 1.5
    grid = grey + (grid - grey) * np.float32(rng.uniform(0, 1))
    base = clothing_color(rng).astype(np.float32) * .8 + .1
    colors = base + grid * np.float32(rng.uniform(.05, .4))
    img: np.ndarray = cv2.resize(colors, (size, size), interpolation=cv2.INTER_CUBIC)
    if rng.random() < .4:
        horizon = int(rng.uniform(.4, .9) * size)
        img[horizon:] = img[horizon:] * .4 + clothing_color(rng).astype(np.float32) * .6
    for _ in range(rng.integers(0, 5)):
        _shape(rng, img)
    if rng.random() < .5:
        img = cv2.GaussianBlur(img, (0, 0), rng.uniform(.5, 2.5) * size / 160)
    return img * np.float32(rng.uniform(.6, 1.1))


def _shape(rng: np.random.Generator, img: np.ndarray) -> None:
    """Paint a box, an ellipse or a line, half transparent or solid."""
    size = len(img)
    color = tuple(float(c) for c in clothing_color(rng))
    a = rng.integers(0, size, 2)
    b = rng.integers(size // 20, size // 3, 2)
    layer = img.copy()
    kind = rng.random()
    if kind < .45:
        cv2.rectangle(layer, a.tolist(), (a + b).tolist(), color, -1)
    elif kind < .75:
        angle = float(rng.uniform(0, 180))
        cv2.ellipse(layer, a.tolist(), (b // 2 + 1).tolist(), angle, 0, 360, color, -1)
    else:
        end = rng.integers(0, size, 2)
        cv2.line(layer, a.tolist(), end.tolist(), color, int(rng.integers(1, size // 16)))
    opacity = rng.uniform(.25, .8)
    cv2.addWeighted(layer, opacity, img, 1 - opacity, 0, dst=img)


def occluder(rng: np.random.Generator, img: np.ndarray, bbox: np.ndarray) -> None:
    """Paint a box over up to a third of the person's box (4,) xywh, in place."""
    extent = bbox[2:] * rng.uniform(.1, .5, 2)
    corner = bbox[:2] + rng.uniform(-.1, .8, 2) * bbox[2:]
    color = tuple(float(c) for c in clothing_color(rng))
    low = corner.astype(int)
    high = (corner + extent).astype(int)
    cv2.rectangle(img, low.tolist(), high.tolist(), color, -1)


def image(rng: np.random.Generator, mesh: Mesh, focal: ArrayLike, princpt: ArrayLike, size: int, light: Light,
          hidden_box: np.ndarray | None = None) -> np.ndarray:
    """The finished image of a dressed mesh.

    Args:
        rng: Random numbers of the sample.
        mesh: In camera space.
        focal: (2,) pixels.
        princpt: (2,) pixels.
        size: Side of the image, pixels.
        light: SOFT_LIGHT or STRONG_LIGHT.
        hidden_box: (4,) xywh of the person, to put an occluder there; None: without.
    Returns:
        (size, size, 3) uint8 RGB.
    """
    vertices, faces, colors = mesh
    shaded = lit(rng, colors, vertex_normals(vertices, faces), light)
    img = background(rng, size)
    rgb, coverage = rasterise(vertices, faces, shaded, focal, princpt, (size, size), supersample=2)
    img = img * (1 - coverage[..., None]) + rgb
    if hidden_box is not None:
        occluder(rng, img, hidden_box)
    img = np.clip(img, 0, 1) ** np.float32(rng.uniform(.8, 1.25))
    img += rng.standard_normal(img.shape, np.float32) * np.float32(rng.uniform(0, .02))
    return np.clip(img * 255 + .5, 0, 255).astype(np.uint8)
