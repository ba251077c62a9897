"""Cameras, fits and poses of impossible values, in every split."""
import json
import logging
from dataclasses import replace

import numpy as np
import pytest

from common.errors import UserError
from common.utils.transforms import Camera
from data.checks.limits import box_fault, camera_fault, fit_fault
from data.sample import Fit
from tests.data_tools import rotation

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


TURNED = rotation([.3, -.2, 2])
IN_WORLD = ((TURNED * NAN, [0, 0, 4], 'rotation R is not finite'),
            (TURNED * INF, [0, 0, 4], 'rotation R is not finite'),
            (TURNED * 1e30, [0, 0, 4], 'rotation R is not finite'), (TURNED * 1.5, [0, 0, 4], 'R is not a rotation'),
            (np.zeros((3, 3)), [0, 0, 4], 'R is not a rotation'), (-TURNED, [0, 0, 4], 'R is not a rotation'),
            (TURNED, [0, NAN, 4], 'translation t is not finite'),
            (TURNED, [0, 0, -1e30], 'translation t is not finite'))


@pytest.mark.parametrize(('R', 't', 'says'), IN_WORLD)
def test_places_of_cameras_and_fits_in_the_world(R, t, says):
    """Of a camera, and of a fit that carries its own."""
    focal = np.float32([500, 500])
    fit = Fit(np.zeros(72, np.float32), np.zeros(10, np.float32), np.float32([0, 0, 4]))
    for rounded in (TURNED, TURNED.round(2)):
        good = {'R': np.float32(rounded), 't': np.float32([0, 0, 4])}
        assert camera_fault(Camera(focal, focal, **good), (240, 320)) is None
        assert fit_fault(replace(fit, **good), 2.) is None
    bad = {'R': np.float32(R), 't': np.float32(t)}
    assert says in camera_fault(Camera(focal, focal, **bad), (240, 320)) and says in fit_fault(replace(fit, **bad), 2.)


@pytest.mark.parametrize('split', ['train', 'validation', 'test'])
@pytest.mark.parametrize(('R', 't', 'says'), IN_WORLD)
@pytest.mark.filterwarnings('ignore:.*:RuntimeWarning')
def test_a_camera_of_human36m_without_a_place_leaves_its_samples_out(split, R, t, says, open_set, changed):
    def spoil(content):
        content['4'] |= {'R': np.asarray(R).tolist(), 't': [1000 * value for value in t]}

    subject = 1 if split == 'train' else 9
    settings = ['h36m_train_every=64', 'h36m_test_every=64', 'h36m_train_cameras=[4]', 'use_gt_info=true']
    before = len(open_set('Human36M', split, *settings))
    data_dir = changed('Human36M', f'annotations/Human36M_subject{subject}_camera.json', spoil)
    data = open_set('Human36M', split, *settings, data_dir=data_dir)
    left_out = before - len(data)
    assert left_out == 2 and data.check.skipped().startswith(f'2 x camera whose {says.split()[0]}')
    assert says in data.check.skipped()


@pytest.mark.parametrize(('bbox', 'says'), [
    ([10, 10, 50, 60], None), ([-100, -80, 500, 500], None), ([10, 10, .5, .5], None),
    ([NAN, 0, 5, 5], 'box off the image'), ([0, 0, INF, 5], 'box off the image'), ([400, 0, 5, 5], 'box off the image'),
    ([0, 0, 1e30, 1e30], 'box of impossible size'), ([0, 0, 1e-30, 5], 'box of impossible size')])
def test_boxes(bbox, says):
    """RootNet's are taken as they are."""
    assert box_fault(np.float32(bbox), (240, 320)) == says


@pytest.mark.parametrize('depth', [NAN, -1000])
def test_a_person_without_depth_hides_nobody(depth, open_set, changed):
    """MuCo takes the nearest of the people in an image."""
    before = [sample.ann_id for sample in open_set('MuCo', 'train').samples]

    def spoil(content):
        hidden = [person for person in content['annotations'] if person['id'] not in before]
        for person in hidden:
            person['keypoints_cam'][14][2] = depth
        assert hidden
        content['annotations'].sort(key=hidden.__contains__, reverse=True)  # they come first

    data = open_set('MuCo', 'train', data_dir=changed('MuCo', 'data/MuCo-3DHP.json', spoil))
    assert sorted(sample.ann_id for sample in data.samples) == sorted(before) and data.check.bad == 0


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
    written = json.loads(json.dumps(summary), parse_constant=pytest.fail)
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
