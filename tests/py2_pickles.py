"""Stand-ins for the official SMPL and MANO files, written byte by byte as Python 2 wrote the real ones.

`dump(value, protocol)` knows Python 2's byte strings, NumPy arrays under their old module names, and objects of
classes that need not be installed (chumpy, old SciPy). `smpl_arrays` and `mano_arrays` are random models in the
official layout; `as_official` wraps their arrays as the official files do.
"""
import struct
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from common.human_model import mano, smpl


@dataclass(frozen=True, eq=False)
class Global:
    """Something importable, by the name that Python 2 knew it under."""
    module: str
    name: str


@dataclass(frozen=True, eq=False)
class Instance:
    """An object of a class with that name; `state` is its __dict__."""
    module: str
    name: str
    state: dict


@dataclass(frozen=True, eq=False)
class Call:
    """The result of calling a Global."""
    function: Global
    arguments: tuple


def dump(value, protocol: int) -> bytes:
    """Pickle of `value` in protocol 0 (text) or 2, as cPickle of Python 2 would write it."""
    writer = _Writer(protocol)
    writer.save(value)
    return (b'\x80\x02' if protocol == 2 else b'') + bytes(writer.out) + b'.'


class _Writer:
    def __init__(self, protocol):
        self.out, self.text, self.memo, self.kept = bytearray(), protocol == 0, {}, []

    def save(self, value):
        if id(value) in self.memo:   # seen before: a reference to it
            index = self.memo[id(value)]
            self.out += f'g{index}\n'.encode() if self.text else self._index(b'h', b'j', index)
            return
        for kind, method in (
                (type(None), self.none), (bool, self.boolean), (int, self.integer), (float, self.number),
                (str, self.string), (bytes, self.string), (tuple, self.tuple), (list, self.list), (dict, self.dict),
                (Global, self.global_), (Instance, self.instance), (Call, self.call), (np.dtype, self.dtype),
                (np.ndarray, self.array)):
            if isinstance(value, kind):
                method(value)
                return
        raise TypeError(type(value))

    def put(self, value):
        index = self.memo[id(value)] = len(self.memo)
        self.kept.append(value)   # ids stay unique while the objects live
        self.out += f'p{index}\n'.encode() if self.text else self._index(b'q', b'r', index)

    def _index(self, short, long, index):
        return short + bytes([index]) if index < 256 else long + struct.pack('<I', index)

    def none(self, _):
        self.out += b'N'

    def boolean(self, value):
        self.out += (b'I01\n' if value else b'I00\n') if self.text else (b'\x88' if value else b'\x89')

    def integer(self, value):
        if self.text:
            self.out += f'I{value}\n'.encode() if abs(value) < 2 ** 31 else f'L{value}L\n'.encode()
        elif 0 <= value < 256:
            self.out += b'K' + bytes([value])
        elif -2 ** 31 <= value < 2 ** 31:
            self.out += b'J' + struct.pack('<i', value)
        else:
            self.out += b'\x8a\x09' + value.to_bytes(9, 'little', signed=True)

    def number(self, value):
        self.out += f'F{value!r}\n'.encode() if self.text else b'G' + struct.pack('>d', value)

    def string(self, value):
        data = value.encode('latin1') if isinstance(value, str) else value
        if self.text:
            self.out += b'S' + repr(data)[1:].encode() + b'\n'
        elif len(data) < 256:
            self.out += b'U' + bytes([len(data)]) + data
        else:
            self.out += b'T' + struct.pack('<i', len(data)) + data
        self.put(value)

    def tuple(self, value):
        if not value:
            self.out += b'(t' if self.text else b')'
            return
        if self.text or len(value) > 3:
            self.out += b'('
        for item in value:
            self.save(item)
        self.out += b't' if self.text or len(value) > 3 else bytes([0x84 + len(value)])
        self.put(value)

    def list(self, value):
        self.out += b'(l' if self.text else b']'
        self.put(value)
        for item in value:
            self.save(item)
            self.out += b'a'

    def dict(self, value):
        self.out += b'(d' if self.text else b'}'
        self.put(value)
        if not self.text:
            self.out += b'('
        for key, item in value.items():
            self.save(key)
            self.save(item)
            self.out += b's' if self.text else b''
        self.out += b'' if self.text else b'u'

    def global_(self, value):
        self.out += f'c{value.module}\n{value.name}\n'.encode()

    def call(self, value):
        self.save(value.function)
        self.save(value.arguments)
        self.out += b'R'
        self.put(value)

    def instance(self, value):
        cls = Global(value.module, value.name)
        if self.text:
            self.save(Global('copy_reg', '_reconstructor'))
            self.save((cls, Global('__builtin__', 'object'), None))
            self.out += b'R'
        else:
            self.save(cls)
            self.out += b')\x81'
        self.put(value)
        self.save(value.state)
        self.out += b'b'

    def dtype(self, value):
        self.save(Global('numpy', 'dtype'))
        self.save((value.str[1:], 0, 1))
        self.out += b'R'
        self.put(value)
        self.save((3, value.str[0], None, None, None, -1, -1, 0))
        self.out += b'b'

    def array(self, value):
        fortran = value.flags.f_contiguous and not value.flags.c_contiguous
        self.save(Global('numpy.core.multiarray', '_reconstruct'))
        self.save((Global('numpy', 'ndarray'), (0,), 'b'))
        self.out += b'R'
        self.put(value)
        self.save((1, value.shape, value.dtype, fortran, value.tobytes('F' if fortran else 'C')))
        self.out += b'b'


def chumpy_array(values):
    dirty = Call(Global('__builtin__', 'set'), (['x'],))
    return Instance('chumpy.ch', 'Ch', {'x': values, '_dirty_vars': dirty, '_itr': None, '_make_dense': False})


def chumpy_select(values, indices, shape):
    return Instance('chumpy.reordering', 'Select', {'a': values, 'idxs': indices, 'preferred_shape': shape})


def sparse_columns(matrix):
    matrix = sparse.csc_matrix(matrix)
    return Instance('scipy.sparse.csc', 'csc_matrix', {
        '_shape': matrix.shape, 'maxprint': 50, 'indices': matrix.indices, 'indptr': matrix.indptr,
        'data': matrix.data, 'format': 'csc'})


def smpl_arrays(shape_num=10, seed=0):
    """A random body in the layout of the official SMPL files, as plain arrays."""
    return _arrays(6890, 13776, smpl.PARENTS, shape_num, seed, 'u4')


def mano_arrays(seed=0):
    """A random hand in the layout of the official MANO files, as plain arrays."""
    arrays = _arrays(778, 1538, mano.PARENTS, 10, seed, 'i8')
    rng = np.random.default_rng(seed + 100)
    return dict(arrays, hands_mean=rng.normal(size=45) * .2, hands_components=np.eye(45))


def _arrays(vertex_num, face_num, parents, shape_num, seed, tree_type):
    rng = np.random.default_rng(seed)
    joint_num = len(parents)
    weights = rng.random((vertex_num, joint_num)) ** 8
    regressor = np.zeros((joint_num, vertex_num))
    for row in regressor:
        near = rng.choice(vertex_num, 30, replace=False)
        row[near] = 1 / 30
    v_template = rng.normal(size=(vertex_num, 3)) * .3
    shapedirs = rng.normal(size=(vertex_num, 3, 10)) * .01
    shapedirs = np.concatenate((shapedirs, np.full((vertex_num, 3, shape_num - 10), .5)), axis=2)
    return {
        'v_template': v_template, 'f': rng.integers(0, vertex_num, (face_num, 3)).astype('u4'),
        'weights': weights / weights.sum(1, keepdims=True), 'shapedirs': shapedirs,
        'posedirs': np.asfortranarray(rng.random((vertex_num, 3, 9 * joint_num - 9), dtype='f4') * 1e-3),
        'J_regressor': regressor, 'J': regressor @ v_template, 'bs_type': 'lrotmin', 'bs_style': 'lbs',
        'kintree_table': np.array([[2 ** 32 - 1, *parents[1:]], range(joint_num)]).astype(tree_type)}


def as_official(arrays):
    """The same model as the official files hold it: a sparse regressor, chumpy objects, bookkeeping."""
    shapedirs = arrays['shapedirs']
    stored = dict(arrays, J_regressor=sparse_columns(arrays['J_regressor']), vert_sym_idxs=np.arange(5),
                  pose_training_info={'gender': 'neutral', 'scans': ['a', 'b'], 'error': .5})
    if 'hands_mean' in arrays:   # MANO keeps the first 10 of more components
        more = np.concatenate((shapedirs, shapedirs), axis=2)
        indices = np.arange(more.size).reshape(more.shape)[:, :, :10].ravel()
        stored['shapedirs'] = chumpy_select(chumpy_array(more), indices, shapedirs.shape)
    else:
        stored['shapedirs'] = chumpy_array(shapedirs)
    return stored
