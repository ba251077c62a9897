"""Camera, light, background and the finished image around a posed mesh."""
import cv2
import numpy as np

from common.utils.render import rasterise, vertex_normals
from data.Synthetic.pose import clipped_normal, rotation_about
from data.Synthetic.wardrobe import clothing_color

MARGIN = 1.5625  # image side / person size: a box enlarged 1.25 times, and once more by the augmentation
# Range of the ambient light, and how far the main light strays from the camera.
SOFT_LIGHT = (.45, .7), .6
STRONG_LIGHT = (.25, .7), 1.1


def place(rng, tilt, facing, max_heading, distance):
    """Where a person or hand is and how the camera looks at it.

    tilt (3, 3): rotation that the pose itself asks for; facing (3, 3): from the rest pose to one that faces the camera;
    max_heading: largest angle to the camera, degrees; distance: its range, metres.
    Returns the root rotation (3, 3) in camera space and the root joint's place (3,) in metres.
    """
    heading = rng.uniform(-max_heading, max_heading)
    pitch, roll = clipped_normal(rng, 4, 8, -15, 22), clipped_normal(rng, 0, 4, -10, 10)
    depth = np.exp(rng.uniform(*np.log(distance)))
    right, down = clipped_normal(rng, 0, 1, -3, 3), clipped_normal(rng, 0, 1, -3, 3)
    camera = rotation_about((0, 0, 1), roll) @ rotation_about((1, 0, 0), pitch)
    rotation = camera @ rotation_about((0, 1, 0), -heading) @ facing @ tilt
    return rotation, depth * np.array([np.tan(np.deg2rad(right)), np.tan(np.deg2rad(down)), 1])


def frame(rng, vertices, size, margin):
    """Zoom and crop so that an image of size x size pixels is `margin` times as large as the person.

    vertices (V, 3) metres, camera space. Returns focal (2,), princpt (2,) in pixels and a box (4,) xywh that is loose
    by a few percent, as a detector's would be.
    """
    flat = vertices[:, :2] / vertices[:, 2:]
    low, high = flat.min(0).astype(np.float64), flat.max(0).astype(np.float64)
    side = (high - low).max()
    focal = size / (side * margin * rng.uniform(.94, 1.06))
    princpt = size / 2 - (low + high) / 2 * focal - .5 + rng.uniform(-.03, .03, 2) * size
    extent = (high - low) * focal * rng.uniform(.97, 1.08, 2)
    center = (low + high) / 2 * focal + princpt + rng.uniform(-.03, .03, 2) * side * focal
    return np.full(2, focal), princpt, np.concatenate([center - extent / 2, extent])


def lit(rng, colors, normals, light):
    """Vertex colours (V, 3) under a main light from the camera's side, a weak second light and ambient light.

    light: SOFT_LIGHT or STRONG_LIGHT.
    """
    ambient_range, main_spread = light
    ambient, tint = rng.uniform(*ambient_range), 1 + rng.normal(0, .04, 3)
    shade = np.full(len(normals), ambient, np.float32)
    for strength, spread in ((1 - ambient, main_spread), (rng.uniform(0, .3), 1.)):
        toward = rng.normal(0, spread, 3) + (0, -.5, -1)
        toward = toward / np.linalg.norm(toward)
        shade += strength * np.clip(normals @ toward.astype(np.float32), 0, None)
    return np.clip(colors * shade[:, None] * tint.astype(np.float32), 0, 1)


def background(rng, size):
    """An image (size, size, 3) float32 in 0..1: a soft gradient, often with a floor, some shapes, a little noise."""
    grid = rng.random((rng.integers(2, 9), rng.integers(2, 9), 3)).astype(np.float32) - .5
    grey = grid.mean(2, keepdims=True) * 1.5
    grid = grey + (grid - grey) * np.float32(rng.uniform(0, 1))
    img = cv2.resize(clothing_color(rng).astype(np.float32) * .8 + .1 + grid * np.float32(rng.uniform(.05, .4)),
                     (size, size), interpolation=cv2.INTER_CUBIC)
    if rng.random() < .4:
        horizon = int(rng.uniform(.4, .9) * size)
        img[horizon:] = img[horizon:] * .4 + clothing_color(rng).astype(np.float32) * .6
    for _ in range(rng.integers(0, 5)):
        _shape(rng, img)
    if rng.random() < .5:
        img = cv2.GaussianBlur(img, (0, 0), rng.uniform(.5, 2.5) * size / 160)
    return img * np.float32(rng.uniform(.6, 1.1))


def _shape(rng, img):
    """Paint a box, an ellipse or a line, half transparent or solid."""
    size = len(img)
    color = tuple(float(c) for c in clothing_color(rng))
    a, b = rng.integers(0, size, 2), rng.integers(size // 20, size // 3, 2)
    layer = img.copy()
    kind = rng.random()
    if kind < .45:
        cv2.rectangle(layer, a.tolist(), (a + b).tolist(), color, -1)
    elif kind < .75:
        cv2.ellipse(layer, a.tolist(), (b // 2 + 1).tolist(), float(rng.uniform(0, 180)), 0, 360, color, -1)
    else:
        cv2.line(layer, a.tolist(), rng.integers(0, size, 2).tolist(), color, int(rng.integers(1, size // 16)))
    opacity = rng.uniform(.25, .8)
    cv2.addWeighted(layer, opacity, img, 1 - opacity, 0, dst=img)


def occluder(rng, img, bbox):
    """Paint a box over up to a third of the person's box (4,) xywh, in place."""
    extent = bbox[2:] * rng.uniform(.1, .5, 2)
    corner = bbox[:2] + rng.uniform(-.1, .8, 2) * bbox[2:]
    color = tuple(float(c) for c in clothing_color(rng))
    cv2.rectangle(img, corner.astype(int).tolist(), (corner + extent).astype(int).tolist(), color, -1)


def image(rng, vertices, faces, colors, focal, princpt, size, light, hidden_box=None):
    """The finished image (size, size, 3) uint8 RGB of a dressed mesh.

    light: SOFT_LIGHT or STRONG_LIGHT; hidden_box (4,): where to put an occluder.
    """
    shaded = lit(rng, colors, vertex_normals(vertices, faces), light)
    img = background(rng, size)
    rgb, coverage = rasterise(vertices, faces, shaded, focal, princpt, (size, size), supersample=2)
    img = img * (1 - coverage[..., None]) + rgb
    if hidden_box is not None:
        occluder(rng, img, hidden_box)
    img = np.clip(img, 0, 1) ** np.float32(rng.uniform(.8, 1.25))
    img += rng.standard_normal(img.shape, np.float32) * np.float32(rng.uniform(0, .02))
    return np.clip(img * 255 + .5, 0, 255).astype(np.uint8)
