"""From an image and a box to the network input: boxes, random augmentation, the affine crop."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import ArrayLike

from common.errors import UserError

if TYPE_CHECKING:  # the demo's options need this module, and --help no PyTorch
    import torch


@dataclass(frozen=True)
class AugParams:
    """One augmentation.

    Attributes:
        scale: Of the box.
        rot: Degrees.
        color: A factor for each of the RGB channels.
        flip: Mirror left and right.
    """
    scale: float = 1.0
    rot: float = 0.0
    color: tuple[float, ...] = (1.0, 1.0, 1.0)
    flip: bool = False

    @classmethod
    def random(cls, rng: np.random.Generator, allow_flip: bool = True,
               strength: Sequence[float] = (0.25, 30, 0.2)) -> 'AugParams':
        """Draw an augmentation.

        Args:
            rng: Random numbers.
            allow_flip: Whether every second one is a mirror image.
            strength: Largest change of the scale; standard deviation of the rotation in degrees (at most twice that,
                for six in ten); largest change of the colours. The default is the published one.
        """
        max_scale, rot_std, max_color = strength
        scale = 1 + max_scale * float(np.clip(rng.standard_normal(), -1, 1))
        rot = rot_std * float(np.clip(rng.standard_normal(), -2, 2))
        if rng.random() >= 0.6:
            rot = 0.0
        color = tuple(rng.uniform(1 - max_color, 1 + max_color, 3).tolist())
        flip = bool(rng.random() < 0.5)
        return cls(scale, rot, color, flip and allow_flip)


def to_xywh(bbox: ArrayLike, box_format: str) -> np.ndarray:
    """Box (4,) in 'xywh' (as it is) or 'xyxy' (two corners) -> (4,) xywh, float64. UserError for another format."""
    x, y, a, b = np.asarray(bbox, np.float64)
    if box_format == 'xywh':
        return np.array([x, y, a, b])
    if box_format == 'xyxy':
        return np.array([x, y, a - x, b - y])
    raise UserError(f'box format "{box_format}": xywh or xyxy')


def looks_like_corners(bbox: ArrayLike, img_width: float, img_height: float) -> bool:
    """Whether an xywh box leaves the image by more than half its size: two corners taken for xywh mostly do."""
    x, y, w, h = np.asarray(bbox, np.float64)
    return bool(x + w - img_width > w / 2 or y + h - img_height > h / 2)


def process_bbox(bbox: ArrayLike, img_width: float, img_height: float,
                 input_img_shape: Sequence[int] = (256, 256)) -> np.ndarray | None:
    """Clip a person's box to the image, widen it to the input's aspect ratio, enlarge it 1.25 times.

    Boxes of the RootNet files are already like this and must not be processed again.

    Args:
        bbox: (4,) xywh, pixels.
        img_width: Pixels.
        img_height: Pixels.
        input_img_shape: (height, width) of the network input.
    Returns:
        (4,) float32 xywh in pixels, which may leave the image, or None for a box that is empty, not finite or wholly
        outside.
    """
    x, y, w, h = (float(v) for v in np.asarray(bbox))
    if not np.isfinite((x, y, w, h)).all() or w * h <= 0 or x + w <= 0 or y + h <= 0:
        return None
    # the size is measured from the clipped corner, as in the published boxes, although that moves the far side
    x1 = max(0., x)
    y1 = max(0., y)
    w = min(img_width - 1., x1 + max(0., w - 1)) - x1
    h = min(img_height - 1., y1 + max(0., h - 1)) - y1
    if min(w, h) < 0 or max(w, h) == 0:
        return None
    center = np.array([x1 + w / 2, y1 + h / 2])
    aspect = input_img_shape[1] / input_img_shape[0]
    size = np.array([max(w, h * aspect), max(h, w / aspect)]) * 1.25
    return np.concatenate([center - size / 2, size]).astype(np.float32)


def get_bbox(joint_img: ArrayLike, joint_valid: ArrayLike) -> np.ndarray | None:
    """Box of the valid joints, each side stretched 1.2 times about the centre.

    Args:
        joint_img: (J, 2) pixels.
        joint_valid: (J,) or (J, 1), above 0 for the joints that count.
    Returns:
        (4,) float32 xywh, or None without any valid joint.
    """
    points = np.asarray(joint_img)[np.asarray(joint_valid).reshape(-1) > 0, :2]
    if not len(points):
        return None
    low = points.min(0)
    high = points.max(0)
    size = (high - low) * 1.2
    return np.concatenate([(low + high - size) / 2, size]).astype(np.float32)


def crop_affine(bbox: ArrayLike, scale: float, rot: float, out_shape: Sequence[int]) -> np.ndarray:
    """Affine from image to patch pixels. The centre of the box lands on the patch's, (width / 2, height / 2).

    Args:
        bbox: (4,) xywh, pixels.
        scale: The box is enlarged by this factor about its centre.
        rot: The box is rotated by so many degrees about its centre.
        out_shape: (height, width) of the patch.
    Returns:
        (2, 3) float64.
    """
    x, y, w, h = (float(v) for v in np.asarray(bbox))
    c = np.cos(np.deg2rad(rot))
    s = np.sin(np.deg2rad(rot))
    height, width = out_shape
    linear = np.array([[c, s], [-s, c]]) * [[width / (w * scale)], [height / (h * scale)]]
    shift = (width / 2, height / 2) - linear @ (x + w / 2, y + h / 2)
    return np.concatenate([linear, shift[:, None]], 1)


def crop_image(img: np.ndarray, bbox: ArrayLike, aug: AugParams | None,
               out_shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut the patch of a box. Its colours are left as they are: `float_image` changes them.

    With a flip both affines refer to the mirrored image, in which x is W - 1 - x.

    Args:
        img: (H, W, 3) uint8 RGB.
        bbox: (4,) xywh as process_bbox returns it.
        aug: None for none.
        out_shape: (height, width).
    Returns:
        patch: (height, width, 3) uint8, black outside the image.
        img2bb_trans: (2, 3) float32 affine from image to patch pixels.
        bb2img_trans: Its inverse.
    """
    if aug is None:
        aug = AugParams()
    x, y, w, h = np.asarray(bbox)
    if aug.flip:
        x = img.shape[1] - 1 - (x + w / 2) - w / 2
    img2bb = crop_affine((x, y, w, h), aug.scale, aug.rot, out_shape)
    warp = img2bb
    if aug.flip:  # mirror and crop in one resampling
        warp = img2bb @ [[-1, 0, img.shape[1] - 1], [0, 1, 0], [0, 0, 1]]
    patch = cv2.warpAffine(img, warp, (out_shape[1], out_shape[0]), flags=cv2.INTER_LINEAR)
    return patch, img2bb.astype(np.float32), cv2.invertAffineTransform(img2bb).astype(np.float32)


def color_scale(aug: AugParams | None) -> np.ndarray:
    """(3,) float32: what each channel of a uint8 patch is multiplied by, its colour factor and the division by 255."""
    if aug is None:
        aug = AugParams()
    return (np.array(aug.color) / 255).astype(np.float32)


def float_image(inputs: 'Mapping[str, torch.Tensor]') -> 'torch.Tensor':
    """The image that the network sees, the same bits on every device.

    A patch of bytes is a quarter of its float image, so patches become images on the device that runs the network.

    Args:
        inputs: `img` (..., height, width, 3) uint8 and `color_scale` (..., 3); or `img` as it is returned.
    Returns:
        (..., 3, height, width) float32 in 0..1; channels last in memory, from patches.
    """
    img = inputs['img']
    if img.is_floating_point():
        return img
    return (img.movedim(-1, -3) * inputs['color_scale'][..., None, None]).clamp(max=1)
