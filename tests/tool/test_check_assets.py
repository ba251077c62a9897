"""The checker of the data sets' files, against the loaders and on files that are missing or damaged."""
import json
import shutil

import cv2
import numpy as np
import pytest

from common.errors import UserError
from data import build_dataset
from data.assets.schema import Arrays, Coco, Keyed, Listed
from data.assets.table import assets_of
from tool import check_assets

SETS = ('Human36M', 'MuCo', 'MSCOCO', 'PW3D', 'FreiHAND')


@pytest.fixture
def data_dir(tmp_path, tiny_datasets):
    """A copy of the tiny data sets that may be changed."""
    shutil.copytree(tiny_datasets, tmp_path / 'data')
    return tmp_path / 'data'


@pytest.fixture
def check(tmp_path, stand_in_bodies, capsys):
    """check(data_dir, arguments...) -> (exit code, what was printed)"""
    def run(data_dir, *arguments):
        code = check_assets.main([*arguments, f'data_dir={data_dir}', f'human_model_dir={stand_in_bodies}',
                                  f'output_dir={tmp_path}', f'cache_dir={tmp_path}/cache'])
        return code, capsys.readouterr().out
    return run


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_complete_sets_are_ready(check, tiny_datasets):
    code, printed = check(tiny_datasets, *SETS, 'smpl', 'mano', 'Synthetic', 'open_body')
    assert code == 0
    assert 'MISSING' not in printed and 'BROKEN' not in printed
    assert '=> PW3D: ready: train, validation, test\n' in printed
    assert 'train: 20 samples in 20 images, 0 of them absent' in printed


def test_empty_folder(check, tmp_path):
    code, printed = check(tmp_path)
    assert code == 1
    for name in SETS:
        assert f'{name:10} NOT READY' in printed and f'present  {name}' not in printed
    assert 'Synthetic  ready' in printed
    assert 'MISSING  MuCo/data/smpl_param.json  (train: the SMPL fits)' in printed
    assert 'use_gt_info=true does without it' in printed
    assert 'where to get J_regressor_h36m_correct.npy' in printed


def test_one_complete_set_is_enough(check, data_dir):
    for name in ('Human36M', 'MSCOCO', 'PW3D', 'MuCo'):
        shutil.rmtree(data_dir / name)
    assert check(data_dir, 'FreiHAND')[0] == 0
    code, printed = check(data_dir)
    assert code == 1 and 'FreiHAND   ready' in printed and 'PW3D       NOT READY' in printed


def test_a_setting_does_without_the_rootnet_file(check, data_dir):
    shutil.rmtree(data_dir / 'PW3D/rootnet_output')
    code, printed = check(data_dir, 'PW3D')
    assert code == 1 and '=> PW3D: ready: train; NOT ready: validation, test' in printed
    assert check(data_dir, 'PW3D', 'use_gt_info=true')[0] == 0


@pytest.mark.parametrize('name, file, change, problem', [
    ('PW3D', 'data/3DPW_test.json', lambda c: c['annotations'][1]['smpl_param']['pose'].pop(),
     'annotation 11: smpl_param.pose has the shape (71,), expected (72,)'),
    ('PW3D', 'data/3DPW_test.json', lambda c: c['images'][2].pop('cam_param'), 'image 2: it has no cam_param'),
    ('MuCo', 'data/smpl_param.json', lambda c: c['2'].update(trans=[0, 0, float('nan')]),
     'annotation 2: trans is not finite'),
    ('Human36M', 'annotations/Human36M_subject5_joint_3d.json', lambda c: c['2']['1'].update({'64': [1, 2]}),
     'action 2 sub-action 1 frame 64: it has the shape (2,), expected (17, 3)'),
    ('FreiHAND', 'rootnet_output/bbox_root_freihand_output.json', lambda c: c[3].pop('root_cam'),
     'image_id 3: it has no root_cam')])
def test_first_bad_record_is_named(check, data_dir, name, file, change, problem):
    edit(data_dir / name / file, change)
    code, printed = check(data_dir, name)
    assert code == 1 and f'BROKEN   {name}/{file}' in printed and problem in printed


def test_damaged_files(check, data_dir):
    path = data_dir / 'MSCOCO/annotations/coco_smplifyx_train.json'
    path.write_text(path.read_text()[:-100])
    np.save(data_dir / 'MSCOCO/J_regressor_coco_hip_smpl.npy', np.zeros((19, 6890)))
    code, printed = check(data_dir, 'MSCOCO')
    assert code == 1 and '=> MSCOCO: ready: test; NOT ready: train' in printed
    assert 'download it again' in printed and 'has the shape (19, 6890), expected (17, 6890)' in printed
    path.write_text('[' * 100_000)
    (data_dir / 'MSCOCO/J_regressor_coco_hip_smpl.npy').write_bytes(b'\x93NUMPY\x01\x00\x04\x00{([\n')
    code, printed = check(data_dir, 'MSCOCO', 'PW3D')
    assert code == 1 and printed.count('BROKEN') >= 2 and 'PW3D       ready' in printed


def test_absent_and_unreadable_images(check, data_dir):
    images = sorted((data_dir / 'FreiHAND/data/training/rgb').iterdir())
    for path in images[1:3]:
        path.unlink()
    next((data_dir / 'FreiHAND/data/evaluation/rgb').iterdir()).write_bytes(b'no image')
    code, printed = check(data_dir, 'FreiHAND')
    assert code == 1
    assert f'2 of 4 images are absent, the first: {images[1]}' in printed
    assert 'unusable' in printed
    cv2.imwrite(str(next((data_dir / 'FreiHAND/data/evaluation/rgb').iterdir())), np.zeros((60, 50, 3), np.uint8))
    assert 'is 50 x 60 pixels large, the annotations say 112 x 112' in check(data_dir, 'FreiHAND')[1]


def test_one_half_downloaded_image_is_found(check, data_dir, monkeypatch):
    """Whichever it is: not all images are decoded."""
    monkeypatch.setattr('tool.assets.images.DECODED', 1)
    path = sorted((data_dir / 'FreiHAND/data/training/rgb').iterdir())[2]
    noise = np.random.default_rng(0).integers(0, 255, (112, 112, 3), np.uint8)
    data = cv2.imencode('.jpg', noise)[1].tobytes()
    path.write_bytes(data)
    assert check(data_dir, 'FreiHAND')[0] == 0
    path.write_bytes(data[:len(data) // 4])
    code, printed = check(data_dir, 'FreiHAND')
    assert code == 1 and f'{path} is cut off' in printed


def test_fits_are_drawn_and_measured(check, tiny_datasets, tmp_path):
    code, printed = check(tiny_datasets, 'MuCo', '--fits', '--fit_num', '2')
    assert code == 0
    assert len(list((tmp_path / 'vis').glob('fit_MuCo_train_*.jpg'))) == 2
    mean = float(printed.split('mean joint error of 2 fits: ')[1].split(' mm')[0])
    assert 2 < mean < 12  # the data sets' joints were moved by noise of 5 mm per axis


def test_unknown_name(check, tmp_path):
    with pytest.raises(UserError, match='unknown data set or body model "3DPW": one of .*PW3D'):
        check(tmp_path, '3DPW')


@pytest.mark.parametrize('name', SETS)
def test_table_and_loaders_agree(name, data_dir, stand_in_bodies):
    """A split is loaded without the files of others; without one of its own, the loader names it."""
    cfg = check_assets.settings_for(name, [f'data_dir={data_dir}', f'human_model_dir={stand_in_bodies}'])
    assets = [asset for asset in assets_of(name, cfg) if not asset.optional]
    for split in {split for asset in assets for split in asset.splits}:
        others = [asset for asset in assets if split not in asset.splits]
        own = {asset.holds: asset for asset in assets if split in asset.splits}.values()  # one of each kind
        for asset in others:
            hide(data_dir, asset)
        load_and_prepare_evaluation(name, split, cfg)
        for asset in own:
            hide(data_dir, asset)
            if asset.setting and name == 'FreiHAND':  # the published evaluation list has no boxes
                with pytest.raises(UserError, match=asset.path):
                    build_dataset(name, split, cfg)
            elif asset.setting:  # there is a fallback, of which the report tells
                assert build_dataset(name, split, cfg).boxes.depth_source != 'RootNet file'
            else:
                with pytest.raises(UserError, match=asset.path):
                    load_and_prepare_evaluation(name, split, cfg)
            hide(data_dir, asset, back=True)
        for asset in others:
            hide(data_dir, asset, back=True)


def hide(data_dir, asset, back=False):
    names = [data_dir / asset.path, data_dir / f'{asset.path}.hidden']
    shutil.move(*(reversed(names) if back else names))


def load_and_prepare_evaluation(name, split, cfg):
    dataset = build_dataset(name, split, cfg)
    return dataset if split == 'train' or name == 'MSCOCO' else dataset.eval_joints


def test_layouts_of_other_files():
    assert Coco().first_problem([]) == 'the file is not a dictionary'
    assert Coco().first_problem(dict(images=[], annotations=[])) == 'the file has no annotations'
    image = dict(id=3, file_name='a.jpg', width=10, height=10)
    person = dict(id=5, image_id=4, bbox=[0, 0, 5, 5])
    assert 'annotation 5: image_id 4' in Coco().first_problem(dict(images=[image], annotations=[person]))
    assert 'not a dictionary' in Keyed(('subject', 'frame'), (3,)).first_problem({'1': [1, 2, 3]})
    assert Listed('image_id', dict(bbox=(4,))).first_problem({}) == 'the file is not a list'
    assert Arrays((2,)).first_problem([[1, 2], [3, 'a']]) == 'element 1 is not an array of numbers'
    assert Arrays((2,)).first_problem([[1, 2], [3, 4]]) is None
