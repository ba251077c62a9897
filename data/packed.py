"""Many samples in two arrays, which the processes of a machine share: in memory, or mapped from a file.

A sample is a record of bytes: the number of its layout, its arrays end to end, and what else it has as MessagePack. A
layout says which arrays those are; the samples of a data set have one or a few. Nothing of it can run code.
"""
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np

from common.errors import UserError
from common.files.records import NUMBER_TYPES
from data.sample import ARRAYS, Camera, Fit, Sample, arrays_of

Layout = tuple[tuple[int, str, tuple[int, ...]], ...]  # number in ARRAYS, type and shape of each array
NUMBER_BYTES = 2  # of a layout's number, at the start of each record
BIG_INTEGER = 1  # kinds of values that MessagePack lacks
ARRAY = 2


class PackedSamples:
    """A read-only sequence of Samples. Processes read it without touching a reference count: the pages stay shared.

    Args:
        data: (N,) uint8, the records.
        ends: (n + 1,) int64, where each of them ends, after a 0.
        layouts: Those that the records name by their numbers.
    """

    def __init__(self, data: np.ndarray, ends: np.ndarray, layouts: Iterable[Layout]) -> None:
        self.data = data
        self.ends = ends
        self.layouts = list(layouts)

    @classmethod
    def pack(cls, samples: Iterable[Sample]) -> 'PackedSamples':
        """Take the samples one after the other. UserError: one has something that cannot be stored."""
        layouts: dict[Layout, int] = {}
        data = bytearray()
        ends = [0]
        for sample in samples:
            try:
                _append(data, sample, layouts)
            except (TypeError, ValueError, OverflowError) as error:
                raise UserError(f'the sample of {sample.img_path}, id {sample.ann_id}, has something that is neither '
                                f'a number, a text, a list, a dictionary nor an array of numbers: {error}') from error
            ends.append(len(data))
        return cls(np.frombuffer(data, np.uint8), np.array(ends, np.int64), layouts)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.data.nbytes + self.ends.nbytes

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, index: int) -> Sample:
        """A fresh copy of the sample; negative indices count from the end. IndexError beyond it."""
        index = range(len(self))[index]
        record = self.data[self.ends[index]:self.ends[index + 1]].data
        layout = self.layouts[int.from_bytes(record[:NUMBER_BYTES], 'little')]
        start = NUMBER_BYTES
        arrays: dict[str, np.ndarray] = {}
        for number, dtype, shape in layout:
            array = np.ndarray(shape, dtype, record, start)
            start += array.nbytes
            arrays[ARRAYS[number]] = array.copy()
        return _sample(arrays, _unpack(record[start:]))


def _append(data: bytearray, sample: Sample, layouts: dict[Layout, int]) -> None:
    """Add the record of a sample."""
    layout = []
    parts = []
    for number, value in enumerate(arrays_of(sample)):
        if value is None:
            continue
        array = np.asarray(value)
        if array.dtype.str[1:] not in NUMBER_TYPES:
            raise TypeError(f'{ARRAYS[number]} of the type {array.dtype}')
        layout.append((number, array.dtype.str, array.shape))
        parts.append(array.tobytes())
    number = layouts.setdefault(tuple(layout), len(layouts))
    data += number.to_bytes(NUMBER_BYTES, 'little')
    data += b''.join(parts)
    gender = None
    if sample.fit is not None:
        gender = sample.fit.gender
    data += _pack([sample.img_path, sample.img_shape, gender, sample.root_depth, sample.ann_id, sample.extra])


def _sample(arrays: dict[str, np.ndarray], rest: list[Any]) -> Sample:
    """The sample of a record."""
    img_path, img_shape, gender, root_depth, ann_id, extra = rest
    fit = None
    if gender is not None:
        fit = Fit(arrays['pose'], arrays['shape'], arrays['trans'], gender, arrays.get('fit_R'), arrays.get('fit_t'))
    camera = None
    if 'focal' in arrays:
        camera = Camera(arrays['focal'], arrays['princpt'], R=arrays.get('R'), t=arrays.get('t'))
    fit_camera = None
    if 'fit_focal' in arrays:
        fit_camera = Camera(arrays['fit_focal'], arrays['fit_princpt'], R=arrays.get('fit_camera_R'),
                            t=arrays.get('fit_camera_t'))
    return Sample(img_path, tuple(img_shape), arrays['bbox'], camera, arrays.get('joint_img'),
                  arrays.get('joint_cam'), arrays.get('joint_valid'), fit, fit_camera, root_depth, ann_id, extra)


def _plain(value: Any) -> Any:
    """What MessagePack stores in place of a value that it has no kind for."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.str[1:] in NUMBER_TYPES:
        content = [value.dtype.str, value.shape, value.tobytes()]
        return msgspec.msgpack.Ext(ARRAY, msgspec.msgpack.encode(content))
    raise TypeError(f'a {type(value).__name__}')


def _restored(kind: int, content: memoryview) -> Any:
    """The value that _plain or _small stored."""
    if kind == BIG_INTEGER:
        return int(bytes(content))
    dtype, shape, data = msgspec.msgpack.decode(content)
    return np.frombuffer(data, dtype).reshape(shape).copy()


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_unpack: Callable[[Any], Any] = msgspec.msgpack.Decoder(ext_hook=_restored).decode


def _pack(values: list[Any]) -> bytes:
    try:
        return _encode(values)
    except OverflowError:  # an id of more than 64 bits
        return _encode(_small(values))


def _small(value: Any) -> Any:
    """A value with its large integers in a form that MessagePack takes."""
    if isinstance(value, list | tuple):
        return [_small(element) for element in value]
    if isinstance(value, dict):
        return {key: _small(element) for key, element in value.items()}
    if isinstance(value, int) and not -2 ** 63 <= value < 2 ** 64:
        return msgspec.msgpack.Ext(BIG_INTEGER, str(value).encode())
    return value
