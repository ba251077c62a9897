"""Every file of every data set: missing, empty, cut off, something else, a folder, not readable. One line each, which
names the file and says what to do."""
import logging
import shutil
from functools import partial

import numpy as np
import pytest

from common.errors import UserError
from common.human_model import get_human_model
from main import test, train
from tests.data_tools import HANDS
from tests.demo_tools import write_snapshot
from tests.faults.commands import run, says
from tests.faults.spoil import SPOIL, like_a_user, spoiled
from tests.py2_pickles import as_official, dump, mano_arrays

H36M = 'annotations/Human36M_subject'
# (data set, split, settings, file)
FILES = [
    *(('Human36M', 'train', (), f'{H36M}1_{kind}.json') for kind in ('data', 'camera', 'joint_3d', 'smpl_param')),
    *(('Human36M', 'test', (), f'{H36M}11_{kind}.json') for kind in ('data', 'camera', 'joint_3d')),
    ('MuCo', 'train', (), 'data/MuCo-3DHP.json'), ('MuCo', 'train', (), 'data/smpl_param.json'),
    ('MSCOCO', 'train', (), 'annotations/person_keypoints_train2017.json'),
    ('MSCOCO', 'train', (), 'annotations/coco_smplifyx_train.json'),
    ('MSCOCO', 'test', (), 'annotations/person_keypoints_val2017.json'),
    *(('PW3D', split, (), f'data/3DPW_{split}.json') for split in ('train', 'validation', 'test')),
    ('SURREAL', 'train', (), 'data/SURREAL_train.json'),
    *(('FreiHAND', 'train', HANDS, f'data/freihand_train_{kind}.json') for kind in ('coco', 'data')),
    *(('FreiHAND', 'test', HANDS, f'data/freihand_eval_{kind}.json') for kind in ('coco', 'data')),
]
names = partial(pytest.mark.parametrize, ('name', 'split', 'settings', 'file'),
                ids=lambda value: value if isinstance(value, str) else '')
# What takes the place of these when they are missing is told by the loader: a fallback, no mistake.
FALLBACK = [
    ('Human36M', 'test', (), 'rootnet_output/bbox_root_human36m_output.json'),
    ('MSCOCO', 'test', (), 'rootnet_output/bbox_root_coco_output.json'),
    ('PW3D', 'test', (), 'rootnet_output/bbox_root_pw3d_output.json'),
    ('FreiHAND', 'test', HANDS, 'rootnet_output/bbox_root_freihand_output.json'),
    ('FreiHAND', 'test', HANDS, 'data/evaluation_xyz.json'),
    ('FreiHAND', 'test', HANDS, 'data/evaluation_verts.json')]
REGRESSORS = [('Human36M', 'train', (), 'J_regressor_h36m_correct.npy'),
              ('MSCOCO', 'train', (), 'J_regressor_coco_hip_smpl.npy')]
JSON = {'missing': 'is missing: it holds .*check_assets.py', 'folder': 'is a folder, where a file belongs.*check_asse',
        'no permission': 'cannot be read .Permission denied.: see to its permissions'}
NO_JSON = 'is not a JSON file .*: download it again'


@pytest.fixture(scope='module')
def data_dir(tmp_path_factory, tiny_datasets):
    """The tiny data sets, with SURREAL and FreiHAND's released ground truth; for changes that are taken back."""
    folder = shutil.copytree(tiny_datasets, tmp_path_factory.mktemp('faults') / 'data')
    (folder / 'SURREAL' / 'data').mkdir(parents=True)
    shutil.copy(folder / 'PW3D/data/3DPW_train.json', folder / 'SURREAL/data/SURREAL_train.json')
    for name, points in (('xyz', 21), ('verts', 778)):
        (folder / 'FreiHAND/data' / f'evaluation_{name}.json').write_text(str(np.ones((4, points, 3)).tolist()))
    return folder


def message(open_set, data_dir, name, split, settings, path):
    with pytest.raises(UserError) as error:
        open_set(name, split, *settings, data_dir=data_dir)
    text = str(error.value)
    assert '\n' not in text and str(path) in text and len(text) < 600
    return text


@pytest.mark.parametrize('fault', SPOIL)
@names(FILES)
def test_annotation_file(name, split, settings, file, fault, open_set, data_dir):
    with spoiled(data_dir / name / file, fault) as path:
        says(message(open_set, data_dir, name, split, settings, path), JSON.get(fault, NO_JSON))


@pytest.mark.parametrize('fault', SPOIL)
@names(FALLBACK)
def test_file_that_a_test_can_do_without(name, split, settings, file, fault, open_set, data_dir, caplog):
    with spoiled(data_dir / name / file, fault) as path, caplog.at_level(logging.WARNING):
        if fault == 'missing':
            if name == 'FreiHAND' and 'rootnet' in file:  # the published evaluation list has no boxes
                with pytest.raises(UserError, match=f'annotation 0 has no bbox: a test takes the boxes of {path}'):
                    open_set(name, split, *settings, data_dir=data_dir)
                return
            data = open_set(name, split, *settings, data_dir=data_dir)
            if 'rootnet' in file:
                assert data.boxes.depth_source != 'RootNet file'
                assert any(str(path) in record.getMessage() for record in caplog.records)
            else:
                assert data.truth is None
        else:
            says(message(open_set, data_dir, name, split, settings, path), JSON.get(fault, NO_JSON))


@pytest.mark.parametrize('fault', SPOIL)
@names(REGRESSORS)
def test_regressor(name, split, settings, file, fault, open_set, data_dir):
    with spoiled(data_dir / name / file, fault) as path:
        wanted = JSON.get(fault, 'is not an array file .*: download it again')
        says(message(open_set, data_dir, name, split, settings, path), wanted)


@pytest.mark.parametrize(('array', 'told'), [
    (np.zeros((17, 778)), 'has the shape .17, 778., expected .17, 6890.: it belongs to another body model'),
    (np.zeros((17, 6890), complex), 'is not an array file .an array of something other than numbers'),
    (np.full((17, 6890), np.nan), 'has values that are not finite: download it again'),
    (np.full((17, 6890), np.inf), 'has values that are not finite: download it again'),
    (np.array([{}] * 3), 'is not an array file'), (np.array('text'), 'is not an array file')])
def test_regressor_with_other_content(array, told, open_set, data_dir):
    with spoiled(data_dir / 'Human36M' / 'J_regressor_h36m_correct.npy', 'missing') as path:
        np.save(path, array)
        says(message(open_set, data_dir, 'Human36M', 'train', (), path), told)


IMAGE = 'data/imageFiles/walk_test_00/image_00000.png'


@pytest.mark.parametrize('fault', [fault for fault in SPOIL if fault != 'jpeg'])  # a JPEG is an image
def test_image(fault, open_set, data_dir):
    """A test needs every image. In a training it is replaced (tests/data/test_data_sanity.py)."""
    with spoiled(data_dir / 'PW3D' / IMAGE, fault) as path:
        if fault == 'truncated':  # OpenCV shows what there is, or nothing
            path.write_bytes(path.read_bytes()[:40])
        data = open_set('PW3D', 'test', 'max_missing_images=1', data_dir=data_dir)
        with pytest.raises(UserError, match='PW3D: 1 samples could not be used, the last of them: .*') as error:
            data[0]
        assert str(path) in str(error.value) and '\n' not in str(error.value)


@pytest.mark.parametrize('fault', SPOIL)
@pytest.mark.parametrize('ending', ('pkl', 'npz'))
def test_body_model(ending, fault, tmp_path):
    file = tmp_path / f'MANO_RIGHT.{ending}'
    arrays = mano_arrays()
    np.savez(file, **arrays) if ending == 'npz' else file.write_bytes(dump(as_official(arrays), 2))
    with spoiled(file, fault), pytest.raises(UserError) as error:
        get_human_model('mano', tmp_path)
    absent = fault in ('missing', 'folder')
    says(str(error.value), f'is missing: get MANO_RIGHT.pkl from https://.* and put it into {tmp_path}' if absent else
         'cannot be read .Permission denied.: see to its permissions' if fault == 'no permission' else
         'has no v_template, so it is not a body model; see https://' if fault == 'zip' else
         'cannot be read as a body model: .*; download the file again')
    assert '\n' not in str(error.value) and (absent or str(file) in str(error.value))


def test_folder_of_body_models_that_cannot_be_listed(tmp_path):
    (tmp_path / 'models').mkdir(mode=0)
    with like_a_user(), pytest.raises(UserError) as error:
        get_human_model('smpl', tmp_path / 'models')
    (tmp_path / 'models').chmod(0o755)
    says(str(error.value), f'{tmp_path}/models, the folder of the body models, cannot be read .Permission denied.')


@pytest.mark.parametrize('fault', ('html', 'no permission'))
def test_the_commands_end_with_that_line_and_code_2(fault, data_dir, stand_in_bodies, tmp_path, capsys):
    snapshot = write_snapshot(tmp_path / 'snapshot_0.pth.tar')
    words = ['--gpu', 'cpu', f'data_dir={data_dir}', f'human_model_dir={stand_in_bodies}', f'output_dir={tmp_path}']
    with spoiled(data_dir / 'PW3D/data/3DPW_test.json', fault) as path:
        assert run(test.main, '--snapshot', snapshot, *words) == 2
        says(capsys.readouterr().err, f'^error: {path} ', JSON.get(fault, NO_JSON))
    with spoiled(data_dir / 'PW3D/data/3DPW_train.json', fault) as path:
        assert run(train.main, *words, 'trainset_3d=[PW3D]', 'trainset_2d=[]', 'pretrained_backbone=false') == 2
        err = capsys.readouterr().err
        says(err, f'^error: cannot train; put this right first:\n  {path} ', JSON.get(fault, NO_JSON))
        assert 'Traceback' not in err
