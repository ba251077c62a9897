"""Official model files: every name, every way they were written, and wrong files."""
import datetime
import decimal
import pickle
import sys
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from common.errors import UserError
from common.files.arrays import read_arrays
from common.human_model import get_human_model, mano, smpl
from common.human_model.model_spec import find_model_file, load_model_file
from tests.py2_pickles import as_official, dump, mano_arrays, smpl_arrays

NAMES = ('v_template', 'f', 'weights', 'shapedirs', 'posedirs', 'J_regressor', 'kintree_table')


def write(path, content):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(content)
    return path


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


KINDS = {
    'matrix': np.asmatrix, 'coo': sparse.coo_matrix, 'lil': sparse.lil_matrix, 'csc array': sparse.csc_array,
    'csr array': sparse.csr_array, 'coo array': sparse.coo_array, 'lil array': sparse.lil_array,
    'list': lambda array: array.tolist()}


@pytest.mark.parametrize('protocol', (2, 4, 5))
@pytest.mark.parametrize('kind', KINDS)
def test_regressors_that_people_converted(tmp_path, kind, protocol):
    arrays = mano_arrays()
    stored = OrderedDict(arrays, J_regressor=KINDS[kind](arrays['J_regressor']))
    path = write(tmp_path / 'MANO_RIGHT.pkl', pickle.dumps(stored, protocol=protocol))
    read = load_model_file(mano.SPEC, path)
    np.testing.assert_array_equal(read.joint_regressor, arrays['J_regressor'].astype(np.float32))


def test_flat_pose_basis_and_lists_in_an_archive(tmp_path):
    arrays = mano_arrays()
    path = write(tmp_path / 'MANO_RIGHT.pkl', pickle.dumps(arrays, protocol=4))
    expected = load_model_file(mano.SPEC, path)
    flat = dict(arrays, posedirs=arrays['posedirs'].reshape(3 * 778, -1).T)
    lists = {name: value.tolist() for name, value in flat.items() if isinstance(value, np.ndarray)}
    np.savez(tmp_path / 'MANO_RIGHT.npz', **lists)
    for changed in (write(tmp_path / 'flat.pkl', pickle.dumps(flat, protocol=4)), tmp_path / 'MANO_RIGHT.npz'):
        read = load_model_file(mano.SPEC, changed)
        for name, value in vars(expected).items():
            np.testing.assert_array_equal(getattr(read, name), value, err_msg=name)


@pytest.mark.parametrize('template', [np.array(1.), np.float64(1), 1., 7, 'text', None])
@pytest.mark.parametrize('name', ['v_template', 'shapedirs', 'kintree_table', 'hands_mean'])
def test_one_number_in_place_of_an_array(tmp_path, template, name):
    path = write(tmp_path / 'a.pkl', pickle.dumps(dict(mano_arrays(), **{name: template}), protocol=4))
    with pytest.raises(UserError, match=r'a\.pkl (is not the MANO model: its|cannot be read as a body model: not an)'):
        load_model_file(mano.SPEC, path)


class Notes(dict):
    """What somebody may have kept in a file."""

    def __init__(self, *args):
        super().__init__(*args)
        self.author = 'a name'


class Lines(list):
    pass


NOTES = {
    'path': Path('x'), 'date': datetime.datetime(2024, 5, 1), 'decimal': decimal.Decimal(1), 'slice': slice(2),
    'named lists': defaultdict(list, a=[1]), 'dictionary': Notes({'a': 1, 'b': [2]}), 'list': Lines([1, 2, 3]),
    'random numbers': np.random.RandomState(3), 'function': len, 'class': Notes, 'date type': np.dtype('M8[s]')}


@pytest.mark.parametrize('protocol', (0, 2, 4, 5))
@pytest.mark.parametrize('kind', NOTES)
def test_what_is_beside_the_arrays_does_no_harm(tmp_path, kind, protocol):
    arrays = mano_arrays()
    stored = {'notes': NOTES[kind], **arrays, 'more': [NOTES[kind]]}
    read = load_model_file(mano.SPEC, write(tmp_path / 'b.pkl', pickle.dumps(stored, protocol=protocol)))
    np.testing.assert_array_equal(read.joint_regressor, arrays['J_regressor'].astype(np.float32))
    stored = dict(arrays, weights=NOTES[kind])
    path = write(tmp_path / 'b.pkl', pickle.dumps(stored, protocol=protocol))
    with pytest.raises(UserError, match='b.pkl cannot be read as a body model: .*use the official file as it is'):
        load_model_file(mano.SPEC, path)


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
    assert f' put it into {tmp_path} (human_model_dir) or {tmp_path / "smpl"};' in message
    for name in ('SMPL_FEMALE.pkl', 'SMPL_FEMALE.npz', 'basicModel_f_lbs_10_207_0_v1.0.0.pkl',
                 'basicModel_f_lbs_10_207_0_v1.1.0.pkl'):
        assert message.count(name) == 1
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
