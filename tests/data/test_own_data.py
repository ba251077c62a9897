"""The data set of data/README.md: put into a folder, found, and trained, with parts of the annotation missing."""
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import data
from common.base import Trainer
from common.files.images import write_image
from common.human_model import get_human_model
from common.utils.preprocessing import AugParams
from main import train
from main.model import get_model
from tests.tiny import SETTINGS, tiny_config

HERE = Path(__file__).parent
NEEDS_FIT = ('joint_fit', 'mesh_fit', 'mesh_joint_fit', 'mesh_normal', 'mesh_edge')
NEEDS_JOINTS = ('joint_orig', 'mesh_joint_orig')


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The template as data set Own, beside the others, with the four images of own_data."""
    code = re.search(r'```python\n(.*?)```', (HERE.parents[1] / 'data' / 'README.md').read_text(), re.S).group(1)
    assert len(code.splitlines()) <= 60
    folder = tmp_path / 'Own'
    shutil.copytree(HERE / 'own_data', folder)
    (folder / '__init__.py').write_text('')
    (folder / 'Own.py').write_text(code)
    monkeypatch.setattr(data, 'FOLDER', tmp_path)
    monkeypatch.setattr(data, '__path__', [str(tmp_path), *data.__path__])
    for name in ('data.Own', 'data.Own.Own'):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tiny_config(tmp_path / 'out', 'trainset_3d=[Own]', 'testset=Own', f'data_dir={tmp_path}')


def test_the_template_is_found_by_its_folder_and_trains(own):
    assert data.dataset_names() == ['Own']
    own.override(['lixel_epochs=1'])
    trainer = Trainer(own)
    assert len(trainer.dataset) == 4 and trainer.train()


@pytest.mark.parametrize('line', [0, 1])
def test_the_lines_that_need_no_smpl_and_the_example_record(own, line, tmp_path):
    text = (HERE.parents[1] / 'data' / 'README.md').read_text()
    example, = json.loads(re.search(r'```json\n(.*?)```', text, re.S).group(1))
    joints = np.array(example['joint_cam'])
    pixels = joints[:, :2] / joints[:, 2:] * example['focal'] + example['princpt']
    np.testing.assert_allclose(pixels, example['joint_img'], atol=1)
    write_image(tmp_path / 'Own' / 'images' / 'example.jpg', np.zeros((*example['size'], 3), np.uint8))
    records = [example | {'image': 'example.jpg'} for _ in range(4)]
    (tmp_path / 'Own' / 'train.json').write_text(json.dumps(records))
    (tmp_path / 'Synthetic').mkdir()
    (tmp_path / 'Synthetic' / 'Synthetic.py').touch()  # the preset's own set has to be there
    lines = re.findall(r'^python main/train.py (.*body_model=open_body.*)$', text, re.M)
    words = [word for word in shlex.split(lines[line]) if not word.startswith('output_dir=')]
    assert len(lines) == 2 and words[:2] == ['--cfg', 'nano']
    given = {word.split('=')[0] for word in words}
    tiny = [word for word in SETTINGS if word.split('=')[0] not in given]
    train.main([*words, *tiny, f'data_dir={tmp_path}', f'output_dir={tmp_path}/out', 'end_epoch=1'])
    assert (tmp_path / 'out' / 'model_dump' / 'snapshot_0.pth.tar').exists()


def test_missing_parts_have_no_loss_and_the_rest_trains(own):
    """Of the four, the first has everything, the others lack the fit; the depth of joints and camera; the joints."""
    samples = data.build_dataset('Own', 'train', own)
    items = [samples.get_item(i, AugParams()) for i in range(4)]
    batch = [{k: torch.from_numpy(np.stack([item[part][k] for item in items])) for k in items[0][part]}
             for part in range(3)]
    net = get_model(own, get_human_model('open_body'), 'train')
    losses = net(*batch, 'train')
    values = {k: v.detach().numpy() for k, v in losses.items()}
    assert set(values) == {*NEEDS_FIT, *NEEDS_JOINTS}
    assert all(np.isfinite(v).all() for v in values.values())
    for name in NEEDS_FIT:
        np.testing.assert_array_equal(values[name] > 0, [True, False, False, True], err_msg=name)
    for name in NEEDS_JOINTS:
        np.testing.assert_array_equal(values[name] > 0, [True, True, True, False], err_msg=name)
    meta = batch[2]
    assert meta['is_3D'].tolist() == [1, 1, 0, 1] and meta['is_valid_fit'].tolist() == [1, 0, 0, 1]
    right_knee = samples.human_model.joint_set.index('R_Knee')
    assert meta['orig_joint_valid'][:, right_knee, 0].tolist() == [1, 1, 0, 0]


def test_without_a_camera_a_sample_trains_and_is_left_out_of_a_test(own, tmp_path):
    shutil.copy(tmp_path / 'Own' / 'train.json', tmp_path / 'Own' / 'test.json')
    samples = data.build_dataset('Own', 'test', own)
    assert [s.ann_id for s in samples.samples] == [0, 1, 3]
    assert samples.check.counts['no camera to test with, sample skipped'] == 1
    assert samples.boxes.depth_source == 'estimate from the box'
    own.override(['use_gt_info=true'])
    known = data.build_dataset('Own', 'test', own)
    assert known.boxes.depth_source == 'annotations, 1 estimates from the box'  # the last one lacks joints
    assert known.samples[1].root_depth == known.samples[1].joint_cam[0, 2]


def test_perfect_fit_and_joints_agree(own):
    """Both kinds of targets of the first sample, whose joints are those of its body, are the same."""
    samples = data.build_dataset('Own', 'train', own)
    _, targets, meta = samples.get_item(0, AugParams(1.1, 20.))
    rows = [samples.human_model.joint_set.index(n) for n in samples.joint_set.joints_name]
    np.testing.assert_allclose(targets['orig_joint_img'][rows], targets['fit_joint_img'][rows], atol=1e-3)
    np.testing.assert_allclose(targets['orig_joint_cam'][rows], targets['fit_joint_cam'][rows], atol=1e-4)
    assert meta['orig_joint_valid'].sum() == len(rows)
