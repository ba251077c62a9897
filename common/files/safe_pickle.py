"""Reading a pickle of arrays without running what it says: the official SMPL and MANO files need no chumpy.

The official files were written by Python 2 and hold NumPy, SciPy and chumpy objects. Here each of those classes is
replaced by an inert record (records.py); every other global is refused, so nothing in a downloaded file can run
code. The instructions, their number and the dictionary keys are limited too, so that a hostile file ends with an
error and not with all the memory.
"""
import pickle

from common.files.records import Array, Buffer, Chumpy, CscMatrix, CsrMatrix, Dtype, Encoded, Record, Select

MAX_INSTRUCTIONS = 300_000   # the official files have some thousands


class NumpyArrayType:
    """Stands in for the class numpy.ndarray, which is an argument in every pickled array."""


def _new_record(cls, base, _):
    """copy_reg._reconstructor: how protocols 0 and 1 make an object."""
    if not (isinstance(cls, type) and issubclass(cls, Record)) or base is not object:
        raise pickle.UnpicklingError('unexpected use of copy_reg._reconstructor')
    return cls()


def _no_set(*_):
    """Sets are bookkeeping of chumpy that nobody reads."""
    return None


def _allowed_globals():
    """{(module, name): stand-in} under the names of Python 2 and 3, of old and new NumPy and SciPy."""
    allowed = {
        ('numpy', 'ndarray'): NumpyArrayType, ('numpy', 'dtype'): Dtype, ('_codecs', 'encode'): Encoded,
        ('chumpy', 'Ch'): Chumpy, ('chumpy.ch', 'Ch'): Chumpy, ('chumpy.reordering', 'Select'): Select}
    for module in ('numpy.core', 'numpy._core'):
        allowed[f'{module}.multiarray', '_reconstruct'] = Array
        allowed[f'{module}.multiarray', 'scalar'] = Record
        allowed[f'{module}.numeric', '_frombuffer'] = Buffer
    for suffix, record in (('csc', CscMatrix), ('csr', CsrMatrix)):
        for module in ('scipy.sparse', f'scipy.sparse.{suffix}', f'scipy.sparse._{suffix}'):
            allowed[module, f'{suffix}_matrix'] = record
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

    def __getitem__(self, code):
        self.left -= 1
        if self.left < 0:
            raise pickle.UnpicklingError(f'more than {MAX_INSTRUCTIONS} instructions')
        if code not in self:
            raise pickle.UnpicklingError(f'the instruction {bytes([code])!r} is not allowed')
        return super().__getitem__(code)


class SafeUnpickler(pickle._Unpickler):
    """Builds numbers, strings, tuples, lists, dictionaries and records; UnpicklingError for everything else.

    Derived from the unpickler in Python, not the one in C: its instructions can be replaced, and a forged length or
    index does not make it reserve memory that the file cannot fill.
    """
    def __init__(self, file):
        super().__init__(file, encoding='latin1')
        self.dispatch = Instructions(self.allowed)

    def find_class(self, module, name):
        try:
            return ALLOWED_GLOBALS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f'it asks for {module}.{name}, which no body model needs') from None

    def build(self):
        state = self.stack.pop()
        if not isinstance(self.stack[-1], Record):
            raise pickle.UnpicklingError('it changes something that is not an array')
        self.stack[-1].state = state

    def set_items(self, items):
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | int):   # to hash deeply nested tuples can take forever
                raise pickle.UnpicklingError('a dictionary key that is neither a name nor a number')
            self.stack[-1][key] = value

    def set_item(self):
        value, key = self.stack.pop(), self.stack.pop()
        self.set_items([key, value])

    def set_items_to_mark(self):
        self.set_items(self.pop_mark())

    def dictionary(self):
        items = self.pop_mark()
        self.append({})
        self.set_items(items)

    def empty_set(self):
        self.append(_no_set())

    def add_to_set(self):
        self.pop_mark()

    def byte_array(self):
        self.append(self.read(int.from_bytes(self.read(8), 'little')))

    allowed = dict(pickle._Unpickler.dispatch)
    for code in (pickle.PERSID, pickle.BINPERSID, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.INST, pickle.OBJ,
                 pickle.NEWOBJ_EX, pickle.FROZENSET, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER):
        del allowed[code[0]]
    allowed |= {
        pickle.BUILD[0]: build, pickle.SETITEM[0]: set_item, pickle.SETITEMS[0]: set_items_to_mark,
        pickle.DICT[0]: dictionary, pickle.EMPTY_SET[0]: empty_set, pickle.ADDITEMS[0]: add_to_set,
        pickle.BYTEARRAY8[0]: byte_array}
