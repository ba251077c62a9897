"""Clips of drawn people who walk through an image, with their true boxes, by the renderer of the synthetic data."""
from dataclasses import dataclass

import cv2
import numpy as np

from common.human_model import HumanModel
from common.utils.render import rasterise, vertex_normals
from common.utils.transforms import cam2pixel
from data.Synthetic.generator import Generator
from data.Synthetic.geometry import axis_angle, rotation_about
from data.Synthetic.scene import SOFT_LIGHT, background, lit, place

DEPTH = 5.  # metres


@dataclass
class Walker:
    """A person who walks: their number, and where they are in the first frame and how they move."""
    number: int
    start: tuple[float, float]  # of the middle, pixels
    step: tuple[float, float]  # pixels per frame
    height: float = 150.  # pixels of an upright person of 1.7 m
    growth: float = 1.  # factor of the size per frame


def draw_clip(human_model: HumanModel, walkers: list[Walker], frames: int, size: tuple[int, int],
              seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """Draw a clip; arms and legs swing.

    Args:
        human_model: the body.
        walkers: the people, the last in front.
        frames: number of frames.
        size: (height, width) pixels.
        seed: of background, clothes and poses.
    Returns:
        The images (H, W, 3) uint8 RGB, and the true boxes (frames, people, 4) xywh.
    """
    draw = Generator(human_model)
    ground = background(np.random.default_rng(seed), max(size))
    ground = np.clip(cv2.resize(ground, size[::-1]), 0, 1)
    images = []
    boxes = np.zeros((frames, len(walkers), 4))
    for frame in range(frames):
        image = ground.copy()
        for number, walker in enumerate(walkers):
            rng = np.random.default_rng([seed, walker.number])
            vertices = _pose(draw, rng, frame)
            scale = walker.height * walker.growth ** frame * DEPTH / 1.7
            middle = np.array(walker.start) + frame * np.array(walker.step)
            colors = lit(rng, draw.clothes.dress(rng), vertex_normals(vertices, draw.faces), SOFT_LIGHT)
            rgb, coverage = rasterise(vertices, draw.faces, colors, (scale, scale), middle, size, supersample=2)
            image = image * (1 - coverage[..., None]) + rgb
            pixels = cam2pixel(vertices, np.full(2, scale), middle)[:, :2]
            low = pixels.min(0)
            boxes[frame, number] = np.append(low, pixels.max(0) - low)
        noise = np.random.default_rng([seed, 1, frame]).normal(0, 0.01, image.shape)
        images.append(np.clip((image + noise) * 255, 0, 255).astype(np.uint8))
    return images, boxes


def _pose(draw: Generator, rng: np.random.Generator, frame: int) -> np.ndarray:
    """Vertices (V, 3) of a walking person in the middle of the view."""
    rotations = draw.pose.sample(rng)
    rotations[0], _ = place(rng, rotations[0], draw.pose.facing, 30, (DEPTH, DEPTH + 1e-3))
    swing = 25 * np.sin(2 * np.pi * frame / 25)
    for joint, angle in ((1, swing), (2, -swing), (16, -swing), (17, swing)):
        rotations[joint] = rotations[joint] @ rotation_about((1, 0, 0), angle)
    vertices, _ = draw._body(axis_angle(rotations), np.zeros(10))
    middle = (vertices.min(0) + vertices.max(0)) / 2
    return vertices - middle + np.array([0, 0, DEPTH])


def overlap(box: np.ndarray, other: np.ndarray) -> float:
    """Intersection over union of two (4,) xywh boxes, by hand."""
    low = np.maximum(box[:2], other[:2])
    high = np.minimum(box[:2] + box[2:], other[:2] + other[2:])
    common = np.prod(np.clip(high - low, 0, None))
    return float(common / (box[2] * box[3] + other[2] * other[3] - common))
