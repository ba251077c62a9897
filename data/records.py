"""Records of annotation files. A field is looked at when it is used, and what is wrong with it is named with its
record; a field that nobody uses may be absent."""
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError, shown
from data.files import read_json, read_records
from data.sample import Camera, Fit

LARGEST_SIDE = 10 ** 6  # pixels: no image is wider or higher

Shape = tuple[int, ...]


class Record:
    """A dictionary of an annotation file.

    Attributes:
        content: The dictionary.
        place: The file and the record, as messages name it: 'MuCo-3DHP.json: annotation 5'.
    Raises:
        UserError: The content is not a dictionary, or (from all methods, and from `record[key]`) a field is missing or
            does not hold what it should.
    """
    __slots__ = ('content', 'place')

    def __init__(self, content: object, place: str) -> None:
        self.place = place
        if not isinstance(content, dict):
            raise self.wrong('is not a dictionary')
        self.content = content

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def __getitem__(self, key: str) -> Any:
        if key not in self.content:
            raise self.wrong(f'has no {key}')
        return self.content[key]

    def wrong(self, what: str) -> UserError:
        """The UserError that says what is wrong with this record."""
        return UserError(f'{self.place} {what}: download the file again')

    def part(self, key: str, kind: str = '') -> 'Record':
        """The dictionary in a field. kind: what the key is, if it is a number: 'annotation'."""
        name = f'{kind} {key}' if kind else key
        if key not in self:
            raise self.wrong(f'has no {name}')
        return Record(self.content[key], f'{self.place}: {name}')

    def find(self, key: str, kind: str = '') -> 'Record | None':
        """The same, or None where the field is missing or null."""
        if self.content.get(key) is None:
            return None
        return self.part(key, kind)

    def array(self, key: str, *shapes: Shape, kind: str = '') -> np.ndarray:
        """The numbers in a field, float32, in the first of the allowed shapes that they have (see `in_shape`)."""
        name = f'{kind} {key}' if kind else key
        if key not in self:
            raise self.wrong(f'has no {name}')
        try:
            array = np.asarray(self.content[key], np.float32)
        except (ValueError, TypeError, OverflowError) as error:
            raise self.wrong(f'has a {name} that is not an array of numbers') from error
        for shape in shapes:
            shaped = in_shape(array, shape)
            if shaped is not None:
                return shaped
        raise self.wrong(f'has a {name} of the shape {array.shape}, expected {" or ".join(map(str, shapes))}')

    def box(self) -> list[float] | None:
        """The field `bbox`, x, y, width, height in pixels; None if there is none."""
        if 'bbox' not in self:
            return None
        bbox = self.content['bbox']
        if not (isinstance(bbox, list) and len(bbox) == 4 and all(map(is_number, bbox))):
            raise self.wrong(f'has the bbox {shown(bbox)}, not x, y, width, height')
        return bbox

    def identity(self, key: str) -> int | float | str:
        """A field that numbers or names a record."""
        value = self[key]
        if not isinstance(value, int | float | str):
            raise self.wrong(f'has an invalid {key}, neither a number nor a text')
        return value

    def image_file(self) -> str:
        """The field `file_name` of an image."""
        name = self['file_name']
        if not (isinstance(name, str) and name.isprintable()):
            raise self.wrong('has an invalid file_name')
        return name

    def image_size(self) -> tuple[int, int]:
        """The fields `height` and `width` of an image, pixels."""
        size = (self['height'], self['width'])
        for side in size:
            if not (is_number(side) and 0 < side <= LARGEST_SIDE):
                raise self.wrong(f'has an invalid width or height ({shown(size[1])}, {shown(size[0])})')
        return size

    def camera(self, focal: str = 'focal', princpt: str = 'princpt') -> Camera:
        """The camera in two fields, (2,) pixels each."""
        return Camera(self.array(focal, (2,)), self.array(princpt, (2,)))

    def fit(self, joint_num: int) -> Fit:
        """The parameters of a body model with so many joints: the fields pose, shape and trans."""
        return Fit(self.array('pose', (3 * joint_num,)), self.array('shape', (10,)), self.array('trans', (3,)))


def in_shape(array: np.ndarray, shape: Shape) -> np.ndarray | None:
    """The array in this shape, or None if its numbers are others.

    Nesting does not count: a vector may be written in any way, [[...]] too, a matrix also as one list.
    """
    if array.shape == shape:
        return array
    is_flat = len(shape) == 1 or array.ndim == 1 or array.shape[:1] == (1,)
    if not shape or not is_flat or array.size != math.prod(shape):
        return None
    return array.reshape(shape)


def is_number(value: object) -> bool:
    """Whether a value of a JSON file is a number that an array takes (NaN too, but no integer of 400 digits)."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2 ** 63)


def read_record(path: Path | str, holds: str) -> Record:
    """The dictionary in a JSON file. UserError: see `read_records`."""
    return Record(read_records(path, dict, holds), str(path))


class CocoFile:
    """A JSON file in COCO's layout: the lists `images` and `annotations`.

    Args:
        path: The file.
        holds: What it holds, for the message that it is missing.
    Raises:
        UserError: The file is missing, is no JSON or has another layout; and as Record.
    """

    def __init__(self, path: Path | str, holds: str) -> None:
        self.path = path
        self.content = read_json(path, holds)
        self._images: dict[int | float | str, dict] = {}
        for image in self._records('images', 'image'):
            if self._images.setdefault(image.identity('id'), image.content) != image.content:
                raise image.wrong('is in the list twice, with different contents')

    def image(self, image_id: int | float | str) -> Record | None:
        """The image of this id, None if there is none."""
        if image_id not in self._images:
            return None
        return Record(self._images[image_id], f'{self.path}: image {shown(image_id)}')

    def pairs(self) -> Iterator[tuple[Record, Record]]:
        """Each annotation with its image, (image, annotation), in the order of the annotations."""
        for annotation in self._records('annotations', 'annotation'):
            annotation.identity('id')
            image = self.image(annotation.identity('image_id'))
            if image is None:
                raise annotation.wrong(f'is of image {shown(annotation["image_id"])}, which is not in "images"')
            yield image, annotation

    def _records(self, name: str, kind: str) -> Iterator[Record]:
        records = self.content.get(name) if isinstance(self.content, dict) else None
        if not isinstance(records, list):
            raise UserError(f'{self.path} has no list "{name}": it is not a COCO-style file; download it again')
        for number, content in enumerate(records):
            name_in_file = f'number {number} of the list'
            if isinstance(content, dict) and 'id' in content:
                name_in_file = shown(content['id'])
            yield Record(content, f'{self.path}: {kind} {name_in_file}')
