"""Boxes of people, checked against the image they belong to."""
from typing import Any

import numpy as np

from common.errors import UserError, shown
from common.utils.preprocessing import process_bbox

FORMATS = ('xywh', 'xyxy')
FULL = 'full'
LARGEST = 1e6  # pixels; no number of a box is larger
MARGIN = 1.02  # a box that ends beyond this many widths or heights of the image may be two corners

RawBox = Any  # 'full' or four numbers, as a user or a file gave them: anything until `check_box` has seen it


def check_box(box: RawBox, width: int, height: int, box_format: str | None = None,
              where: str = '--bbox') -> np.ndarray:
    """Check a box against its image. It may reach over the border.

    Args:
        box: four numbers (pixels), or 'full' for the whole image.
        width: of the image, pixels.
        height: of the image, pixels.
        box_format: 'xywh', 'xyxy' (corners), or None: xywh, but refused when the numbers look like corners.
        where: where the box comes from, for messages.
    Returns:
        (4,) float32 xywh, pixels.
    Raises:
        UserError: the box is not four numbers of a sane size, has no area, lies outside the image, or covers too
            little of it to cut anything out.
    """
    if isinstance(box, str) and box == FULL:
        return _cuttable(np.array([0., 0., width, height]), width, height, where)
    values = _four_numbers(box, box_format, where)
    if box_format == 'xyxy':
        values[2:] -= values[:2]
        if (values[2:] <= 0).any():
            raise UserError(f'{where}: {_text(box)} as corners x1 y1 x2 y2 has no area; '
                            'give --bbox_format xywh if it is x y width height')
    x, y, w, h = values
    if (np.float32(values[2:]) <= 0).any():  # as float32, 1e-60 is zero too
        raise UserError(f'{where}: {_text(box)} has no area: width and height must be positive')
    if x >= width or y >= height or x + w <= 0 or y + h <= 0:
        raise UserError(f'{where}: {_text(box)} lies outside the image of {width} x {height} pixels')
    # Corners taken for x y w h reach beyond the far border, although they fit into the image as corners.
    fits_as_corners = 0 <= x < w <= width and 0 <= y < h <= height
    if box_format is None and fits_as_corners and (x + w > MARGIN * width or y + h > MARGIN * height):
        raise UserError(f'{where}: {_text(box)} looks like corners x1 y1 x2 y2 (as x y w h it leaves the image of '
                        f'{width} x {height} pixels): add --bbox_format xyxy, or xywh if it is right as it is')
    return _cuttable(values, width, height, where)


def _four_numbers(box: RawBox, box_format: str | None, where: str) -> np.ndarray:
    """The box as (4,) float64."""
    try:
        values = np.array(box, np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0)
    if values.shape != (4,) or not np.isfinite(values).all():
        names = 'x y x2 y2' if box_format == 'xyxy' else 'x y w h'
        raise UserError(f'{where}: a box is four numbers in pixels, {names}, not {_text(box) or "an empty text"}')
    if (np.abs(values) > LARGEST).any():
        raise UserError(f'{where}: {_text(box)} has a number above {LARGEST:,.0f} pixels, which no image has')
    return values


def _cuttable(values: np.ndarray, width: int, height: int, where: str) -> np.ndarray:
    """The (4,) xywh box as float32. UserError unless enough of it, and of its mirror image (left hands are seen
    mirrored), lies in the image to cut something out."""
    x, y, w, h = values
    mirrored = np.array([width - x - w, y, w, h])
    if process_bbox(values, width, height) is None or process_bbox(mirrored, width, height) is None:
        raise UserError(f'{where}: {_text(values.tolist())} covers too little of the image of {width} x {height} '
                        'pixels')
    return values.astype(np.float32)


def person_shaped(box: np.ndarray) -> bool:
    """False if the (4,) xywh box is far wider than high: no standing, sitting or stretched person fills it."""
    return bool(box[2] <= 2.5 * box[3])


def _text(box: RawBox) -> str:
    """A box as it may stand in a message."""
    if isinstance(box, str):
        return shown(box)
    parts = np.ravel(np.array(box, object))
    return ' '.join(f'{part:g}' if isinstance(part, float) else shown(part, 20) for part in parts)
