"""Damaged and hostile model files: nothing in them runs, and they end with one line instead of all the memory."""
import io
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest

from common.errors import UserError
from common.files.arrays import read_arrays
from tests.faults.spoil import Runs
from tests.py2_pickles import Call, Global, Instance, as_official, chumpy_array, dump, mano_arrays, sparse_columns


def write(path, content):
    path.write_bytes(content)
    return path


def refused(path):
    """The message of the error that reading raises; checks that it is one line and names the file."""
    with pytest.raises(UserError) as error:
        read_arrays(path, ('v_template',))
    assert '\n' not in str(error.value) and str(path) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize('protocol', (0, 2, 4))
@pytest.mark.parametrize('function', (os.system, eval, exec, os.mkdir, getattr, __import__))
def test_no_function_is_called(tmp_path, function, protocol):
    mark = tmp_path / 'executed'
    code = {os.system: f'touch {mark}', os.mkdir: str(mark)}.get(function, f'__import__("os").mkdir({str(mark)!r})')
    stored = {'v_template': Runs(function, code), 'other': Runs(function, code)}
    message = refused(write(tmp_path / 'model.pkl', pickle.dumps(stored, protocol=protocol)))
    assert f'.{function.__name__}' in message and not mark.exists()


@pytest.mark.parametrize('module, name', (
    ('posix', 'system'), ('__builtin__', 'eval'), ('numpy', 'load'), ('numpy.core.multiarray', 'fromfile'),
    ('chumpy.ch', 'Ch.__init__'), ('common.files.safe_pickle', 'SafeUnpickler'), ('scipy.sparse', 'load_npz')))
def test_other_globals_are_refused_by_name(tmp_path, module, name):
    stored = {'v_template': Call(Global(module, name), ('touch x',))}
    assert f'{module}.{name}' in refused(write(tmp_path / 'model.pkl', dump(stored, 2)))


def test_many_foreign_classes_are_refused(tmp_path):
    """Each needs a placeholder of its own."""
    stored = {f'key{number}': Global('module', f'Class{number}') for number in range(101)}
    message = refused(write(tmp_path / 'model.pkl', dump(stored, 2)))
    assert 'module.Class100 and 100 more things that no body model needs' in message


def forged_array(shape, dtype='f8', data=b''):
    """An array whose shape, type and data need not fit together."""
    number = Call(Global('numpy', 'dtype'), (dtype, 0, 1))
    return {'v_template': Instance('numpy.core.multiarray', '_reconstruct', (1, shape, number, False, data))}


def nested_list():
    """A list of 10 lists, each of them the same 10 lists, and so on: 10 ** 20 numbers in a few bytes."""
    values = [0] * 10
    for _ in range(19):
        values = [values] * 10
    return values


@pytest.mark.parametrize('stored', (
    forged_array((2 ** 40,)), forged_array((2 ** 20, 2 ** 20)), forged_array((-1, 3)),
    forged_array((3,), data=b'x' * 23), forged_array((1,), 'O8', b'x' * 8), forged_array((1,), 'V8', b'x' * 8),
    forged_array(None), {'v_template': 'text'}, {'v_template': ['a', 'b']}, {'v_template': [[1], 2]},
    {'v_template': nested_list()},
    {'v_template': Call(Global('__builtin__', 'object'), ())}))
def test_array_that_is_none(tmp_path, stored):
    refused(write(tmp_path / 'model.pkl', dump(stored, 2)))


def test_sparse_indices_beyond_the_matrix(tmp_path):
    matrix = sparse_columns(np.eye(3))
    matrix.state['indices'] = np.array([0, 10 ** 6, 2], np.int32)
    refused(write(tmp_path / 'model.pkl', dump({'v_template': matrix}, 2)))


@pytest.mark.parametrize('part, values', (
    ('indices', [0, -1, 2]), ('indices', [0., 1, 2]), ('indices', [[0, 1, 2]]), ('indices', [0, 1]), ('indptr', []),
    ('indptr', [0, 1, 2, 2 ** 40]), ('indptr', [0, 3, 1, 3]), ('indptr', [-1, 1, 2, 3]), ('indptr', [0, 3]),
    ('data', [1.]), ('data', 1.)))
def test_sparse_matrix_whose_parts_do_not_fit(tmp_path, part, values):
    matrix = sparse_columns(np.eye(3))
    matrix.state[part] = np.array(values)
    refused(write(tmp_path / 'model.pkl', dump({'v_template': matrix}, 2)))


def test_sparse_matrix_that_says_it_is_empty(tmp_path):
    """SciPy checks no index of such a one, and its C code writes to all of them: beyond the array, a crash at best."""
    matrix = sparse_columns(np.eye(3))
    matrix.state.update(indices=np.int32([10 ** 7, 1, 2]), indptr=np.int32([0, 1, 3, 0]))
    assert 'do not fit together' in refused(write(tmp_path / 'model.pkl', dump({'v_template': matrix}, 2)))


def test_sparse_matrix_of_another_machine(tmp_path):
    """Numbers in the other byte order."""
    matrix = sparse_columns(np.array([[0., 2, 0], [3, 0, 4]]))
    for part in ('data', 'indices', 'indptr'):
        matrix.state[part] = matrix.state[part].astype(matrix.state[part].dtype.newbyteorder('>'))
    path = write(tmp_path / 'model.pkl', dump({'v_template': matrix}, 2))
    np.testing.assert_array_equal(read_arrays(path, ('v_template',))['v_template'], [[0, 2, 0], [3, 0, 4]])


def test_object_that_contains_itself(tmp_path):
    loop = chumpy_array(None)
    loop.state['x'] = loop
    assert 'nested' in refused(write(tmp_path / 'model.pkl', dump({'v_template': loop}, 2)))


HOSTILE = {
    'nothing': b'',
    'noise': b'\x93\x00\xffabc',
    'cut off': dump(as_official(mano_arrays()), 2)[:10 ** 5],
    'deep lists': b'\x80\x02' + b']' * 100_000 + b'a' * 99_999 + b'.',
    'deep tuples': b'\x80\x02)' + b'\x85' * 100_000 + b'.',
    'deep tuple as a key': b'\x80\x02})' + b'\x85' * 100_000 + b'Ns.',
    'exponential key': b'\x80\x02})' + b'2\x86' * 200 + b'Ns.',
    'in a set': b'\x80\x04\x8f(K\x01' + b'2\x86' * 200 + b'\x90.',
    'huge string': b'\x80\x04\x8e' + (2 ** 40).to_bytes(8, 'little') + b'x.',
    'huge bytearray': b'\x80\x05\x96' + (2 ** 40).to_bytes(8, 'little') + b'x.',
    'huge frame': b'\x80\x04\x95' + (2 ** 40).to_bytes(8, 'little') + b'x.',
    'huge number': b'\x80\x02\x8b\xff\xff\xff\x7fx.',
    'many instructions': b'\x80\x02' + b']0' * 200_000 + b'}.',
    'persistent object': b'\x80\x02K\x01Q.',
    'extension': b'\x80\x02\x82\x01.',
    'state of a class': b'\x80\x02cchumpy.ch\nCh\n}U\x01aK\x01sb.',
    'state of a list': b'\x80\x02]}b.',
    'not a dictionary': b'\x80\x02]q\x00.',
}


@pytest.mark.parametrize('content', HOSTILE.values(), ids=HOSTILE.keys())
def test_damaged_or_hostile_pickle(tmp_path, content):
    refused(write(tmp_path / 'model.pkl', content))


def test_huge_memo_index_takes_no_memory(tmp_path):
    assert read_arrays(write(tmp_path / 'a.pkl', b'\x80\x02}r\xff\xff\xff\xff.'), ('f',)) == {}
    assert read_arrays(write(tmp_path / 'b.pkl', b'(dp99999999999\n.'), ('f',)) == {}


def test_one_text_encoded_many_times_takes_no_memory(tmp_path):
    encode = b'c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R'
    content = b'\x80\x02X' + (10 ** 6).to_bytes(4, 'little') + b'a' * 10 ** 6 + b'q\x00' + encode * 1000 + b'}.'
    path = write(tmp_path / 'model.pkl', content)
    tracemalloc.start()
    read_arrays(path, ('v_template',))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 ** 7


def npy(shape, data=b'', dtype='<f8'):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {'descr': dtype, 'fortran_order': False, 'shape': shape})
    return file.getvalue() + data


@pytest.mark.parametrize('content', (
    npy((2 ** 40,)), npy((2 ** 24,)), npy((1,), b'x' * 8, '|O'), npy((1,), b'x' * 7), b'', b'no array'))
def test_damaged_or_hostile_archive(tmp_path, content):
    with zipfile.ZipFile(tmp_path / 'model.npz', 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('v_template.npy', content)
    refused(tmp_path / 'model.npz')


def test_archive_of_objects_is_not_unpickled(tmp_path):
    mark = tmp_path / 'executed'
    np.savez(tmp_path / 'model.npz', v_template=np.array([Runs(os.mkdir, str(mark))], dtype=object))
    refused(tmp_path / 'model.npz')
    assert not mark.exists()


def test_archive_bombs(tmp_path):
    with zipfile.ZipFile(tmp_path / 'members.npz', 'w') as archive:
        for index in range(101):
            archive.writestr(f'{index}.npy', b'')
    refused(tmp_path / 'members.npz')
    with zipfile.ZipFile(tmp_path / 'large.npz', 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('v_template.npy', npy((2 ** 26,)) + bytes(10 ** 7))
    assert 'more than' in refused(tmp_path / 'large.npz')
    refused(write(tmp_path / 'short.npz', b'PK'))
    refused(tmp_path / 'missing.npz')
    refused(tmp_path)
