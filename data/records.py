"""Records of annotation files. A field is looked at when it is used, and what is wrong with it is named with its
record; a field that nobody uses may be absent.

A file is in memory as text, and decoded one record at a time: as Python objects, a gigabyte of it would take several.
"""
import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError, shown
from common.files.json_text import Raw, decode, elements, fields
from data.files import not_json, progress, read_json, read_records
from data.sample import Camera, Fit

LARGEST_SIDE = 10 ** 6  # pixels: no image is wider or higher

Shape = tuple[int, ...]
IDENTITIES = (int, float, str)


class Record:
    """A dictionary of an annotation file. A field is decoded when it is asked for.

    Args:
        content: The dictionary, or its JSON text.
        outer: The file, or the record or list it is part of; named in messages.
        name: Its own name there: 'annotation 5'.
    Attributes:
        content: {field: value or JSON text}.
    Raises:
        UserError: The content is not a dictionary, or (from all methods, and from `record[key]`) a field is missing or
            does not hold what it should.
    """
    __slots__ = ('content', 'outer', 'name')

    def __init__(self, content: object, outer: object, name: str = '') -> None:
        self.outer = outer
        self.name = name
        if type(content) is Raw:
            try:
                content = fields(content)
            except (ValueError, RecursionError) as error:
                raise not_json(str(self), error) from error
        if not isinstance(content, dict):
            raise self.wrong('is not a dictionary')
        self.content = content

    def __str__(self) -> str:
        """The file and the record, as messages name it: 'MuCo-3DHP.json: annotation 5'."""
        if not self.name:
            return str(self.outer)
        return f'{self.outer}: {self.name}'

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def __getitem__(self, key: str) -> Any:
        if key not in self.content:
            raise self.wrong(f'has no {key}')
        return self.get(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a field, or the default where it is missing."""
        value = self.content.get(key, default)
        if type(value) is not Raw:
            return value
        try:
            return decode(value)
        except (ValueError, RecursionError) as error:
            raise not_json(str(self), error) from error

    def wrong(self, what: str) -> UserError:
        """The UserError that says what is wrong with this record."""
        return UserError(f'{self} {what}: download the file again')

    def part(self, key: str, kind: str = '') -> 'Record':
        """The dictionary in a field. kind: what the key is, if it is a number: 'annotation'."""
        name = f'{kind} {key}' if kind else key
        if key not in self:
            raise self.wrong(f'has no {name}')
        return Record(self.content[key], self, name)

    def find(self, key: str, kind: str = '') -> 'Record | None':
        """The same, or None where the field is missing or null."""
        value = self.content.get(key)
        if value is None or (isinstance(value, Raw) and bytes(value) == b'null'):
            return None
        return self.part(key, kind)

    def array(self, key: str, *shapes: Shape, kind: str = '') -> np.ndarray:
        """The numbers in a field, float32, in the first of the allowed shapes that they have (see `in_shape`)."""
        name = f'{kind} {key}' if kind else key
        if key not in self:
            raise self.wrong(f'has no {name}')
        try:
            array = np.asarray(self.get(key), np.float32)
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
        bbox = self['bbox']
        if not (isinstance(bbox, list) and len(bbox) == 4 and all(map(is_number, bbox))):
            raise self.wrong(f'has the bbox {shown(bbox)}, not x, y, width, height')
        return bbox

    def identity(self, key: str) -> int | float | str:
        """A field that numbers or names a record."""
        value = self[key]
        if not isinstance(value, IDENTITIES):
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
    return Record(read_records(path, dict, holds, decode=fields), path)


class Listed(Record):
    """A record in a list of a file: it has the id that it gives itself, or else the number in the list for a name."""
    __slots__ = ('number',)

    def __init__(self, content: object, outer: object, kind: str, number: int) -> None:
        self.number = number
        super().__init__(content, outer, kind)

    def __str__(self) -> str:
        content = getattr(self, 'content', None)  # not there yet where it is no dictionary
        name = f'number {self.number} of the list'
        if content is not None and 'id' in content:
            name = shown(self['id'])
        return f'{self.outer}: {self.name} {name}'


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
        self._content = read_json(path, holds, decode=fields)
        self._images: dict[int | float | str, tuple[int, Any]] = {}
        for number, text in enumerate(self._list('images')):
            image = Listed(text, path, 'image', number)
            first = self._images.setdefault(image.identity('id'), (number, text))
            if first[1] != text and decode(first[1]) != decode(text):
                raise image.wrong('is in the list twice, with different contents')

    def image(self, image_id: int | float | str) -> Record | None:
        """The image of this id, None if there is none."""
        if image_id not in self._images:
            return None
        number, content = self._images[image_id]
        return Listed(content, self.path, 'image', number)

    @functools.cached_property
    def annotations(self) -> list[Any]:
        """All annotations, as JSON text."""
        return self._list('annotations')

    def pairs(self) -> Iterator[tuple[Record, Record]]:
        """Each annotation with its image, (image, annotation), in the order of the annotations."""
        for number in progress(range(len(self.annotations)), Path(self.path).name):
            yield self.pair(number)

    def annotation(self, number: int) -> Record:
        """The annotation of this number."""
        annotation = Listed(self.annotations[number], self.path, 'annotation', number)
        annotation.identity('id')
        return annotation

    def pair(self, number: int) -> tuple[Record, Record]:
        """The annotation of this number in the list with its image: (image, annotation)."""
        annotation = self.annotation(number)
        image = self.image(annotation.identity('image_id'))
        if image is None:
            raise annotation.wrong(f'is of image {shown(annotation["image_id"])}, which is not in "images"')
        return image, annotation

    def _list(self, name: str) -> list[Any]:
        """The list of this name in the file, its elements as JSON text."""
        records = None
        if isinstance(self._content, dict):
            records = self._content.get(name)
        if isinstance(records, Raw):
            records = elements(records)
        if not isinstance(records, list):
            raise UserError(f'{self.path} has no list "{name}": it is not a COCO-style file; download it again')
        return records
