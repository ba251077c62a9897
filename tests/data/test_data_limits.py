"""Cameras, fits and poses of impossible values, in every split."""
import json
import logging

import numpy as np
import pytest

from common.errors import UserError
from common.utils.transforms import Camera
from data.checks.limits import camera_fault, fit_fault
from data.sample import Fit

NAN = float('nan')
INF = float('inf')
FOCALS = ([0, 0], [-500, -500], [500, NAN], [INF, 500], [1e30, 1e30], [-1e30, 500], [1e-3, 1e-3])
CENTRES = ([NAN, 0], [INF, 0], [1e30, 0], [0, -1e30], [50000, 0])
FITS = (('pose', 3, NAN), ('pose', 3, 1e30), ('pose', 3, -1e30), ('shape', 0, NAN), ('shape', 0, 1e30),
        ('shape', 9, -1e30), ('trans', 2, NAN), ('trans', 2, INF), ('trans', 2, 1e30), ('trans', 0, -1e30),
        ('trans', 2, 5000))


@pytest.mark.parametrize('focal', FOCALS)
def test_focal_lengths(focal):
    good = Camera(np.float32([500, 510]), np.float32([160, 120]))
    assert camera_fault(good, (240, 320)) is None
    fault = camera_fault(Camera(np.float32(focal), good.princpt), (240, 320))
    assert fault == 'camera with an impossible focal length'


@pytest.mark.parametrize('centre', CENTRES)
def test_centres(centre):
    fault = camera_fault(Camera(np.float32([500, 500]), np.float32(centre)), (240, 320))
    assert fault == 'camera whose centre is far outside of the image'
    assert camera_fault(Camera(np.float32([500, 500]), np.float32([-900, 1500])), (240, 320)) is None  # a crop


@pytest.mark.parametrize(('field', 'index', 'value'), FITS)
def test_fits(field, index, value):
    fit = Fit(np.full(72, .3, np.float32), np.float32([2] * 10), np.float32([0, 0, 4]))
    assert fit_fault(fit, 2.) is None
    getattr(fit, field)[index] = value
    assert fit_fault(fit, 2.).startswith('fit ')


def spoil_camera(name, split, key, value):
    """(file, change) of one camera of a data set."""
    def change(content):
        if name == 'FreiHAND':
            next(iter(content.values()))['cam_param'][key] = value
        else:
            content['images'][0]['cam_param'][key] = value

    if name == 'FreiHAND':
        return f'data/freihand_{"train" if split == "train" else "eval"}_data.json', change
    return f'data/3DPW_{split}.json', change


@pytest.mark.parametrize(('name', 'split'), [('PW3D', 'train'), ('PW3D', 'validation'), ('PW3D', 'test'),
                                             ('FreiHAND', 'train'), ('FreiHAND', 'test')])
@pytest.mark.parametrize(('key', 'value'), [('focal', [0, 0]), ('focal', [-500, -500]), ('focal', [NAN, 500]),
                                            ('focal', [1e30, 1e30]), ('princpt', [INF, 0]), ('princpt', [-1e30, 0])])
@pytest.mark.filterwarnings('ignore:.*:RuntimeWarning')
def test_an_impossible_camera_leaves_the_sample_out(name, split, key, value, open_set, changed):
    """With its reason; a test that needs every prediction stops."""
    file, change = spoil_camera(name, split, key, value)
    before = len(open_set(name, split))
    data_dir = changed(name, file, change)
    if (name, split) == ('FreiHAND', 'test'):
        with pytest.raises(UserError, match='needs a prediction for each.*1 x camera w.*, sample skipped'):
            open_set(name, split, data_dir=data_dir)
        return
    data = open_set(name, split, data_dir=data_dir)
    people = before - len(data)
    assert people >= 1 and f'{people} x camera w' in data.check.skipped()


@pytest.mark.parametrize(('field', 'index', 'value'), FITS)
@pytest.mark.parametrize('split', ['train', 'test'])
def test_an_impossible_fit_is_masked_or_leaves_the_sample_out(split, field, index, value, open_set, changed):
    def spoil(content):
        content['annotations'][0]['smpl_param'][field][index] = value

    before = len(open_set('PW3D', split))
    data = open_set('PW3D', split, data_dir=changed('PW3D', f'data/3DPW_{split}.json', spoil))
    if split == 'train':
        assert len(data) == before and data.samples[0].fit is None
        return
    assert len(data) == before - 1
    reason = data.check.skipped()
    assert reason.startswith('1 x fit ') and 'sample skipped' in reason
    assert all(np.isfinite(data[i][1]['fit_mesh_coord_cam']).all() for i in range(len(data)))


def test_the_report_says_what_was_skipped_and_holds_no_nan(open_set, changed, tmp_path, caplog):
    caplog.set_level(logging.INFO, 'data')

    def spoil(content):
        content['annotations'][0]['smpl_param']['pose'][0] = NAN

    data_dir = changed('PW3D', 'data/3DPW_test.json', spoil)
    data = open_set('PW3D', 'test', f'output_dir={tmp_path}/out', data_dir=data_dir)
    count = len(data)
    results = {'mpjpe_lixel': np.full(count, NAN), 'joint_error_lixel': np.full((count, 14), 5.)}
    results['joint_error_lixel'][:, 3] = NAN
    summary = data.print_eval_result(results)
    assert '1 x fit not finite, sample skipped' in summary['skipped'] and 'skipped: 1 x fit' in caplog.text
    written = json.loads((tmp_path / 'out/result/PW3D.json').read_text(), parse_constant=pytest.fail)
    assert written['metrics']['mpjpe_lixel'] is None
    joints = list(written['per_joint_mm']['lixel'].values())
    assert joints[3] is None and joints[4] == 5


def test_predictions_that_are_not_finite_are_not_written(open_set, tmp_path):
    data = open_set('FreiHAND', 'test', f'output_dir={tmp_path}')
    meshes = np.zeros((len(data), 778, 3))
    meshes[0, 0, 0] = INF
    with pytest.raises(UserError, match='pred.json is not written: .*not finite'):
        data.print_eval_result({'joint_out': np.zeros((len(data), 21, 3)), 'mesh_out': meshes})
    assert not list(tmp_path.rglob('pred*'))
