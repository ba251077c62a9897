"""What the loaders do with records that make no sense, and with images that are not there."""
import logging
import os
import shutil

import numpy as np
import pytest
from torch.utils.data import DataLoader

from common.errors import UserError, run_main
from common.files.listing import KnownFiles
from common.human_model import get_human_model
from common.utils.preprocessing import AugParams, crop_affine
from data.checks import load_check, replaced
from data.codec import LixelCodec
from data.joint_set import JointSet
from data.sample import Sample
from data.target import TargetRules, build_targets
from tests.data_tools import copy_set, pinhole


def test_bad_parts_are_masked_counted_and_reported_once(open_set, changed, caplog):
    def spoil(content):
        frame = content['2']['1']['0']
        frame['pose'][5] = float('nan')
    data_dir = changed('Human36M', 'annotations/Human36M_subject7_smpl_param.json', spoil)
    with caplog.at_level(logging.WARNING):
        data = open_set('Human36M', 'train', 'h36m_train_cameras=[4]', data_dir=data_dir)
    assert sum('fit not finite' in r.message and '1 x' in r.message for r in caplog.records) == 1
    index = next(i for i, s in enumerate(data.samples) if s.fit is None)
    _, targets, meta = data.get_item(index, None)
    assert 's_07' in data.samples[index].img_path and len(data) == 10
    assert meta['is_valid_fit'] == 0 and not meta['fit_mesh_trunc'].any() and not targets['fit_mesh_img'].any()
    assert meta['orig_joint_valid'].any() and targets['orig_joint_img'].any()


def test_joints_that_are_not_finite_are_masked(open_set, changed):
    def spoil(content):
        content['annotations'][0]['keypoints_cam'][5] = [float('nan')] * 3
        content['annotations'][1]['keypoints_cam'][5] = [float('nan')] * 3
    data = open_set('MuCo', 'train', data_dir=changed('MuCo', 'data/MuCo-3DHP.json', spoil))
    targets, meta = data.get_item(0, None)[1:]
    assert np.isfinite(targets['orig_joint_img']).all()
    shoulder = data.human_model.joint_set.index('L_Shoulder')
    assert meta['orig_joint_valid'][shoulder] == 0 and meta['orig_joint_valid'].sum() > 10


def test_a_wrong_camera_file_stops_the_run_and_is_suspected(open_set, changed):
    def old_convention(content):
        for camera in content.values():
            camera['t'] = [0, 0, -4000]
    data_dir = changed('Human36M', 'annotations/Human36M_subject1_camera.json', old_convention)
    with pytest.raises(UserError, match=r'Human36M: 4 of the first .*joints behind the camera.*suspect .*_camera.json'):
        open_set('Human36M', 'train', data_dir=data_dir)


@pytest.mark.parametrize('trans', [[50, 0, 4], [0, 0, -4]])
def test_fits_out_of_sight_stop_the_run(trans, open_set, changed):
    def move(content):
        for person in content.values():
            person['smpl_param']['trans'] = trans
    data_dir = changed('MSCOCO', 'annotations/coco_smplifyx_train.json', move)
    with pytest.raises(UserError, match='MSCOCO: 4 of the .*impossible size or place.*suspect coco_smplifyx_train'):
        open_set('MSCOCO', 'train', data_dir=data_dir)


def test_one_mesh_of_impossible_size_is_masked(open_set, changed):
    def enlarge(content):
        content['104']['smpl_param']['shape'][0] = 1000
    data = open_set('MSCOCO', 'train', data_dir=changed('MSCOCO', 'annotations/coco_smplifyx_train.json', enlarge))
    assert data.samples[1].ann_id == 104 and data.samples[1].fit is None
    assert data.check.counts['mesh of impossible size or place, masked'] == 1


def test_meshes_not_looked_at_while_loading_are_told_when_they_are_read(open_set, changed, monkeypatch, caplog):
    def enlarge(content):
        for person in content.values():
            person['smpl_param']['shape'][0] = 1000
    monkeypatch.setattr(load_check, 'CHECKED', 0)
    data = open_set('MSCOCO', 'train', data_dir=changed('MSCOCO', 'annotations/coco_smplifyx_train.json', enlarge))
    fitted = [i for i, sample in enumerate(data.samples) if sample.fit is not None]
    assert len(fitted) > 2
    caplog.clear()
    for _ in range(2):  # two epochs
        for i in range(len(data)):
            assert data.get_item(i, None)[2]['is_valid_fit'] == 0
    message, = (record.getMessage() for record in caplog.records)
    assert data.check.late == set(fitted)
    assert f'MSCOCO: masked meshes of impossible size or place, read so far by this process: 1 (the last: ' \
        f'{data.samples[fitted[0]].img_path}, id {data.samples[fitted[0]].ann_id})' in message


def test_boxes_off_the_image_are_skipped(open_set, changed):
    def spoil(content):
        content['annotations'][0]['bbox'] = [1000, 1000, 50, 50]
    data = open_set('PW3D', 'test', 'use_gt_info=true', data_dir=changed('PW3D', 'data/3DPW_test.json', spoil))
    assert len(data) == 4 and data.check.counts['box off the image, sample skipped'] == 1


@pytest.mark.parametrize('lacking', [{}, {'2': {}}, {'2': {'1': {}}}])
def test_a_fit_missing_at_any_level_keeps_the_sample(lacking, open_set, changed):
    data_dir = changed('Human36M', 'annotations/Human36M_subject1_smpl_param.json', lambda content: lacking)
    data = open_set('Human36M', 'train', data_dir=data_dir)
    assert len(data) == 20 and sum(s.fit is None for s in data.samples) == 4


def test_fit_limit_is_a_setting_and_rejections_are_counted(open_set):
    counts = []
    for limit in (1, 25, 1000):
        data = open_set('Human36M', 'train', f'fit_limit_mm={limit}', 'h36m_train_cameras=[4]')
        counts.append(data.check.rejected)
        metas = [data.get_item(i, None)[2] for i in range(0, 10, 3)]
        assert all(meta['orig_joint_trunc'].any() for meta in metas) and data.check.fits == 10
        assert {1: 0, 25: 2, 1000: 4}[limit] == sum(meta['is_valid_fit'] for meta in metas)
    assert counts[0] == 10 > counts[1] > counts[2] == 0


def test_missing_images_are_replaced_or_an_error(open_set, tiny_datasets, tmp_path, caplog):
    copy_set(tiny_datasets, tmp_path, 'MSCOCO')
    (tmp_path / 'MSCOCO' / 'images' / 'train2017' / '000000000003.png').unlink()
    with caplog.at_level(logging.WARNING):
        data = open_set('MSCOCO', 'train', 'max_missing_images=0.2', data_dir=tmp_path)
        items = [data[i] for i in range(5)]
    assert len(items) == 5 and len(data.replaced.indices) == 1 and data.check.counts['image missing'] == 1
    assert any('000000000003.png' in r.getMessage() for r in caplog.records)
    with pytest.raises(UserError, match='000000000003.png'):
        open_set('MSCOCO', 'train', 'missing_image=error', data_dir=tmp_path)


def test_too_many_missing_images_stop_the_run(open_set, tiny_datasets, tmp_path):
    copy_set(tiny_datasets, tmp_path, 'MSCOCO')
    shutil.rmtree(tmp_path / 'MSCOCO' / 'images' / 'train2017')
    data = open_set('MSCOCO', 'train', 'max_missing_images=1', data_dir=tmp_path)
    assert data.check.counts['image missing'] == 5
    with pytest.raises(UserError, match='MSCOCO: 5 samples could not be used, the last of them'):
        data[0]


@pytest.mark.parametrize(('missing', 'overrides', 'is_refused'), [
    (1, (), False), (2, (), True), (2, ('max_missing_images=0.1',), False), (1, ('max_missing_images=0',), True)])
def test_up_to_five_percent_of_the_images_may_be_missing(missing, overrides, is_refused, open_set, tiny_datasets,
                                                         tmp_path):
    copy_set(tiny_datasets, tmp_path, 'Human36M')
    for path in sorted((tmp_path / 'Human36M' / 'images').glob('s_01_*'))[:missing]:
        path.unlink()
    if is_refused:
        with pytest.raises(UserError, match=f'Human36M: {missing} of 20 samples have no image, the first: .*s_01_.*'
                                            'max_missing_images='):
            open_set('Human36M', 'train', *overrides, data_dir=tmp_path)
    else:
        assert len(open_set('Human36M', 'train', *overrides, data_dir=tmp_path)) == 20


def test_a_bad_image_counts_once_however_often_it_is_met(open_set, tiny_datasets, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(replaced, 'MAX_REPLACED', 1)
    copy_set(tiny_datasets, tmp_path, 'MSCOCO')
    images = sorted((tmp_path / 'MSCOCO' / 'images' / 'train2017').iterdir())
    images[0].write_bytes(b'no image')
    images[1].unlink()  # missing at the start: reported, and not among those that stop the run
    data = open_set('MSCOCO', 'train', 'max_missing_images=1', data_dir=tmp_path)
    for epoch in range(4):
        data.set_epoch(epoch)
        assert all(data[i][0]['img'].any() for i in range(5))
    assert data.replaced.indices == {0, 1}
    assert sum('cannot be used and is replaced' in r.getMessage() for r in caplog.records) == 2
    for path in images[2:4]:
        path.write_bytes(b'no image')
    with pytest.raises(UserError, match='MSCOCO: 3 samples could not be used'):
        [data[i] for i in range(5)]


def test_missing_images_are_counted_to_the_last_sample(open_set, tiny_datasets, tmp_path, monkeypatch):
    monkeypatch.setattr(load_check, 'CHECKED', 1)
    copy_set(tiny_datasets, tmp_path, 'MSCOCO')
    images = sorted((tmp_path / 'MSCOCO' / 'images' / 'train2017').iterdir())
    for path in images[3:]:
        path.unlink()
    data = open_set('MSCOCO', 'train', 'max_missing_images=1', data_dir=tmp_path)
    assert data.check.counts['image missing'] == 2 and data.check.first['image missing'] == str(images[3])
    with pytest.raises(UserError, match='000000000003.png is missing'):
        open_set('MSCOCO', 'train', 'missing_image=error', data_dir=tmp_path)


def test_a_folder_is_listed_once_for_all_its_images(tmp_path, monkeypatch):
    for i in range(3):
        (tmp_path / str(i)).mkdir()
        for j in range(4):
            (tmp_path / str(i) / f'{j}.jpg').touch()
    listed = []
    list_folder = os.listdir
    monkeypatch.setattr(os, 'listdir', lambda path: listed.append(path) or list_folder(path))
    looked_at = []
    exists = os.path.exists
    monkeypatch.setattr(os.path, 'exists', lambda path: looked_at.append(path) or exists(path))
    files = KnownFiles()
    assert all(files.exists(f'{tmp_path}/{i % 3}/{i // 3 % 4}.jpg') for i in range(60))
    assert sorted(listed) == [f'{tmp_path}/{i}' for i in range(3)] and not looked_at
    assert not files.exists(f'{tmp_path}/0/50.jpg') and not files.exists(f'{tmp_path}/nowhere/1.jpg')


def own_sample(**parts):
    """A sample of a set that knows joints in camera space only; the second of three is not annotated: zeros."""
    joints = np.float32([[0, 0, 4], [0, 0, 0], [.2, .1, 4.1]])
    return Sample('a.jpg', (200, 200), np.float32([50, 50, 100, 100]), pinhole(), joint_cam=joints,
                  joint_valid=np.float32([[1], [0], [1]]), **parts)


OWN_JOINTS = JointSet('Own', ('Pelvis', 'L_Knee', 'Nose'))


def checked(sample):
    check = load_check.LoadCheck('Own', 'a file', None, None, OWN_JOINTS)
    return next(iter(check.filter([sample]))), check


def own_targets(sample, body):
    rules = TargetRules(lambda gender: body, LixelCodec((256, 256), (64, 64, 64), 2.), OWN_JOINTS)
    return build_targets(sample, AugParams(), crop_affine(sample.bbox, 1, 0, (256, 256)), rules)


def test_joints_that_are_not_annotated_may_be_anything(stand_in_bodies):
    body = get_human_model('smpl', stand_in_bodies)
    rows = [body.joint_set.index(name) for name in OWN_JOINTS.joints_name]
    for filling in (0, -5, np.nan):
        sample = own_sample()
        sample.joint_cam[1] = filling
        sample, check = checked(sample)
        assert check.bad == np.isnan(filling)
        targets, meta = own_targets(sample, body)
        assert all(np.isfinite(value).all() for value in targets.values()) and meta['is_3D'] == 1
        assert meta['orig_joint_valid'][rows, 0].tolist() == meta['orig_joint_trunc'][rows, 0].tolist() == [1, 0, 1]
        np.testing.assert_allclose(targets['orig_joint_cam'][rows[2]], [.2, .1, .1], atol=1e-6)
    doubtful = own_sample()
    doubtful.joint_valid[1] = np.nan
    doubtful, check = checked(doubtful)
    assert doubtful.joint_valid.ravel().tolist() == [1, 0, 1] and check.counts['joints not finite, masked'] == 1
    behind = own_sample()
    behind.joint_cam[2, 2] = -1
    assert checked(behind)[1].counts == {'joints behind the camera, masked': 1}


@pytest.mark.parametrize('pixels', [False, True])
def test_without_its_root_joint_a_sample_has_no_depth(pixels, stand_in_bodies):
    body = get_human_model('smpl', stand_in_bodies)
    sample = own_sample(joint_img=np.float32([[100, 100], [0, 0], [110, 105]]) if pixels else None)
    sample.joint_cam[0] = np.nan
    targets, meta = own_targets(checked(sample)[0], body)
    nose = body.joint_set.index('Nose')
    assert not targets['orig_joint_cam'].any() and not (meta['is_3D'] and meta['orig_joint_valid'].any())
    assert meta['orig_joint_trunc'].sum() == meta['orig_joint_trunc'][nose, 0] == pixels


def test_a_missing_image_of_a_test_is_one_line_from_a_loader_process_too(open_set, tiny_datasets, tmp_path, capsys):
    copy_set(tiny_datasets, tmp_path, 'MSCOCO')
    (tmp_path / 'MSCOCO' / 'images' / 'val2017' / '000000000050.png').unlink()
    data = open_set('MSCOCO', 'test', 'max_missing_images=1', data_dir=tmp_path)
    with pytest.raises(SystemExit) as end:
        run_main(lambda: list(DataLoader(data, num_workers=1)))
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert end.value.code == 2 and 'Traceback' not in message
    assert message.startswith('error: MSCOCO: 1 samples could not be used') and '000000000050.png' in message


def test_augmentation_is_a_function_of_seed_epoch_and_index(open_set):
    data, again, other = (open_set('MuCo', 'train', f'seed={s}') for s in (0, 0, 1))
    for d in (data, again):
        d.set_epoch(3)
    np.testing.assert_array_equal(data[1][0]['img'], again[1][0]['img'])
    again.set_epoch(4)
    other.set_epoch(3)
    assert not np.array_equal(data[1][0]['img'], again[1][0]['img'])
    assert not np.array_equal(data[1][0]['img'], other[1][0]['img'])


def test_fits_of_another_body_model_are_left_out(open_set, caplog):
    with caplog.at_level(logging.WARNING):
        data = open_set('MSCOCO', 'train', 'body_model=open_body')
    assert all(s.fit is None for s in data.samples)
    assert any('its fits are of smpl' in r.getMessage() for r in caplog.records)
