"""Boxes and root depths made from annotations give the loaders what the annotations say."""
import json

import numpy as np
import pytest

from common.errors import UserError
from data import build_dataset
from data.checks.load_check import MISSING
from tool import check_assets, rootnet_from_gt
from tool.files.write import write_json


@pytest.fixture
def make(tmp_path, tiny_datasets, stand_in_bodies):
    """make(name) -> (Config for the tiny data set, where its RootNet file is then looked for, the file made)"""
    def run(name):
        (tmp_path / name).mkdir()
        for path in (tiny_datasets / name).iterdir():
            if path.name != 'rootnet_output':
                (tmp_path / name / path.name).symlink_to(path)
        if name == 'FreiHAND':
            annotate_boxes(tmp_path / name)
        (tmp_path / 'Human36M').exists() or (tmp_path / 'Human36M').symlink_to(tiny_datasets / 'Human36M')
        settings = [f'data_dir={tmp_path}', f'human_model_dir={stand_in_bodies}']
        rootnet_from_gt.main([name, *settings])
        file = tmp_path / name / rootnet_from_gt.sets_with_rootnet()[name][0]
        return check_assets.settings_for(name, settings), file
    return run


def annotate_boxes(folder):
    """The evaluation list of tool/FreiHAND/convert.py, which has boxes, in place of the published one."""
    linked = (folder / 'data').readlink()
    (folder / 'data').unlink()
    (folder / 'data').mkdir()
    for path in linked.iterdir():
        (folder / 'data' / path.name).symlink_to(path)
    file = folder / 'data' / 'freihand_eval_coco.json'
    content = json.loads(file.read_text())
    for number, annotation in enumerate(content['annotations']):
        annotation['bbox'] = [20 + number, 30, 50, 60]
    file.unlink()
    file.write_text(json.dumps(content))


@pytest.mark.parametrize('name', ['Human36M', 'PW3D', 'FreiHAND', 'MSCOCO'])
def test_boxes_and_depths(name, make):
    cfg, file = make(name)
    made = build_dataset(name, 'test', cfg)
    assert made.boxes.depth_source == 'RootNet file'
    cfg.override(['use_gt_info=true'])
    annotated = build_dataset(name, 'test', cfg)
    assert len(made) == len(annotated) == len(json.loads(file.read_text()))
    for ours, theirs in zip(made.samples, annotated.samples, strict=True):
        assert ours.img_path == theirs.img_path
        assert np.abs(ours.bbox - theirs.bbox).max() < .01
        depth = theirs.root_depth if name != 'PW3D' else rootnet_from_gt.root_position(annotated, theirs)[2]
        assert abs(ours.root_depth - depth) < 1e-5


def test_pw3d_roots_are_in_the_annotated_bodies(make):
    _, file = make('PW3D')
    annotations = json.loads((file.parents[1] / 'data/3DPW_test.json').read_text())['annotations']
    entries = json.loads(file.read_text())
    assert [entry['ann_id'] for entry in entries] == [a['id'] for a in annotations]
    for entry, annotation in zip(entries, annotations, strict=True):
        # the pelvis of the stand-in body is 0.22 m from its origin
        assert .1 < np.linalg.norm(np.subtract(entry['root_cam'], annotation['smpl_param']['trans'])) < .35


def test_files_that_are_there_are_kept(make, tmp_path, stand_in_bodies):
    _, file = make('Human36M')
    arguments = ['Human36M', f'data_dir={tmp_path}', f'human_model_dir={stand_in_bodies}']
    before = json.loads(file.read_text())
    write_json(file, before[:1])
    with pytest.raises(UserError, match='is there already'):
        rootnet_from_gt.main(arguments)
    rootnet_from_gt.main([*arguments, '--force'])
    assert json.loads(file.read_text()) == before


def test_test_and_validation_have_files_of_their_own(make, tmp_path, stand_in_bodies):
    cfg, file = make('PW3D')
    annotations = json.loads((file.parents[1] / 'data/3DPW_test.json').read_text())
    for person in annotations['annotations'][1:]:
        person['id'] += 1000
    del annotations['annotations'][0]
    (tmp_path / 'PW3D' / 'data').unlink()
    (tmp_path / 'PW3D' / 'data').mkdir()
    (tmp_path / 'PW3D' / 'data' / '3DPW_validation.json').write_text(json.dumps(annotations))
    before = file.read_bytes()
    rootnet_from_gt.main(['PW3D', '--split', 'validation', f'data_dir={tmp_path}',
                          f'human_model_dir={stand_in_bodies}'])
    assert file.read_bytes() == before
    made = json.loads(file.with_name('bbox_root_pw3d_output_validation.json').read_text())
    assert [entry['ann_id'] for entry in made] == [person['id'] for person in annotations['annotations']]
    data = build_dataset('PW3D', 'validation', cfg)
    assert data.boxes.depth_source == 'RootNet file' and data.check.counts.keys() == {MISSING}


def test_sets_without_root_depths():
    with pytest.raises(UserError, match='"MuCo" is no data set whose test uses root depths: one of FreiHAND, Human36M'):
        rootnet_from_gt.main(['MuCo'])
