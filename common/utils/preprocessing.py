"""From a picture and a box to the network input: boxes, random augmentation, the affine crop."""
from dataclasses import dataclass

import cv2
import numpy as np

from common.errors import UserError

# Pictures are decoded in RGB where OpenCV can do it (4.11 and later): one pass over the pixels less.
RGB_FLAG = getattr(cv2, 'IMREAD_COLOR_RGB', None)


@dataclass(frozen=True)
class AugParams:
    """One augmentation. scale: of the box; rot: degrees; color: a factor per RGB channel; flip: mirror left-right."""
    scale: float = 1.0
    rot: float = 0.0
    color: tuple[float, float, float] = (1.0, 1.0, 1.0)
    flip: bool = False

    @classmethod
    def random(cls, rng, allow_flip=True, strength=(0.25, 30, 0.2)):
        """Draw one from `rng` (np.random.Generator), with the published `strength` unless given: scale within
        1 +- 0.25, rotation of a standard deviation of 30 degrees and at most twice that, for six in ten, colours within
        +- 20 %, flip for every second one."""
        max_scale, rot_std, max_color = strength
        scale = 1 + max_scale * float(np.clip(rng.standard_normal(), -1, 1))
        rot = rot_std * float(np.clip(rng.standard_normal(), -2, 2))
        rot = rot if rng.random() < 0.6 else 0.0
        color = tuple(rng.uniform(1 - max_color, 1 + max_color, 3).tolist())
        flip = bool(rng.random() < 0.5)
        return cls(scale, rot, color, flip and allow_flip)


def load_img(path):
    """Picture as (H, W, 3) uint8 RGB, its EXIF orientation ignored (annotations count stored pixels).

    Raises FileNotFoundError or, for a file that is no picture, ValueError; both name the path.
    """
    flags = cv2.IMREAD_IGNORE_ORIENTATION | (cv2.IMREAD_COLOR if RGB_FLAG is None else RGB_FLAG)
    try:
        img = cv2.imread(path, flags)
    except cv2.error as error:  # beyond the limit on the number of pixels, which common/__init__.py sets
        raise ValueError(f'{path} cannot be decoded ({" ".join(error.err.split())})') from error
    if img is None:
        with open(path, 'rb'):
            raise ValueError(f'{path} is not a picture OpenCV can read')
    return cv2.cvtColor(img, cv2.COLOR_BGR2RGB) if RGB_FLAG is None else img


def to_xywh(bbox, box_format):
    """Box (4,) in 'xywh' (as it is) or 'xyxy' (two corners) -> (4,) xywh, float64. UserError for another format."""
    x, y, a, b = np.asarray(bbox, np.float64)
    if box_format == 'xywh':
        return np.array([x, y, a, b])
    if box_format == 'xyxy':
        return np.array([x, y, a - x, b - y])
    raise UserError(f'box format "{box_format}": xywh or xyxy')


def looks_like_corners(bbox, img_width, img_height):
    """Whether an xywh box leaves the picture by more than half its size: two corners taken for xywh mostly do."""
    x, y, w, h = bbox
    return bool(x + w - img_width > w / 2 or y + h - img_height > h / 2)


def process_bbox(bbox, img_width, img_height, input_img_shape=(256, 256)):
    """Clip a person's box (4,) xywh to the picture, widen it to the input's aspect ratio, enlarge it 1.25 times.

    Returns (4,) float32 xywh in pixels, which may leave the picture, or None for a box that is empty, not finite or
    wholly outside. Boxes of the RootNet files are already like this and must not be processed again.
    """
    x, y, w, h = (float(v) for v in bbox)
    if not np.isfinite((x, y, w, h)).all() or w * h <= 0 or x + w <= 0 or y + h <= 0:
        return None
    # the size is measured from the clipped corner, as in the published boxes, although that moves the far side
    x1, y1 = max(0., x), max(0., y)
    x2, y2 = min(img_width - 1., x1 + max(0., w - 1)), min(img_height - 1., y1 + max(0., h - 1))
    w, h = x2 - x1, y2 - y1
    if min(w, h) < 0 or max(w, h) == 0:
        return None
    center = np.array([x1 + w / 2, y1 + h / 2])
    aspect = input_img_shape[1] / input_img_shape[0]
    size = np.array([max(w, h * aspect), max(h, w / aspect)]) * 1.25
    return np.concatenate([center - size / 2, size]).astype(np.float32)


def get_bbox(joint_img, joint_valid):
    """Box (4,) float32 xywh of the valid joints, each side stretched 1.2 times about the centre; None without any.

    joint_img: (J, 2) pixels; joint_valid: (J,) or (J, 1), above 0 for the joints that count.
    """
    points = np.asarray(joint_img)[np.asarray(joint_valid).reshape(-1) > 0, :2]
    if not len(points):
        return None
    low, high = points.min(0), points.max(0)
    size = (high - low) * 1.2
    return np.concatenate([(low + high - size) / 2, size]).astype(np.float32)


def crop_affine(bbox, scale, rot, out_shape):
    """Affine (2, 3) float64 from picture to patch pixels, for a box (4,) xywh scaled and rotated (degrees) about its
    centre. The centre lands on the patch's centre (width / 2, height / 2). out_shape: (height, width) of the patch."""
    x, y, w, h = (float(v) for v in bbox)
    c, s = np.cos(np.deg2rad(rot)), np.sin(np.deg2rad(rot))
    height, width = out_shape
    linear = np.array([[c, s], [-s, c]]) * [[width / (w * scale)], [height / (h * scale)]]
    shift = (width / 2, height / 2) - linear @ (x + w / 2, y + h / 2)
    return np.concatenate([linear, shift[:, None]], 1)


def crop_image(img, bbox, aug, out_shape):
    """Cut, augment and scale the patch of a box.

    img: (H, W, 3) uint8 RGB. bbox: (4,) xywh as process_bbox returns it. aug: AugParams or None for none. out_shape:
    (height, width). Returns the patch (3, height, width) float32 in 0..1, black outside the picture; img2bb_trans,
    the (2, 3) float32 affine from picture to patch pixels; and bb2img_trans, its inverse. With a flip both refer to
    the mirrored picture, in which x is W - 1 - x.
    """
    aug = aug or AugParams()
    x, y, w, h = bbox
    if aug.flip:
        x = img.shape[1] - 1 - (x + w / 2) - w / 2
    img2bb = crop_affine((x, y, w, h), aug.scale, aug.rot, out_shape)
    warp = img2bb
    if aug.flip:  # mirror and crop in one resampling
        warp = img2bb @ [[-1, 0, img.shape[1] - 1], [0, 1, 0], [0, 0, 1]]
    patch = cv2.warpAffine(img, warp, (out_shape[1], out_shape[0]), flags=cv2.INTER_LINEAR)
    scaled = np.empty((3, *out_shape), np.float32)
    for channel, factor, out in zip(cv2.split(patch), aug.color, scaled, strict=True):
        np.multiply(channel, np.float32(factor / 255), out=out)
    np.minimum(scaled, 1, out=scaled)
    return scaled, img2bb.astype(np.float32), cv2.invertAffineTransform(img2bb).astype(np.float32)
