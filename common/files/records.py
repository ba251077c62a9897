"""What a pickled NumPy, SciPy or chumpy object says, kept as data, and the array it stands for."""
from collections.abc import Iterable
from typing import Any

import numpy as np

MAX_ELEMENTS = 2 ** 25  # per array; the largest of SMPL-X, which should at least be recognised, has 15 million
MAX_DEPTH = 8           # records inside records; MANO's shape basis has three
NUMBER_TYPES = {'b1', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8'}


class Record:
    """Stands in for an object of a foreign class: keeps its arguments and its state, and does nothing."""
    args: tuple = ()
    state: Any = None

    def __init__(self, *args: Any) -> None:
        self.args = args


class Array(Record):
    """A numpy.ndarray. State: (version, shape, dtype, is in Fortran order, data)."""


class Buffer(Record):
    """A numpy.ndarray of pickle protocol 5. Arguments: (data, dtype, shape, order)."""


class Dtype(Record):
    """A numpy.dtype. Arguments: ('f8', ...); state: (version, byte order, ...)."""


class Encoded(Record):
    """_codecs.encode(text, 'latin1'): bytes as Python 3 writes them at protocol 2 and below. Arguments: those two.

    Encoded only when an array needs it: a forged file could ask for the bytes of one long text many times.
    """


class Foreign(Record):
    """Anything of a class or function that no body model needs, called `name`: inert, and no array.

    The likes of lists and dictionaries are filled when they are read; it takes no notice.
    """
    name = ''

    def __call__(self, *_: Any) -> 'Foreign':
        return self

    def __setitem__(self, *_: Any) -> None:
        return

    def append(self, *_: Any) -> None:
        """Does nothing."""

    extend = append


class Chumpy(Record):
    """A chumpy array; its values are state['x']."""


class Select(Record):
    """A chumpy selection: elements state['idxs'] of the array state['a'], as state['preferred_shape']."""


class CscMatrix(Record):
    """A SciPy matrix in compressed columns (J_regressor). State: data, indices, indptr, shape."""


class CsrMatrix(Record):
    """The same in compressed rows."""


class CooMatrix(Record):
    """The same as a list of elements. State: data, shape, and coords (rows, columns), or row and col."""


class LilMatrix(Record):
    """The same as lists of columns and values, one for each row. State: rows, data, shape."""


def to_array(value: Any, depth: int = 0) -> np.ndarray:
    """The array that a record, or a nesting of records, stands for.

    Args:
        value: What the unpickler returned.
        depth: How many records this one is nested in.
    Raises:
        ValueError: Not an array, or one that is too large.
    """
    if depth > MAX_DEPTH:
        raise ValueError('objects nested too deeply')
    if isinstance(value, Array):
        _, shape, dtype, fortran_order, data = value.state
        return _from_bytes(data, dtype, shape, 'F' if fortran_order else 'C')
    if isinstance(value, Buffer):
        data, dtype, shape, order = value.args
        return _from_bytes(data, dtype, shape, order)
    if isinstance(value, Chumpy):
        return to_array(value.state['x'], depth + 1)
    if isinstance(value, Select):
        return _select(value.state, depth)
    if isinstance(value, CscMatrix | CsrMatrix):
        return _dense(value, depth)
    if isinstance(value, CooMatrix):
        return _dense_elements(value.state, depth)
    if isinstance(value, LilMatrix):
        return _dense_lists(value.state)
    if isinstance(value, list):
        return _from_list(value)
    raise ValueError(f'not an array but {kind_of(value)}')


def kind_of(value: Any) -> str:
    """What a value is, for messages: of what is Foreign, the name in the file."""
    if isinstance(value, Foreign):
        return value.name
    if isinstance(value, type) and issubclass(value, Foreign):
        return value.name
    return type(value).__name__


def number_of_elements(shape: Iterable[Any]) -> int:
    """Product of a shape read from a file; ValueError unless it is a tuple of non-negative numbers, not too large."""
    count = 1
    for size in shape:
        if not isinstance(size, int) or size < 0:
            raise ValueError('a shape that is not a tuple of sizes')
        count *= size
        if count > MAX_ELEMENTS:
            raise ValueError(f'an array of more than {MAX_ELEMENTS} numbers')
    return count


def _from_bytes(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    if not isinstance(dtype, Dtype) or dtype.args[0] not in NUMBER_TYPES:
        raise ValueError('an array of something other than numbers')
    number = np.dtype(dtype.args[0])
    if dtype.state is None or dtype.state[1] == '<':
        number = number.newbyteorder('<')
    elif dtype.state[1] == '>':
        number = number.newbyteorder('>')
    if isinstance(data, Encoded):
        data = data.args[0]
    if isinstance(data, str):   # Python 2 wrote its bytes as a string
        data = data.encode('latin1')
    if len(data) != number_of_elements(shape) * number.itemsize:
        raise ValueError('an array whose data does not fit its shape')
    return np.frombuffer(data, number).reshape(shape, order=order)


def _select(state: Any, depth: int) -> np.ndarray:
    values = to_array(state['a'], depth + 1).ravel()
    selected = values[to_array(state['idxs'], depth + 1)]
    shape = state.get('preferred_shape')
    if shape is None:
        return selected
    number_of_elements(shape)
    return selected.reshape(shape)


def _dense(record: CscMatrix | CsrMatrix, depth: int) -> np.ndarray:
    """The matrix of a sparse record; every index is checked here."""
    state = record.state
    shape = state.get('_shape', state.get('shape'))
    number_of_elements(shape)
    data = to_array(state['data'], depth + 1)
    indices = to_array(state['indices'], depth + 1)
    starts = to_array(state['indptr'], depth + 1)
    if isinstance(record, CscMatrix):
        shape = reversed(shape)
    lines, length = shape
    if {data.ndim, indices.ndim, starts.ndim} != {1} or {indices.dtype.kind, starts.dtype.kind} - {'i', 'u'}:
        raise ValueError('a sparse matrix whose parts are not lists of numbers')
    starts = starts.astype(np.int64)
    counts = np.diff(starts)
    if len(counts) != lines or starts[0] != 0 or (counts < 0).any() or starts[-1] > min(len(indices), len(data)):
        raise ValueError('a sparse matrix whose parts do not fit together')
    columns = indices[:starts[-1]].astype(np.int64)
    if ((columns < 0) | (columns >= length)).any():
        raise ValueError('a sparse matrix with elements outside of it')
    dense = np.zeros((lines, length), data.dtype)
    rows = np.repeat(np.arange(lines), counts)
    np.add.at(dense, (rows, columns), data[:starts[-1]])
    if isinstance(record, CscMatrix):
        dense = dense.T
    return np.ascontiguousarray(dense)


def _from_list(values: list) -> np.ndarray:
    """The array that nested lists of numbers stand for."""
    shape: list[int] = []
    part: Any = values
    while isinstance(part, list) and part and len(shape) < MAX_DEPTH:  # before NumPy takes the memory
        shape.append(len(part))
        part = part[0]
    number_of_elements(shape)
    array = np.array(values)
    if array.dtype.str[1:] not in NUMBER_TYPES:
        raise ValueError('a list of something other than numbers')
    return array


def _dense_elements(state: Any, depth: int) -> np.ndarray:
    """The matrix of a CooMatrix."""
    rows, columns = state['coords'] if 'coords' in state else (state['row'], state['col'])
    row_of = to_array(rows, depth + 1)
    column_of = to_array(columns, depth + 1)
    return _filled(state.get('_shape', state.get('shape')), row_of, column_of, to_array(state['data'], depth + 1))


def _dense_lists(state: Any) -> np.ndarray:
    """The matrix of a LilMatrix, whose two arrays are of lists."""
    columns_of, values_of = (state[name].state[4] for name in ('rows', 'data'))
    counts = [len(columns) for columns in columns_of]
    number_of_elements((sum(counts),))
    columns = _from_list([column for columns in columns_of for column in columns] or [0])
    values = _from_list([plain(value) for values in values_of for value in values] or [0])
    rows = np.repeat(np.arange(len(counts)), counts) if any(counts) else np.zeros(1, np.int64)
    return _filled(state.get('_shape', state.get('shape')), rows, columns, values)


def plain(value: Any) -> Any:
    """A number, out of the record of a NumPy scalar too: its arguments are the type and the bytes."""
    if isinstance(value, Record):
        dtype, data = value.args
        return _from_bytes(data, dtype, (), 'C')[()]
    return value


def _filled(shape: Any, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A matrix of this shape with values at some places, zero elsewhere; every index is checked here."""
    number_of_elements(shape)
    lines, length = shape
    if not rows.shape == columns.shape == values.shape or rows.ndim != 1:
        raise ValueError('a sparse matrix whose parts do not fit together')
    if {rows.dtype.kind, columns.dtype.kind} - {'i', 'u'}:
        raise ValueError('a sparse matrix whose places are not whole numbers')
    if ((rows < 0) | (rows >= lines) | (columns < 0) | (columns >= length)).any():
        raise ValueError('a sparse matrix with elements outside of it')
    dense = np.zeros((lines, length), values.dtype)
    np.add.at(dense, (rows, columns), values)
    return dense
