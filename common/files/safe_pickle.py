"""Reading a pickle of arrays without running what it says: the official SMPL and MANO files need no chumpy.

The official files were written by Python 2 and hold NumPy, SciPy and chumpy objects. Here each of those classes is
replaced by an inert record (records.py), and every other class or function by a placeholder that no array can be made
of: nothing in a downloaded file can run code, and what it holds besides arrays does no harm. The instructions, their
number and the dictionary keys are limited too, so that a hostile file ends with an error and not with all the memory.
"""
import pickle
from collections.abc import Callable
from typing import Any

from common.files.records import (
    Array,
    Buffer,
    Chumpy,
    CooMatrix,
    CscMatrix,
    CsrMatrix,
    Dtype,
    Encoded,
    Foreign,
    LilMatrix,
    Record,
    Select,
)

MAX_INSTRUCTIONS = 300_000   # the official files have some thousands
MAX_FOREIGN = 100            # different classes that no body model needs


class NumpyArrayType:
    """Stands in for the class numpy.ndarray, which is an argument in every pickled array."""


def _new_record(cls: Any, base: Any, _: Any) -> Record:
    """copy_reg._reconstructor: how protocols 0 and 1 make an object."""
    if isinstance(cls, type) and issubclass(cls, Foreign):
        return cls()
    if not (isinstance(cls, type) and issubclass(cls, Record)) or base is not object:
        raise pickle.UnpicklingError('unexpected use of copy_reg._reconstructor')
    return cls()


def _no_set(*_: Any) -> None:
    """Sets are bookkeeping of chumpy that nobody reads."""


def _ordered(items: Any = ()) -> dict[Any, Any]:
    """collections.OrderedDict: a dictionary like any other."""
    made = {}
    for key, value in items:
        if not isinstance(key, str | int):
            raise pickle.UnpicklingError('a dictionary key that is neither a name nor a number')
        made[key] = value
    return made


def _allowed_globals() -> dict[tuple[str, str], Any]:
    """{(module, name): stand-in} under the names of Python 2 and 3, of old and new NumPy and SciPy."""
    allowed: dict[tuple[str, str], Any] = {
        ('numpy', 'ndarray'): NumpyArrayType,
        ('numpy', 'matrix'): NumpyArrayType,
        ('numpy.matrixlib.defmatrix', 'matrix'): NumpyArrayType,
        ('numpy', 'dtype'): Dtype,
        ('collections', 'OrderedDict'): _ordered,
        ('_codecs', 'encode'): Encoded,
        ('chumpy', 'Ch'): Chumpy,
        ('chumpy.ch', 'Ch'): Chumpy,
        ('chumpy.reordering', 'Select'): Select,
    }
    for module in ('numpy.core', 'numpy._core'):
        allowed[f'{module}.multiarray', '_reconstruct'] = Array
        allowed[f'{module}.multiarray', 'scalar'] = Record
        allowed[f'{module}.numeric', '_frombuffer'] = Buffer
    for suffix, record in (('csc', CscMatrix), ('csr', CsrMatrix), ('coo', CooMatrix), ('lil', LilMatrix)):
        for module in ('scipy.sparse', f'scipy.sparse.{suffix}', f'scipy.sparse._{suffix}'):
            allowed[module, f'{suffix}_matrix'] = record
            allowed[module, f'{suffix}_array'] = record
    for module in ('__builtin__', 'builtins'):
        allowed[module, 'object'] = object
        allowed[module, 'set'] = _no_set
    for module in ('copy_reg', 'copyreg'):
        allowed[module, '_reconstructor'] = _new_record
    return allowed


ALLOWED_GLOBALS = _allowed_globals()


class Instructions(dict):
    """The instructions that may be used (code -> method), and how many more of them."""
    left = MAX_INSTRUCTIONS

    def __getitem__(self, code: int) -> Callable[..., None]:
        self.left -= 1
        if self.left < 0:
            raise pickle.UnpicklingError(f'more than {MAX_INSTRUCTIONS} instructions')
        if code not in self:
            raise pickle.UnpicklingError(f'the instruction {bytes([code])!r} is not allowed')
        return super().__getitem__(code)


class SafeUnpickler(pickle._Unpickler):
    """Builds numbers, strings, tuples, lists, dictionaries and records; what is of other classes is Foreign.

    Derived from the unpickler in Python, not the one in C: its instructions can be replaced, and a forged length or
    index does not make it reserve memory that the file cannot fill.
    """
    # attributes of the base class that its type stub leaves out
    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]
    read: Callable[[int], bytes]

    def __init__(self, file: Any) -> None:
        super().__init__(file, encoding='latin1')
        self.dispatch = Instructions(self.allowed)  # type: ignore[misc]  # one for each file: it counts
        self.foreign: dict[str, type[Foreign]] = {}

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a class or function that the file names. UnpicklingError: too many others than arrays."""
        if (module, name) in ALLOWED_GLOBALS:
            return ALLOWED_GLOBALS[module, name]
        full_name = f'{module}.{name}'
        if full_name not in self.foreign:
            if len(self.foreign) == MAX_FOREIGN:
                raise pickle.UnpicklingError(f'it asks for {full_name} and {MAX_FOREIGN} more things that no body '
                                             'model needs')
            self.foreign[full_name] = type('Foreign', (Foreign,), {'name': full_name})
        return self.foreign[full_name]

    def _build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], Record):
            raise pickle.UnpicklingError('it changes something that is not an array')
        self.stack[-1].state = state

    def _add_items(self, items: list[Any]) -> None:
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | int):   # to hash deeply nested tuples can take forever
                raise pickle.UnpicklingError('a dictionary key that is neither a name nor a number')
            self.stack[-1][key] = value

    def _set_item(self) -> None:
        value = self.stack.pop()
        key = self.stack.pop()
        self._add_items([key, value])

    def _set_items(self) -> None:
        self._add_items(self.pop_mark())

    def _dictionary(self) -> None:
        items = self.pop_mark()
        self.append({})
        self._add_items(items)

    def _empty_set(self) -> None:
        self.append(None)

    def _add_to_set(self) -> None:
        self.pop_mark()

    def _byte_array(self) -> None:
        length = int.from_bytes(self.read(8), 'little')
        self.append(self.read(length))

    allowed: dict[int, Callable[..., None]] = dict(pickle._Unpickler.dispatch)
    for code in (pickle.PERSID, pickle.BINPERSID, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.INST, pickle.OBJ,
                 pickle.NEWOBJ_EX, pickle.FROZENSET, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER):
        del allowed[code[0]]
    allowed |= {
        pickle.BUILD[0]: _build,
        pickle.SETITEM[0]: _set_item,
        pickle.SETITEMS[0]: _set_items,
        pickle.DICT[0]: _dictionary,
        pickle.EMPTY_SET[0]: _empty_set,
        pickle.ADDITEMS[0]: _add_to_set,
        pickle.BYTEARRAY8[0]: _byte_array,
    }
