"""Official model files: every name, every way they were written, and files that are wrong, damaged or hostile."""
import io
import os
import pickle
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse

from common.errors import UserError
from common.human_model import get_human_model, mano, smpl
from common.human_model.model_file import read_arrays
from common.human_model.model_spec import find_model_file, load_model_file
from tests.py2_pickles import (
    Call,
    Global,
    Instance,
    as_official,
    chumpy_array,
    dump,
    mano_arrays,
    smpl_arrays,
    sparse_columns,
)

NAMES = ('v_template', 'f', 'weights', 'shapedirs', 'posedirs', 'J_regressor', 'kintree_table')


def write(path, content):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(content)
    return path


def refused(path, names=('v_template',)):
    """The message of the error that reading raises; checks that it is one line and names the file."""
    with pytest.raises(UserError) as error:
        read_arrays(path, names)
    assert '\n' not in str(error.value) and str(path) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize('protocol', (0, 2))
@pytest.mark.parametrize('make', (smpl_arrays, mano_arrays))
def test_python_2_pickle_without_chumpy(tmp_path, protocol, make, monkeypatch):
    monkeypatch.setitem(sys.modules, 'chumpy', None)   # makes `import chumpy` fail
    arrays = make()
    path = write(tmp_path / 'model.pkl', dump(as_official(arrays), protocol))
    read = read_arrays(path, NAMES)
    for name in NAMES:
        np.testing.assert_array_equal(read[name], arrays[name], err_msg=name)


@pytest.mark.parametrize('protocol', (2, 3, 4, 5))
def test_file_saved_again_by_python_3(tmp_path, protocol):
    arrays = mano_arrays()
    stored = dict(arrays, J_regressor=sparse.csc_matrix(arrays['J_regressor']), marks={'a', 'b'},
                  weights=sparse.csr_matrix(arrays['weights']), scale=np.float64(2))
    read = read_arrays(write(tmp_path / 'model.pkl', pickle.dumps(stored, protocol=protocol)), NAMES)
    for name in NAMES:
        np.testing.assert_array_equal(read[name], arrays[name], err_msg=name)


def test_archive(tmp_path):
    arrays = mano_arrays()
    for name, save in (('a.npz', np.savez), ('b.npz', np.savez_compressed)):
        save(tmp_path / name, **arrays, unused=np.array([{}], dtype=object))   # never touched, so harmless
        read = read_arrays(tmp_path / name, NAMES)
        for key in NAMES:
            np.testing.assert_array_equal(read[key], arrays[key], err_msg=key)


@pytest.mark.parametrize('folder', ('.', 'smpl'))
@pytest.mark.parametrize('gender, name', (
    ('neutral', 'basicModel_neutral_lbs_10_207_0_v1.0.0.pkl'),
    ('neutral', 'basicmodel_neutral_lbs_10_207_0_v1.1.0.pkl'),
    ('neutral', 'SMPL_NEUTRAL.pkl'), ('neutral', 'SMPL_NEUTRAL.npz'), ('neutral', 'smpl_neutral.pkl'),
    ('male', 'basicModel_m_lbs_10_207_0_v1.0.0.pkl'), ('male', 'basicmodel_m_lbs_10_207_0_v1.1.0.npz'),
    ('male', 'SMPL_MALE.pkl'), ('female', 'basicModel_f_lbs_10_207_0_v1.0.0.pkl'), ('female', 'SMPL_FEMALE.npz')))
def test_every_official_name(tmp_path, folder, gender, name):
    path = write(tmp_path / folder / name, b'')
    assert find_model_file(smpl.SPEC, tmp_path, gender) == path
    for other in {'neutral', 'male', 'female'} - {gender}:
        with pytest.raises(UserError):
            find_model_file(smpl.SPEC, tmp_path, other)


@pytest.mark.parametrize('name', ('MANO_RIGHT.pkl', 'mano/MANO_RIGHT.pkl', 'mano/mano_right.npz'))
def test_names_of_mano(tmp_path, name):
    path = write(tmp_path / name, b'')
    assert find_model_file(mano.SPEC, tmp_path, 'neutral') == path


def test_missing_file_says_where_and_what(tmp_path):
    with pytest.raises(UserError) as error:
        get_human_model('smpl', tmp_path, 'female')
    message = str(error.value)
    for folder in (tmp_path, tmp_path / 'smpl'):
        for name in ('SMPL_FEMALE.pkl', 'SMPL_FEMALE.npz', 'basicModel_f_lbs_10_207_0_v1.0.0.pkl',
                     'basicModel_f_lbs_10_207_0_v1.1.0.pkl'):
            assert str(folder / name) in message
    assert 'https://smpl.is.tue.mpg.de' in message and '3DPW' in message and '\n' not in message
    with pytest.raises(UserError, match='https://smplify.is.tue.mpg.de'):
        get_human_model('smpl', tmp_path)
    with pytest.raises(UserError, match='FreiHAND.*MANO_RIGHT.pkl.*https://mano.is.tue.mpg.de'):
        get_human_model('mano', tmp_path)


def test_300_shape_components_give_the_first_10(tmp_path):
    few = write(tmp_path / 'few.pkl', dump(as_official(smpl_arrays(10)), 2))
    many = write(tmp_path / 'many.pkl', dump(as_official(smpl_arrays(300)), 2))
    few, many = load_model_file(smpl.SPEC, few), load_model_file(smpl.SPEC, many)
    assert many.shapedirs.shape == (6890, 3, 10) and many.shapedirs.dtype == np.float32
    np.testing.assert_array_equal(few.shapedirs, many.shapedirs)
    np.testing.assert_array_equal(few.posedirs, many.posedirs)


@pytest.mark.parametrize('change, message', (
    ({'v_template': np.zeros((10475, 3))}, 'it has 10475 vertices .that is SMPL-X., MANO has 778'),
    ({'v_template': np.zeros((6890, 3))}, 'it has 6890 vertices .that is SMPL., MANO has 778'),
    ({'v_template': np.zeros((777, 3))}, 'it has 777 vertices, MANO has 778'),
    ({'v_template': np.zeros(778)}, 'v_template has the shape'),
    ({'weights': np.zeros((778, 52))}, 'weights has the shape .778, 52., expected .778, 16.'),
    ({'shapedirs': np.zeros((778, 3, 9))}, '9 shape components'),
    ({'f': np.full((1538, 3), 778)}, 'vertices that it does not have'),
    ({'hands_mean': np.full(45, np.nan)}, 'not finite'),
    ({'kintree_table': np.zeros((2, 16), int)}, 'connected in another way')))
def test_wrong_file(tmp_path, change, message):
    path = write(tmp_path / 'MANO_RIGHT.pkl', pickle.dumps(dict(mano_arrays(), **change)))
    with pytest.raises(UserError, match=message) as error:
        get_human_model('mano', tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize('name', NAMES)
def test_missing_array_is_named(tmp_path, name):
    stored = mano_arrays()
    del stored[name]
    np.savez(tmp_path / 'MANO_RIGHT.npz', **stored)
    with pytest.raises(UserError, match=f'it has no {name}'):
        get_human_model('mano', tmp_path)


def test_hand_in_place_of_body(tmp_path):
    write(tmp_path / 'SMPL_NEUTRAL.pkl', dump(as_official(mano_arrays()), 2))
    with pytest.raises(UserError, match='778 vertices .that is MANO., SMPL has 6890'):
        get_human_model('smpl', tmp_path)


class Runs:
    """An object whose pickle calls a function when it is loaded."""
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


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
    ('chumpy.ch', 'Ch.__init__'), ('common.human_model.safe_pickle', 'SafeUnpickler'), ('scipy.sparse', 'load_npz')))
def test_other_globals_are_refused_by_name(tmp_path, module, name):
    stored = {'v_template': Call(Global(module, name), ('touch x',))}
    assert f'{module}.{name}' in refused(write(tmp_path / 'model.pkl', dump(stored, 2)))


def forged_array(shape, dtype='f8', data=b''):
    """An array whose shape, type and data need not fit together."""
    number = Call(Global('numpy', 'dtype'), (dtype, 0, 1))
    return {'v_template': Instance('numpy.core.multiarray', '_reconstruct', (1, shape, number, False, data))}


@pytest.mark.parametrize('stored', (
    forged_array((2 ** 40,)), forged_array((2 ** 20, 2 ** 20)), forged_array((-1, 3)),
    forged_array((3,), data=b'x' * 23), forged_array((1,), 'O8', b'x' * 8), forged_array((1,), 'V8', b'x' * 8),
    forged_array(None), {'v_template': 'text'}, {'v_template': [1, 2]},
    {'v_template': Call(Global('__builtin__', 'object'), ())}))
def test_array_that_is_none(tmp_path, stored):
    refused(write(tmp_path / 'model.pkl', dump(stored, 2)))


def test_sparse_indices_beyond_the_matrix(tmp_path):
    matrix = sparse_columns(np.eye(3))
    matrix.state['indices'] = np.array([0, 10 ** 6, 2], np.int32)
    refused(write(tmp_path / 'model.pkl', dump({'v_template': matrix}, 2)))


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
