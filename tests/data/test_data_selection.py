"""Which samples the loaders select, and which files they need for that."""
import json
import shutil

import numpy as np
import pytest

from common.errors import UserError
from data import FOLDER, dataset_names
from tests.data_tools import copy_set


def frames(data):
    """{(subject, camera, frame)} of Human3.6M samples, by their file names."""
    parts = [s.img_path.rsplit('/', 1)[1].split('_') for s in data.samples]
    return {(int(p[1]), int(p[7]), int(p[8][:6]) - 1) for p in parts}


def every(subjects, cameras, wanted):
    return {(s, c, f) for s in subjects for c in cameras for f in wanted}


@pytest.mark.parametrize('split, overrides, wanted', [
    ('train', [], every((1, 5, 6, 7, 8), (1, 4), (0, 5))),
    ('test', [], every((9, 11), (4,), (0, 64))),
    ('validation', [], every((9, 11), (4,), (0, 64))),
    ('train', ['h36m_protocol=1'], every((1, 5, 6, 7, 8, 9), (1, 4), (0, 5))),
    ('test', ['h36m_protocol=1'], every((11,), (4,), (0, 64))),
    ('test', ['h36m_test_cameras=[]'], every((9, 11), (1, 4), (0, 64))),
    ('test', ['h36m_test_cameras=[1]', 'h36m_test_every=7'], every((9, 11), (1,), (0, 7))),
    ('train', ['h36m_train_cameras=[4]', 'h36m_train_every=64'], every((1, 5, 6, 7, 8), (4,), (0, 64)))])
def test_human36m_protocols_cameras_and_frames(split, overrides, wanted, open_set):
    data = open_set('Human36M', split, *overrides)
    assert frames(data) == wanted and len(data) == len(wanted)


def test_protocol_is_described(open_set):
    data = open_set('Human36M', 'test')
    assert data.protocol == 'protocol 2, subjects 9, 11, every 64th frame, cameras 4'
    assert open_set('PW3D', 'test', 'pw3d_gender=neutral').protocol == '3DPW test, neutral gender'


@pytest.mark.parametrize('split', ['train', 'validation', 'test'])
def test_3dpw_has_three_splits(split, open_set):
    data = open_set('PW3D', split)
    assert len(data) == 5 and all(f'walk_{split}_00' in s.img_path for s in data.samples)
    assert {s.fit.gender for s in data.samples} == {'male', 'female'}
    neutral = open_set('PW3D', split, 'pw3d_gender=neutral')
    assert {s.fit.gender for s in neutral.samples} == {'neutral'}


def test_3dpw_images_are_found_beside_data_too(open_set, tiny_datasets, tmp_path):
    copy_set(tiny_datasets, tmp_path, 'PW3D', 'Human36M')
    shutil.move(tmp_path / 'PW3D' / 'data' / 'imageFiles', tmp_path / 'PW3D' / 'imageFiles')
    data = open_set('PW3D', 'test', 'use_gt_info=true', data_dir=tmp_path)
    assert data.load_image(data.samples[0]).shape == (240, 180, 3)


def test_coco_leaves_out_crowds_empty_people_and_empty_boxes(open_set):
    data = open_set('MSCOCO', 'train')
    assert [s.ann_id for s in data.samples] == [100, 104, 108, 112, 116]
    assert data.check.counts == {'empty box, sample skipped': 5}
    sample = data.samples[0]
    hips = sample.joint_img[[11, 12]]
    np.testing.assert_allclose(sample.joint_img[17], hips.mean(0))
    assert sample.joint_valid.shape == (18, 1) and sample.joint_valid[17] == 1


def test_muco_takes_the_nearest_person(open_set, tiny_datasets):
    content = json.loads((tiny_datasets / 'MuCo' / 'data' / 'MuCo-3DHP.json').read_text())
    nearest = {}
    for person in content['annotations']:
        depth = person['keypoints_cam'][14][2]
        if depth < nearest.get(person['image_id'], (np.inf,))[0]:
            nearest[person['image_id']] = depth, person['id']
    assert [s.ann_id for s in open_set('MuCo', 'train').samples] == [person for _, person in nearest.values()]


def test_muco_leaves_out_a_image_whose_nearest_person_has_no_box(open_set, changed):
    nearest = [s.ann_id for s in open_set('MuCo', 'train').samples]

    def spoil(content):
        next(a for a in content['annotations'] if a['id'] == nearest[1])['bbox'] = [0, 0, 0, 0]
    data = open_set('MuCo', 'train', data_dir=changed('MuCo', 'data/MuCo-3DHP.json', spoil))
    assert [s.ann_id for s in data.samples] == [nearest[0], *nearest[2:]]


def test_coco_tests_every_person_that_was_detected(open_set, changed):
    """Also in images without annotated people; what is in no listed image is reported."""
    def lose_people(content):
        content['annotations'] = [a for a in content['annotations'] if a['image_id'] != 51]
        content['images'] = [image for image in content['images'] if image['id'] != 53]
        content['annotations'] = [a for a in content['annotations'] if a['image_id'] != 53]
    data = open_set('MSCOCO', 'test', data_dir=changed(
        'MSCOCO', 'annotations/person_keypoints_val2017.json', lose_people))
    assert [s.img_path[-6:] for s in data.samples] == ['50.png', '51.png', '52.png', '54.png']
    assert data.check.counts['image of the RootNet file is not in the annotations'] == 6  # and the five of training


def test_an_image_that_is_listed_twice(open_set, changed):
    """The same again does no harm; a different one would give its annotations to another image."""
    def repeat(content):
        content['images'].append(dict(content['images'][0]))

    def change(content):
        content['images'][-1]['file_name'] = 'another.png'

    data_dir = changed('PW3D', 'data/3DPW_train.json', repeat)
    assert len(open_set('PW3D', 'train', data_dir=data_dir)) == len(open_set('PW3D', 'train'))
    path = data_dir / 'PW3D/data/3DPW_train.json'
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match='image 0 is in the list twice, with different contents: download'):
        open_set('PW3D', 'train', data_dir=data_dir)


def test_a_person_that_rootnet_lists_twice_is_told(open_set, changed):
    known = open_set('PW3D', 'test').samples[0].ann_id

    def repeat(content):
        content.append(next(entry for entry in content if entry['ann_id'] == known))

    data = open_set('PW3D', 'test', data_dir=changed('PW3D', 'rootnet_output/bbox_root_pw3d_output.json', repeat))
    assert data.check.counts['several times in the RootNet file, the last one used'] == 1


@pytest.mark.parametrize('name, split, unneeded', [
    ('Human36M', 'train', ['rootnet_output', 'annotations/Human36M_subject9_data.json']),
    ('Human36M', 'test', ['annotations/Human36M_subject9_smpl_param.json', 'annotations/Human36M_subject1_data.json']),
    ('MSCOCO', 'train', ['rootnet_output', 'annotations/person_keypoints_val2017.json']),
    ('MSCOCO', 'test', ['annotations/coco_smplifyx_train.json', 'annotations/person_keypoints_train2017.json',
                        'J_regressor_coco_hip_smpl.npy']),
    ('PW3D', 'test', ['data/3DPW_train.json']),
    ('FreiHAND', 'train', ['rootnet_output', 'data/freihand_eval_data.json']),
    ('FreiHAND', 'test', ['data/freihand_train_data.json'])])
def test_only_the_files_of_the_split_are_needed(name, split, unneeded, open_set, tiny_datasets, tmp_path):
    copy_set(tiny_datasets, tmp_path, *({name, 'Human36M'} if name == 'PW3D' else {name}))
    for path in unneeded:
        path = tmp_path / name / path
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert len(open_set(name, split, data_dir=tmp_path)) == len(open_set(name, split))


@pytest.mark.parametrize('name, split, file', [
    ('Human36M', 'train', 'annotations/Human36M_subject5_camera.json'),
    ('Human36M', 'train', 'J_regressor_h36m_correct.npy'), ('Human36M', 'test', 'J_regressor_h36m_correct.npy'),
    ('MuCo', 'train', 'data/smpl_param.json'),
    ('MSCOCO', 'train', 'annotations/coco_smplifyx_train.json'), ('PW3D', 'test', 'data/3DPW_test.json'),
    ('FreiHAND', 'train', 'data/freihand_train_data.json')])
def test_a_missing_file_is_named(name, split, file, open_set, tiny_datasets, tmp_path):
    copy_set(tiny_datasets, tmp_path, *{name, 'Human36M'})
    (tmp_path / name / file).unlink()
    with pytest.raises(UserError) as error:
        open_set(name, split, data_dir=tmp_path)
    assert str(tmp_path / name / file) in str(error.value) and 'it holds' in str(error.value)


def test_broken_files_and_records_are_named(open_set, changed):
    def lose_field(content):
        del content['annotations'][3]['bbox']
    with pytest.raises(UserError, match=r'3DPW_train.json: annotation \d+ has no bbox'):
        open_set('PW3D', 'train', data_dir=changed('PW3D', 'data/3DPW_train.json', lose_field))


def test_a_record_of_another_layout_is_named(open_set, changed):
    def lose_gender(content):
        del content['annotations'][2]['smpl_param']['gender']
    with pytest.raises(UserError, match=r'3DPW_test.json: annotation \d+: smpl_param has no gender'):
        open_set('PW3D', 'test', data_dir=changed('PW3D', 'data/3DPW_test.json', lose_gender))


def test_a_list_in_place_of_a_dictionary_is_a_message(open_set, changed):
    with pytest.raises(UserError, match='MuCo/data/smpl_param.json holds a list where a dictionary belongs'):
        open_set('MuCo', 'train', data_dir=changed('MuCo', 'data/smpl_param.json', lambda content: [1]))


def test_a_file_that_is_no_json_is_named(open_set, tiny_datasets, tmp_path):
    copy_set(tiny_datasets, tmp_path, 'MuCo', 'Human36M')
    (tmp_path / 'MuCo' / 'data' / 'smpl_param.json').write_text('<html>quota exceeded</html>')
    with pytest.raises(UserError, match='smpl_param.json is not a JSON file'):
        open_set('MuCo', 'train', data_dir=tmp_path)


def test_unknown_names_splits_and_body_models_are_refused(open_set):
    assert set(dataset_names()) >= {'FreiHAND', 'Human36M', 'MSCOCO', 'MuCo', 'PW3D', 'Synthetic'}
    with pytest.raises(UserError, match='unknown data set "Human35M" .did you mean Human36M.*found .*PW3D'):
        open_set('Human35M', 'train')
    with pytest.raises(UserError, match='MuCo has no split "test": it has train'):
        open_set('MuCo', 'test')
    with pytest.raises(UserError, match='PW3D shows bodies, which the body model mano is not made for'):
        open_set('PW3D', 'test', 'body_model=mano')
    with pytest.raises(UserError, match='FreiHAND shows hands'):
        open_set('FreiHAND', 'test', 'body_model=smpl')


def test_excluded_images_are_left_out_of_the_test(open_set):
    names = [s.img_path.rsplit('/', 1)[1] for s in open_set('Human36M', 'test').samples]
    data = open_set('Human36M', 'test', f'exclude=[{names[1]},images/{names[2]}]')
    assert len(data) == len(names) - 2 and data.exclusion.count == 2
    assert len(open_set('Human36M', 'train', f'exclude=[{names[1]}]')) == 20
    with pytest.raises(UserError, match='has no image nowhere.jpg'):
        open_set('Human36M', 'test', 'exclude=[nowhere.jpg]')


def test_loaders_share_their_code():
    """No two of them have more than 15 significant lines in common."""
    lines = {}
    for name in dataset_names():
        text = (FOLDER / name / f'{name}.py').read_text()
        lines[name] = {line.strip() for line in text.splitlines() if line.strip() and line.strip()[0] not in '#"'}
    for a in lines:
        for b in lines:
            assert a == b or len(lines[a] & lines[b]) <= 15, (a, b, lines[a] & lines[b])
