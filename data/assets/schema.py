"""What the records of annotation files look like, and the search for the first one that does not.

A schema is one of: a tuple, the shape of an array of finite numbers (several allowed shapes: a list of tuples); a
set, the allowed values; a type, such as `int` or `str`; a dictionary, the schema of each key that must be there, or
that may be: IfPresent. Only what the loaders use is listed.
"""
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from data.records import in_shape


@dataclass(frozen=True)
class IfPresent:
    """The schema of a field that may be absent."""
    schema: object


def find_problem(value: Any, schema: Any, name: str = 'it') -> str | None:
    """What is wrong with a value, as a text that begins with its name, or None."""
    if isinstance(schema, dict):
        return _dictionary_problem(value, schema, name)
    if isinstance(schema, set):
        if isinstance(value, str) and value in schema:
            return None
        return f'{name} is {value!r}, not {" or ".join(schema)}'
    if isinstance(schema, type):
        if isinstance(value, schema):
            return None
        return f'{name} is {value!r}, not of type {schema.__name__}'
    if isinstance(schema, list):
        return _array_problem(value, schema, name)
    return _array_problem(value, [schema], name)


def _dictionary_problem(value: Any, schema: dict[str, Any], name: str) -> str | None:
    if not isinstance(value, dict):
        return f'{name} is not a dictionary'
    for key, part in schema.items():
        if isinstance(part, IfPresent):
            if key not in value:
                continue
            part = part.schema
        if key not in value:
            return f'{name} has no {key}'
        place = key
        if name != 'it':
            place = f'{name}.{key}'
        problem = find_problem(value[key], part, place)
        if problem:
            return problem
    return None


def _array_problem(value: Any, shapes: list[tuple[int, ...]], name: str) -> str | None:
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        return f'{name} is not an array of numbers'
    if all(in_shape(array, shape) is None for shape in shapes):
        return f'{name} has the shape {array.shape}, expected {" or ".join(map(str, shapes))}'
    if not np.isfinite(array).all():
        return f'{name} is not finite'
    return None


@dataclass(frozen=True)
class Coco:
    """A file in COCO's layout: "images" and "annotations", lists of dictionaries with ids.

    Attributes:
        image: What a record of an image holds besides.
        annotation: The same of an annotation; None: only the images are used.
        unused: Whether an annotation is one that the loader leaves out.
    """
    image: dict[str, Any] = field(default_factory=dict)
    annotation: dict[str, Any] | None = field(default_factory=dict)
    unused: Callable[[dict], bool] = lambda annotation: False

    def first_problem(self, content: Any) -> str | None:
        """The first bad record, by its id, and what is wrong with it; None if all are good."""
        lists = {'images': list}
        if self.annotation is not None:
            lists['annotations'] = list
        problem = find_problem(content, lists, 'the file')
        if problem:
            return problem
        schema = dict(id=(), file_name=str, width=(), height=(), **self.image)
        known = set()
        for record in content['images']:
            problem = find_problem(record, schema)
            if problem:
                return f'image {_id(record)}: {problem}'
            known.add(record['id'])
        if self.annotation is None:
            return None
        return self._annotation_problem(content['annotations'], known)

    def _annotation_problem(self, annotations: list, image_ids: set) -> str | None:
        schema = dict(id=(), image_id=()) | (self.annotation or {})
        for record in annotations:
            if isinstance(record, dict) and self.unused(record):
                continue
            problem = find_problem(record, schema)
            if not problem and record['image_id'] not in image_ids:
                problem = f'image_id {record["image_id"]} is not among the images'
            if problem:
                return f'annotation {_id(record)}: {problem}'
        return None if annotations else 'the file has no annotations'


@dataclass(frozen=True)
class Keyed:
    """Dictionaries in dictionaries, such as {subject: {action: record}}: a level for each name in `keys`."""
    keys: tuple[str, ...]
    record: object

    def first_problem(self, content: Any) -> str | None:
        """As Coco.first_problem."""
        return self._search(content, self.keys, '')

    def _search(self, content: Any, keys: tuple[str, ...], place: str) -> str | None:
        if not keys:
            problem = find_problem(content, self.record)
            return problem and f'{place.strip()}: {problem}'
        if not isinstance(content, dict):
            return f'{place or "the file"} is not a dictionary of one {keys[0]} each'.strip()
        for key, value in content.items():
            problem = self._search(value, keys[1:], f'{place} {keys[0]} {key}')
            if problem:
                return problem
        return None


@dataclass(frozen=True)
class Listed:
    """A list of records, each named by the value of `key`."""
    key: str
    record: dict[str, Any]

    def first_problem(self, content: Any) -> str | None:
        """As Coco.first_problem."""
        if not isinstance(content, list):
            return 'the file is not a list'
        for record in content:
            problem = find_problem(record, {self.key: (), **self.record})
            if problem:
                return f'{self.key} {_id(record, self.key)}: {problem}'
        return None


@dataclass(frozen=True)
class Arrays:
    """A list of arrays of one shape."""
    shape: tuple[int, ...]

    def first_problem(self, content: Any) -> str | None:
        """As Coco.first_problem; an array is named by its place in the list."""
        if not isinstance(content, list):
            return 'the file is not a list'
        for number, array in enumerate(content):
            problem = find_problem(array, self.shape, f'element {number}')
            if problem:
                return problem
        return None


def _id(record: Any, key: str = 'id') -> Any:
    if isinstance(record, dict):
        return record.get(key, 'without an id')
    return repr(record)[:40]
