"""Which fields of the annotation files a loader asks for: each in turn is deleted, nested otherwise, or added."""
import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from data import build_dataset
from data.assets.table import assets_of
from data.mesh_dataset import MeshDataset
from data.sample import Sample
from tests.data_tools import HANDS, copy_set
from tool.check_assets import check_file, settings_for
from tool.files.json_list import iter_json_list

IMAGE = {'id', 'file_name', 'width', 'height'}
PERSON = {'id', 'image_id'}
INDEX = IMAGE | {'action_idx', 'subaction_idx', 'cam_idx', 'frame_idx'}
LENS = {'cam_param', 'cam_param.focal', 'cam_param.princpt'}
FIT = {'pose', 'shape', 'trans'}
GENDERED = PERSON | {'smpl_param', 'smpl_param.pose', 'smpl_param.shape', 'smpl_param.trans'}
SMPL_FIT = LENS | {'smpl_param', 'smpl_param.pose', 'smpl_param.shape', 'smpl_param.trans'}
COUNTED = {'iscrowd', 'num_keypoints'}  # have a meaning when they are absent: see below
ROOTNET = {'image_id', 'bbox', 'root_cam'}
GT = ('use_gt_info=true',)

# (data set, split, settings, file) -> the fields that are used, of its records or of {list in the file: its records}
H36M = 'annotations/Human36M_subject'
USED = [
    ('Human36M', 'train', (), f'{H36M}5_data.json', dict(images=INDEX, annotations=PERSON | {'bbox'})),
    ('Human36M', 'train', (), f'{H36M}5_camera.json', {'R', 't', 'f', 'c'}),
    ('Human36M', 'train', (), f'{H36M}5_smpl_param.json', FIT),
    ('Human36M', 'test', (), f'{H36M}9_data.json', dict(images=INDEX, annotations=PERSON)),
    ('Human36M', 'test', GT, f'{H36M}9_data.json', dict(images=INDEX, annotations=PERSON | {'bbox'})),
    ('Human36M', 'test', (), f'{H36M}9_camera.json', {'R', 't', 'f', 'c'}),
    ('Human36M', 'test', (), 'rootnet_output/bbox_root_human36m_output.json', ROOTNET),
    ('MuCo', 'train', (), 'data/MuCo-3DHP.json', dict(
        images=IMAGE | {'f', 'c'}, annotations=PERSON | {'bbox', 'keypoints_cam', 'keypoints_img'})),
    ('MuCo', 'train', (), 'data/smpl_param.json', FIT),
    ('MSCOCO', 'train', (), 'annotations/person_keypoints_train2017.json', dict(
        images=IMAGE, annotations=PERSON | {'bbox', 'keypoints'}, categories=set())),
    ('MSCOCO', 'train', (), 'annotations/coco_smplifyx_train.json', SMPL_FIT),
    ('MSCOCO', 'test', (), 'annotations/person_keypoints_val2017.json', dict(
        images=IMAGE, annotations=set(), categories=set())),
    ('MSCOCO', 'test', GT, 'annotations/person_keypoints_val2017.json', dict(
        images=IMAGE, annotations=PERSON | {'bbox'}, categories=set())),
    ('MSCOCO', 'test', (), 'rootnet_output/bbox_root_coco_output.json', ROOTNET),
    ('PW3D', 'train', (), 'data/3DPW_train.json', dict(
        images=IMAGE | LENS | {'sequence'}, annotations=GENDERED | {'bbox', 'smpl_param.gender'})),
    ('PW3D', 'test', (), 'data/3DPW_test.json', dict(
        images=IMAGE | LENS | {'sequence'}, annotations=GENDERED | {'smpl_param.gender'})),
    ('PW3D', 'test', ('pw3d_gender=neutral', *GT), 'data/3DPW_test.json', dict(
        images=IMAGE | LENS | {'sequence'}, annotations=GENDERED | {'bbox'})),
    ('PW3D', 'test', (), 'rootnet_output/bbox_root_pw3d_output.json', {'ann_id', 'bbox', 'root_cam'}),
    ('FreiHAND', 'train', (), 'data/freihand_train_coco.json', dict(
        images=IMAGE | {'db_idx'}, annotations=PERSON | {'bbox'})),
    ('FreiHAND', 'train', (), 'data/freihand_train_data.json', LENS | {
        'mano_param', 'mano_param.pose', 'mano_param.shape', 'mano_param.trans'}),
    ('FreiHAND', 'test', (), 'data/freihand_eval_coco.json', dict(
        images=IMAGE | {'db_idx'}, annotations=PERSON)),
    ('FreiHAND', 'test', (), 'data/freihand_eval_data.json', LENS),
    ('FreiHAND', 'test', (), 'rootnet_output/bbox_root_freihand_output.json', ROOTNET)]


def records_of(content: dict | list) -> list[dict]:
    """The records of a list, or of dictionaries in dictionaries whose keys are numbers."""
    if isinstance(content, list):
        return content
    if not all(key.isdigit() for key in content):
        return [content]
    found = []
    for value in content.values():
        found += records_of(value)
    return found


def fields_of(record: dict, prefix: str = '') -> set[str]:
    """The names of all fields of a record, 'cam_param.focal' for one within another."""
    names = set()
    for key, value in record.items():
        names.add(prefix + key)
        if isinstance(value, dict):
            names |= fields_of(value, f'{prefix}{key}.')
    return names


def without(content: dict | list, part: str | None, field: str) -> dict | list:
    """A copy of a file's content in which no record has the field. part: the list of the records in the file."""
    copy = json.loads(json.dumps(content))
    for record in records_of(copy if part is None else copy[part]):
        *above, last = field.split('.')
        for key in above:
            record = record.get(key, {})
        record.pop(last, None)
    return copy


@contextlib.contextmanager
def replaced(path: Path, content: dict | list) -> Iterator[None]:
    before = path.read_text()
    path.write_text(json.dumps(content))
    yield
    path.write_text(before)


@pytest.mark.parametrize(('name', 'split', 'settings', 'file', 'used'), USED, ids=[str(case[:4]) for case in USED])
def test_a_field_is_asked_for_only_if_it_is_used(name, split, settings, file, used, tiny_datasets, stand_in_bodies,
                                                 tmp_path):
    copy_set(tiny_datasets, tmp_path, *{name, 'Human36M'})
    cfg = settings_for(name, [*settings, f'data_dir={tmp_path}', f'human_model_dir={stand_in_bodies}'])
    layout = next(asset.layout for asset in assets_of(name, cfg) if asset.path == f'{name}/{file}')
    path = tmp_path / name / file
    content = json.loads(path.read_text())
    length = len(build_dataset(name, split, cfg))
    for part, names in used.items() if isinstance(used, dict) else ((None, used),):
        present = set().union(*(fields_of(record) for record in records_of(content if part is None else content[part])))
        assert names <= present
        for field in sorted(present - COUNTED):
            lacking = without(content, part, field)
            with replaced(path, lacking):
                problem = layout.first_problem(lacking)
                if field not in names:
                    assert len(build_dataset(name, split, cfg)) == length and problem is None, field
                    continue
                with pytest.raises(UserError) as error:
                    build_dataset(name, split, cfg)
            last = field.split('.')[-1]
            assert re.search(rf'{path.name}: .*\d+.* has no {last}\b', str(error.value)), field
            assert problem and last in problem, field


def test_a_list_that_is_not_used_may_be_absent(open_set, changed):
    data = open_set('MSCOCO', 'test', data_dir=changed(
        'MSCOCO', 'annotations/person_keypoints_val2017.json', lambda content: content.pop('annotations') and None))
    assert len(data) == len(open_set('MSCOCO', 'test'))


def test_extrinsics_of_freihand_change_nothing(open_set, changed):
    def add(content: dict) -> None:
        for hand in content.values():
            hand['cam_param'].update(R=[[0, -1, 0], [1, 0, 0], [0, 0, 1]], t=[1, 2, 3])
    data = open_set('FreiHAND', 'train', data_dir=changed('FreiHAND', 'data/freihand_train_data.json', add))
    assert_same(data, open_set('FreiHAND', 'train'))


def nested(content: object) -> object:
    """A copy in which every list of numbers that is a vector of parameters is a list in a list."""
    if isinstance(content, list):
        return [nested(value) for value in content]
    if not isinstance(content, dict):
        return content
    copy = {}
    for key, value in content.items():
        copy[key] = [value] if key in NESTED else nested(value)
    return copy


NESTED = ('pose', 'shape', 'trans', 'R', 't', 'root_cam')


@pytest.mark.parametrize(('name', 'split', 'file', 'also'), [
    ('Human36M', 'train', f'{H36M}5_smpl_param.json', ()), ('Human36M', 'train', f'{H36M}5_camera.json', ()),
    ('MuCo', 'train', 'data/smpl_param.json', ()), ('MSCOCO', 'train', 'annotations/coco_smplifyx_train.json', ()),
    ('PW3D', 'train', 'data/3DPW_train.json', ()), ('FreiHAND', 'train', 'data/freihand_train_data.json', ()),
    ('PW3D', 'test', 'rootnet_output/bbox_root_pw3d_output.json', ('bbox',))])
def test_nested_arrays_are_read_like_flat_ones(name, split, file, also, open_set, changed, monkeypatch):
    monkeypatch.setattr(f'{__name__}.NESTED', NESTED + also)
    data_dir = changed(name, file, nested)
    assert_same(open_set(name, split, data_dir=data_dir), open_set(name, split))
    cfg = settings_for(name, [*(HANDS if name == 'FreiHAND' else ())])
    layout = next(asset.layout for asset in assets_of(name, cfg) if asset.path == f'{name}/{file}')
    assert layout.first_problem(json.loads((data_dir / name / file).read_text())) is None


def test_a_transposed_array_is_no_other_nesting(open_set, changed):
    def transpose(content: dict) -> None:
        person = content['annotations'][0]
        person['keypoints_cam'] = np.transpose(person['keypoints_cam']).tolist()
    with pytest.raises(UserError, match=r'annotation 0 has a keypoints_cam of the shape \(3, 21\), expected \(21, 3\)'):
        open_set('MuCo', 'train', data_dir=changed('MuCo', 'data/MuCo-3DHP.json', transpose))


def assert_same(data: MeshDataset, other: MeshDataset) -> None:
    assert len(data) == len(other)
    for ours, theirs in zip(data.samples, other.samples, strict=True):
        np.testing.assert_equal(plain(ours), plain(theirs))


def plain(sample: Sample) -> dict:
    """All numbers of a Sample, as a dictionary that can be compared."""
    values = dict(bbox=sample.bbox, depth=sample.root_depth, joints=sample.joint_cam, pixels=sample.joint_img)
    for name in ('camera', 'fit_camera', 'fit'):
        part = getattr(sample, name)
        values[name] = None if part is None else vars(part)
    return values


def test_a_list_without_crowds_and_counts_of_keypoints(changed, open_set, tiny_datasets):
    """As people write their own: nobody is a crowd, and keypoints are counted."""
    path = tiny_datasets / 'MSCOCO' / 'annotations' / 'person_keypoints_train2017.json'
    people = json.loads(path.read_text())['annotations']
    expected = {p['id'] for p in people if any(p['keypoints'][2::3])}
    first = min(expected)

    def reduce(content):
        for person in content['annotations']:
            del person['iscrowd'], person['num_keypoints']
            if person['id'] == first:
                person['keypoints'] = [0] * 51

    data_dir = changed('MSCOCO', 'annotations/person_keypoints_train2017.json', reduce)
    data = open_set('MSCOCO', 'train', data_dir=data_dir)
    found = {sample.ann_id for sample in data.samples}
    assert found and found <= expected - {first} and len(found) + 1 >= len(open_set('MSCOCO', 'train'))
    cfg = settings_for('MSCOCO', [f'data_dir={data_dir}'])
    layout = next(asset.layout for asset in assets_of('MSCOCO', cfg) if asset.path.endswith('train2017.json'))
    content = json.loads((data_dir / 'MSCOCO/annotations/person_keypoints_train2017.json').read_text())
    assert layout.first_problem(content) is None


@pytest.mark.parametrize(('name', 'split'), [('Human36M', 'train'), ('MuCo', 'train'), ('MSCOCO', 'train'),
                                             ('PW3D', 'test'), ('FreiHAND', 'test')])
def test_files_with_a_byte_order_mark(name, split, open_set, tiny_datasets, tmp_path):
    copy_set(tiny_datasets, tmp_path, *{name, 'Human36M'})
    for path in (tmp_path / name).rglob('*.json'):
        path.write_bytes(b'\xef\xbb\xbf' + path.read_bytes())
        if isinstance(json.loads(path.read_text(encoding='utf-8-sig')), list):
            assert list(iter_json_list(path, '')) == json.loads(path.read_text(encoding='utf-8-sig'))
    data = open_set(name, split, data_dir=tmp_path)
    assert len(data) == len(open_set(name, split))
    cfg = settings_for(name, [f'data_dir={tmp_path}'])
    for asset in assets_of(name, cfg):
        if asset.path.endswith('.json') and (tmp_path / asset.path).exists():
            assert check_file(tmp_path / asset.path, asset)[0] == 'present'
