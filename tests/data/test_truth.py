"""What is known about the truth of training sets before the first step, and trainings with nothing to learn from."""
import numpy as np
import pytest

from common.errors import UserError
from data.checks.truth import ALL, NOTHING, Truth, refuse_nothing_to_learn
from data.joint_set import JointSet
from tests.data_tools import data_config

FITS = 'annotations/coco_smplifyx_train.json'
IN_2D = Truth.FIT | Truth.JOINTS


def no_fits(content):
    return {}


@pytest.mark.parametrize(('name', 'truth'), [
    ('Human36M', ALL), ('MuCo', ALL), ('MSCOCO', IN_2D), ('PW3D', Truth.FIT), ('FreiHAND', Truth.FIT)])
def test_the_truth_of_each_set(name, truth, open_set):
    assert open_set(name, 'train').check.truth == truth


def test_what_is_made_when_it_is_read_is_not_known(open_set):
    assert open_set('Synthetic', 'train', 'body_model=open_body').check.truth is None


def test_fits_that_are_missing_damaged_or_rejected_are_no_truth(open_set, changed):
    assert open_set('MSCOCO', 'train', 'fit_limit_lixel=1e-6').check.truth == Truth.JOINTS
    assert open_set('MSCOCO', 'train', 'body_model=open_body').check.truth == Truth.JOINTS
    data = open_set('MSCOCO', 'train', data_dir=changed('MSCOCO', FITS, no_fits))
    assert data.check.truth == Truth.JOINTS


def test_joints_of_other_names_are_no_truth(open_set, monkeypatch):
    names = tuple(f'marker_{i}' for i in range(18))
    monkeypatch.setattr('data.MSCOCO.MSCOCO.MSCOCO.joint_set', JointSet('Markers', names, root='marker_0'))
    monkeypatch.setattr('data.MSCOCO.MSCOCO.MSCOCO.fit_check', None)
    assert open_set('MSCOCO', 'train').check.truth == Truth.FIT


def test_joints_none_of_which_is_valid_are_no_truth(open_set, monkeypatch):
    monkeypatch.setattr('data.MSCOCO.MSCOCO.with_pelvis', lambda points: (np.zeros((18, 2)), np.zeros((18, 1))))
    assert open_set('MSCOCO', 'train').check.truth == Truth.FIT


@pytest.mark.parametrize(('truths', 'stage', 'orig_joint_loss', 'lacks'), [
    ([Truth.JOINTS], 'param', True, 'a fit that can be used or 3-D joints, so'),
    ([Truth.JOINTS], 'lixel', True, ''),
    ([Truth.JOINTS], 'lixel', False, 'a fit that can be used, so'),
    ([NOTHING, NOTHING], 'lixel', True, 'a fit that can be used or joints of the body model, so'),
    ([Truth.JOINTS, Truth.FIT], 'param', True, ''),
    ([Truth.JOINTS | Truth.JOINTS_3D], 'param', False, ''),
    ([NOTHING, None], 'param', True, '')])
def test_which_stage_needs_what(truths, stage, orig_joint_loss, lacks):
    sets = {f'Set{number}': truth for number, truth in enumerate(truths)}
    if not lacks:
        refuse_nothing_to_learn(sets, stage, orig_joint_loss)
        return
    with pytest.raises(UserError, match=f'no sample of {", ".join(sets)} has {lacks}'):
        refuse_nothing_to_learn(sets, stage, orig_joint_loss)


def test_the_trainer_refuses_before_the_first_step(stand_in_bodies, changed, tmp_path, monkeypatch):
    """2-D keypoints without fits: the param stage could learn nothing."""
    from common import base
    from common.train.start import Start
    monkeypatch.setattr(base, 'get_model', lambda *_: None)
    monkeypatch.setattr(base, 'find_start', lambda *_: Start())
    data_dir = changed('MSCOCO', FITS, no_fits)
    cfg = data_config(stand_in_bodies, data_dir, 'trainset_3d=[]', 'trainset_2d=[MSCOCO]', 'stage=param',
                      output_dir=tmp_path / 'out')
    with pytest.raises(UserError, match='nothing to learn: no sample of MSCOCO has .* losses of the param stage are 0'):
        base.Trainer(cfg)
