"""Person boxes: from the command line or a JSON file, checked against the picture they belong to."""
import json
from pathlib import Path

import numpy as np

from common.errors import UserError, shown
from common.utils.preprocessing import process_bbox

FORMATS = ('xywh', 'xyxy')
FULL = 'full'
LARGEST = 1e6  # pixels; no number of a box is larger
EXAMPLE = '{"photo.jpg": [[120, 40, 210, 480]]}'
MAX_FILE_BYTES = 2 ** 27  # of a box file: boxes for a video of days
MAX_DEPTH = 5  # objects and lists in each other


def check_box(box, width, height, box_format=None, where='--bbox'):
    """One box of four numbers in pixels, or 'full' for the whole picture -> (4,) float32 xywh in pixels.

    A box may reach over the border. `box_format` is 'xywh', 'xyxy' (corners), or None: xywh, but refused when the
    numbers look like corners. UserError too if they are not four numbers of a sane size, have no area, lie outside, or
    reach too little of the picture to cut anything out.
    """
    if isinstance(box, str) and box == FULL:
        return _with_pixels(np.array([0, 0, width, height], np.float64), width, height, where)
    try:
        values = np.array(box, np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0)
    if values.shape != (4,) or not np.isfinite(values).all():
        raise UserError(f'{where}: a box is four numbers in pixels, x y {"x2 y2" if box_format == "xyxy" else "w h"}, '
                        f'not {_text(box) or "an empty text"}')
    if (np.abs(values) > LARGEST).any():
        raise UserError(f'{where}: {_text(box)} has a number above {LARGEST:,.0f} pixels, which no picture has')
    if box_format == 'xyxy':
        values[2:] -= values[:2]
        if (values[2:] <= 0).any():
            raise UserError(f'{where}: {_text(box)} as corners x1 y1 x2 y2 has no area; '
                            'give --bbox_format xywh if it is x y width height')
    x, y, w, h = values
    if np.float32(w) <= 0 or np.float32(h) <= 0:  # 1e-60 is none either
        raise UserError(f'{where}: {_text(box)} has no area: width and height must be positive')
    if x >= width or y >= height or x + w <= 0 or y + h <= 0:
        raise UserError(f'{where}: {_text(box)} lies outside the picture of {width} x {height} pixels')
    # Corners read as x y w h reach beyond the far border, although they fit into the picture when read as corners.
    fits_as_corners = 0 <= x < w <= width and 0 <= y < h <= height
    if box_format is None and fits_as_corners and (x + w > 1.02 * width or y + h > 1.02 * height):
        raise UserError(f'{where}: {_text(box)} looks like corners x1 y1 x2 y2 (as x y w h it leaves the picture of '
                        f'{width} x {height} pixels): add --bbox_format xyxy, or xywh if it is right as it is')
    return _with_pixels(values, width, height, where)


def _with_pixels(values, width, height, where):
    """The (4,) xywh box as float32. UserError if too little of it, or of its mirror image (left hands are seen
    mirrored), lies in the picture to cut anything out."""
    x, y, w, h = values
    if any(process_bbox(box, width, height) is None for box in (values, (width - x - w, y, w, h))):
        raise UserError(f'{where}: {_text(values.tolist())} covers too little of the picture of {width} x {height} '
                        'pixels')
    return values.astype(np.float32)


def person_shaped(box):
    """False if the (4,) xywh box is far wider than high, which no standing, sitting or stretched person fills."""
    return box[2] <= 2.5 * box[3]


def read_box_file(path):
    """A JSON file of boxes as {picture name (text) or place in the list or video (int): list of boxes}.

    Layouts: `{"photo.jpg": [[x, y, w, h], ...]}`; the same with frame numbers ("0", "17") for a video; a list of such
    lists, one per frame; or a list of `{"image": "photo.jpg", "bbox": [x, y, w, h]}` (or "frame": 17). A box may be a
    list of four numbers or an object with the key "bbox"; a single box needs no outer list.
    """
    try:
        if Path(path).stat().st_size > MAX_FILE_BYTES:
            raise ValueError('it is too large to be a list of boxes')
        data = json.loads(Path(path).read_text(encoding='utf-8'))
    except OSError as error:
        raise UserError(f'--bbox_file {path}: cannot be read ({error.strerror})') from error
    except (ValueError, RecursionError) as error:
        raise UserError(f'--bbox_file {path}: not a JSON file ({error}), such as {EXAMPLE}') from error
    if isinstance(data, dict):
        return {str(key): _boxes(value, f'{path}, "{shown(key)}"') for key, value in data.items()}
    if not isinstance(data, list):
        raise UserError(f'--bbox_file {path}: expected an object {{picture: [boxes]}} or a list, such as {EXAMPLE}')
    table = {}
    for number, item in enumerate(data):
        if isinstance(item, dict) and ('image' in item or 'frame' in item):
            key = str(item['image']) if 'image' in item else _frame_number(item['frame'], f'{path}, entry {number}')
            table.setdefault(key, []).extend(_boxes(item, f'{path}, entry {number}'))
        else:
            table[number] = _boxes(item or [], f'{path}, entry {number}')
    return table


def _frame_number(value, where):
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f'{where}: "frame" is a number counted from 0, not {shown(value)}') from error


def _boxes(value, where, depth=0):
    """A box, or a list of boxes, each plain or inside an object -> list of boxes (not yet checked)."""
    if depth > MAX_DEPTH:
        raise UserError(f'{where}: nested too deeply; boxes are written like {EXAMPLE}')
    if isinstance(value, dict):
        for key in ('bbox', 'boxes', 'bboxes'):
            if key in value:
                return _boxes(value[key], where, depth + 1)
        raise UserError(f'{where}: no "bbox" in it; boxes are written like {EXAMPLE}')
    if value == FULL or (isinstance(value, list) and len(value) == 4 and not any(isinstance(v, list) for v in value)
                         and not any(isinstance(v, dict) for v in value)):
        return [value]
    if not isinstance(value, list):
        raise UserError(f'{where}: {shown(value)} is no list of boxes, such as {EXAMPLE}')
    return [box for item in value for box in _boxes(item, where, depth + 1)]


def _text(box):
    if isinstance(box, str):
        return shown(box)
    return ' '.join(f'{v:g}' if isinstance(v, float) else shown(v, 20) for v in np.ravel(np.array(box, object)))
