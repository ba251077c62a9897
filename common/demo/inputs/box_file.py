"""Box files: JSON that says where the people are, written by hand, by a detector or in the layout of COCO."""
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.demo.inputs.box_table import BoxTable, is_number
from common.demo.inputs.boxes import FULL, RawBox
from common.demo.inputs.images import IMAGE_SUFFIXES
from common.errors import UserError, shown

EXAMPLE = '{"photo.jpg": [[120, 40, 210, 480]]}'
ID_KEYS = ('file_name', 'image_name', 'image', 'image_id', 'frame')  # what an entry calls its image, the surest first
OURS = ('person', 'hand')  # categories of a file in COCO's layout, if it has them
BOX_KEYS = ('bbox', 'box', 'boxes', 'bboxes')
MAX_FILE_BYTES = 2 ** 27  # boxes for a video of days
MAX_DEPTH = 5  # of objects and lists in each other


def read_box_file(path: str | Path, lowest_score: float | None = None) -> BoxTable:
    """Read a JSON file of boxes.

    Layouts: `{"photo.jpg": [[x, y, w, h], ...]}`; the same with frame numbers ("0", "17") for a video; a list of such
    lists, one per frame; a list of `{"image_id": "photo.jpg", "bbox": [x, y, w, h]}` in any order, one per person, with
    any of ID_KEYS; or COCO's, with the lists `images` and `annotations`. A box may be a list of four numbers or an
    object with one of BOX_KEYS; a single box needs no outer list.

    Args:
        path: of the file.
        lowest_score: boxes whose `score` is below are left out; None: all are taken.
    Returns:
        The boxes, not yet checked.
    Raises:
        UserError: the file cannot be read, is not JSON, or has another layout.
    """
    path = Path(path)
    data = _read_json(path)
    if isinstance(data, dict) and isinstance(data.get('annotations'), list):
        if isinstance(data.get('images'), list):
            data = list(_coco_entries(data, path))
        else:
            data = data['annotations']
    if isinstance(data, dict):
        named = {}
        for name, value in data.items():
            named[name] = _boxes(value, f'{path}, "{shown(name)}"', lowest_score)
        return BoxTable(path, named)
    if not isinstance(data, list):
        raise UserError(f'--bbox_file {path}: expected an object {{image: [boxes]}} or a list, such as {EXAMPLE}')
    return _table_of_list(path, data, lowest_score)


def _table_of_list(path: Path, items: list, lowest_score: float | None) -> BoxTable:
    """The boxes of a list whose entries all name their images, or all go by their place."""
    table = BoxTable(path, {})
    for number, item in enumerate(items):
        where = f'{path}, entry {number}'
        name = _name(item, where)
        if table.has_ids != (name is not None) and number > 0:
            raise UserError(f'{where}: some entries name their image and some do not: name it in all of them')
        boxes = _boxes(item or [], where, lowest_score)
        if name is None:
            table.listed.append(boxes)
        else:
            table.has_ids = True
            table.named.setdefault(name, []).extend(boxes)
    return table


def _name(item: Any, where: str) -> str | None:
    """What an entry calls its image or frame; None if it goes by its place in the list."""
    if not isinstance(item, dict):
        return None
    for key in ID_KEYS:
        if key in item:
            return _id_text(item[key], key, where)
    for key, value in item.items():
        if isinstance(value, str) and Path(value).suffix.lower() in IMAGE_SUFFIXES:
            raise UserError(f'{where}: "{shown(key)}" seems to name its image; call that "image_id"')
    return None


def _id_text(value: Any, key: str, where: str) -> str:
    """An id as text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and value and key != 'frame':
        return value
    if is_number(str(value)):
        return str(int(value))
    if key == 'frame':
        raise UserError(f'{where}: "frame" is a number counted from 0, not {shown(value)}')
    raise UserError(f'{where}: "{key}" is the name or number of an image, not {shown(value) or "an empty text"}')


def _coco_entries(data: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The annotations of a file in COCO's layout, each with the name of its image."""
    names: dict[str, Any] = {}
    for number, image in enumerate(data['images']):
        if not isinstance(image, dict) or 'id' not in image or 'file_name' not in image:
            raise UserError(f'{path}, image {number}: no "id" or "file_name" in it')
        if names.setdefault(str(image['id']), image['file_name']) != image['file_name']:
            raise UserError(f'{path}: two images have the id {shown(image["id"])}')
    ours = {category['id'] for category in _dictionaries(data.get('categories')) if category.get('name') in OURS}
    for number, annotation in enumerate(data['annotations']):
        where = f'{path}, annotation {number}'
        if not isinstance(annotation, dict) or 'image_id' not in annotation:
            raise UserError(f'{where}: no "image_id" in it')
        image_id = str(annotation['image_id'])
        if image_id not in names:
            raise UserError(f'{where}: no image has the id {shown(image_id)}')
        if annotation.get('iscrowd') or (ours and annotation.get('category_id') not in ours):
            continue  # a box around many, or around something else
        yield annotation | {'file_name': names[image_id]}


def _dictionaries(values: Any) -> list[dict[str, Any]]:
    """The dictionaries with an id in what may be a list."""
    if not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, dict) and isinstance(value.get('id'), int | str)]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys differ. ValueError: one is there twice, and its first value would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f'"{shown(twice)}" is there twice: write all its boxes into one list')
    return found


def _read_json(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError('it is too large to be a list of boxes')
        return json.loads(path.read_text(encoding='utf-8-sig'), object_pairs_hook=_once)
    except OSError as error:
        raise UserError(f'--bbox_file {path}: cannot be read ({error.strerror})') from error
    except (ValueError, RecursionError) as error:
        raise UserError(f'--bbox_file {path}: not a JSON file of boxes ({error}), such as {EXAMPLE}') from error


def _boxes(value: Any, where: str, lowest_score: float | None, depth: int = 0) -> list[RawBox]:
    """A box, or a list of boxes, each plain or inside an object -> list of boxes (not yet checked)."""
    if depth > MAX_DEPTH:
        raise UserError(f'{where}: nested too deeply; boxes are written like {EXAMPLE}')
    if isinstance(value, dict):
        if lowest_score is not None and 'score' in value and _score(value['score'], where) < lowest_score:
            return []
        for key in BOX_KEYS:
            if key in value:
                return _boxes(value[key], where, lowest_score, depth + 1)
        raise UserError(f'{where}: no "bbox" in it; boxes are written like {EXAMPLE}')
    if value == FULL:
        return [value]
    if not isinstance(value, list):
        raise UserError(f'{where}: {shown(value)} is not a list of boxes, such as {EXAMPLE}')
    if len(value) == 4 and not any(isinstance(part, list | dict) for part in value):
        return [value]
    found = []
    for item in value:
        found += _boxes(item, where, lowest_score, depth + 1)
    return found


def _score(value: Any, where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f'{where}: "score" is a number, not {shown(value)}') from error
