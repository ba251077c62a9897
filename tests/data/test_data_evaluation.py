"""The evaluation: perfect predictions, root depths, reports and prediction files."""
import json
import logging
import zipfile

import numpy as np
import pytest
import torch

from common.errors import UserError
from data.evaluation.mesh_errors import EvalJoints
from data.joint_set import HUMAN36M, MUCO, JointSet
from data.placed_fit import place_fit
from tests.data_tools import copy_set


def predict(data, meshes, depth_shift=0., param=True):
    """Network outputs that say exactly `meshes` (N, V, 3), metres in camera space, for all samples."""
    items = [data.get_item(i, None) for i in range(len(data))]
    bb2img = np.stack([meta['bb2img_trans'] for *_, meta in items]).astype(np.float64)
    outs = {'bb2img_trans': bb2img, 'mesh_coord_img': np.zeros_like(meshes)}
    for i, (sample, mesh) in enumerate(zip(data.samples, meshes, strict=True)):
        img2bb = np.linalg.inv(np.concatenate([bb2img[i], [[0, 0, 1]]]))[:2]
        pixels = mesh[:, :2] / mesh[:, 2:] * sample.camera.focal + sample.camera.princpt
        depth = depth_shift + (sample.root_depth if sample.root_depth is not None
                               else data.eval_joints.regress(mesh[None])[0, data.eval_joints.root, 2])
        outs['mesh_coord_img'][i] = data.codec.encode(np.concatenate([pixels, mesh[:, 2:]], 1), depth, img2bb)
    if param:
        root = data.eval_joints.regress(meshes)[:, data.eval_joints.root, None]
        outs['mesh_coord_cam'] = meshes - root
    if data.mesh_target_at_test:
        outs['mesh_coord_cam_target'] = np.stack([t['fit_mesh_coord_cam'] for _, t, _ in items]).astype(np.float64)
    return outs


def true_meshes(data):
    return np.stack([place_fit(s, data.body).vertices for s in data.samples]).astype(np.float64)


@pytest.mark.parametrize('use_gt_info', ['true', 'false'])
def test_perfect_meshes_have_no_error(use_gt_info, open_set):
    data = open_set('PW3D', 'test', f'use_gt_info={use_gt_info}')
    results = data.evaluate(predict(data, true_meshes(data)), 0)
    for mesh in ('lixel', 'param'):
        for metric in ('mpjpe', 'pa_mpjpe', 'mpvpe', 'pa_mpvpe'):
            assert results[f'{metric}_{mesh}'].shape == (5,) and results[f'{metric}_{mesh}'].max() < .01
        assert results[f'joint_error_{mesh}'].shape == (5, 14)


@pytest.mark.parametrize('name', ['mesh_coord_img', 'mesh_coord_cam'])
def test_predictions_that_are_not_finite_are_no_result(name, open_set):
    data = open_set('PW3D', 'test', 'use_gt_info=true')
    outs = predict(data, true_meshes(data))
    outs[name][2, 7, 1] = np.nan
    with pytest.raises(UserError, match=f'PW3D: .* not finite, first for {data.samples[2].img_path}: amp'):
        data.evaluate(outs, 0)


def test_known_errors_and_batches(open_set):
    """A body moved as a whole has no error; a doubled one has its own size as error, and none after alignment."""
    data = open_set('PW3D', 'test', 'use_gt_info=true')
    meshes = true_meshes(data)
    outs = predict(data, meshes + (0, 0, .3))
    outs['mesh_coord_cam'] *= 2
    results = data.evaluate(outs, 0)
    joints = data.eval_joints.regress(meshes)
    size = np.linalg.norm(joints - joints[:, :1], axis=-1)[:, data.eval_joints.indices].mean(1) * 1000
    np.testing.assert_allclose(results['mpjpe_param'], size, rtol=1e-4)
    assert results['pa_mpjpe_param'].max() < .01 and results['pa_mpvpe_param'].max() < .01
    parts = [data.evaluate({k: v[i:j] for k, v in outs.items()}, i) for i, j in ((0, 2), (2, 5))]
    for name in results:
        np.testing.assert_allclose(np.concatenate([p[name] for p in parts]), results[name], atol=1e-4)


def test_root_depths_do_not_touch_the_parametric_mesh(open_set, changed):
    def shift(content):
        for entry in content:
            entry['root_cam'][2] += 200
    moved = open_set('Human36M', 'test', data_dir=changed(
        'Human36M', 'rootnet_output/bbox_root_human36m_output.json', shift))
    data = open_set('Human36M', 'test')
    rng = np.random.default_rng(0)
    outs = predict(data, rng.normal(size=(4, 6890, 3)) * .3 + (0, 0, 4))
    before, after = data.evaluate(outs, 0), moved.evaluate(outs, 0)
    np.testing.assert_allclose(after['mpjpe_param'], before['mpjpe_param'], atol=1e-6)
    assert np.abs(after['mpjpe_lixel'] - before['mpjpe_lixel']).min() > .1
    assert moved.samples[0].root_depth == pytest.approx(data.samples[0].root_depth + .2)


def test_the_report_says_what_was_tested_how(open_set, tmp_path, caplog):
    caplog.set_level(logging.INFO, 'data')
    data = open_set('Human36M', 'test', f'output_dir={tmp_path}/out')
    meshes = np.random.default_rng(0).normal(size=(4, 6890, 3)) + (0, 0, 5)
    results = data.evaluate(predict(data, meshes, param=False), 0)
    assert 'mpjpe_param' not in results and 'mpvpe_lixel' not in results
    summary = data.print_eval_result(results)
    assert summary['samples'] == 4 and summary['root_depth'] == 'RootNet file' and summary['root'] == 'Pelvis'
    assert summary['joint_set'] == '14 joints of Human3.6M' and 'subjects 9, 11' in summary['protocol']
    assert summary['metrics']['mpjpe_lixel'] == pytest.approx(results['mpjpe_lixel'].mean(), rel=1e-5)
    assert list(summary['per_joint_mm']['lixel'])[:2] == ['R_Hip', 'R_Knee']
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    text = caplog.text
    assert 'lixel mesh (mm): MPJPE' in text and 'param' not in text and 'nan' not in text


def test_joint_errors_of_human36m_do_not_depend_on_the_fits(open_set, changed):
    data = open_set('Human36M', 'test')
    other = open_set('Human36M', 'test', data_dir=changed(
        'Human36M', 'annotations/Human36M_subject9_smpl_param.json', lambda content: {}))
    outs = predict(data, np.random.default_rng(0).normal(size=(4, 6890, 3)) + (0, 0, 5))
    np.testing.assert_array_equal(data.evaluate(outs, 0)['mpjpe_lixel'], other.evaluate(outs, 0)['mpjpe_lixel'])


def test_a_missing_rootnet_file_is_replaced_by_an_estimate(open_set, tiny_datasets, tmp_path, caplog):
    copy_set(tiny_datasets, tmp_path, 'Human36M')
    (tmp_path / 'Human36M' / 'rootnet_output' / 'bbox_root_human36m_output.json').unlink()
    data = open_set('Human36M', 'test', data_dir=tmp_path)
    assert data.boxes.depth_source == 'estimate from the box'
    assert any('bbox_root_human36m_output.json is missing' in r.getMessage() for r in caplog.records)
    sample = data.samples[0]
    x, y, w, h = sample.bbox
    assert sample.root_depth == pytest.approx(2 * np.sqrt(sample.camera.focal.prod() / (w * h)), rel=1e-5)
    true = open_set('Human36M', 'test', 'use_gt_info=true', data_dir=tmp_path)
    assert true.boxes.depth_source == 'annotations'
    assert true.samples[0].root_depth == pytest.approx(true.samples[0].joint_cam[0, 2])


def test_the_report_tells_of_estimates_for_people_whom_rootnet_missed(open_set, changed):
    def keep(count):
        return open_set('Human36M', 'test', data_dir=changed(
            'Human36M', 'rootnet_output/bbox_root_human36m_output.json', lambda content: content[:count]))
    rows = [s.extra['image_id'] for s in open_set('Human36M', 'test').samples]
    data = keep(rows[1])
    assert data.boxes.depth_source == 'RootNet file, 3 estimates from the box'
    assert data.check.counts['not in the RootNet file, annotated box used'] == 3


def test_a_wrong_rootnet_file_is_not_the_source_of_depths(open_set, changed):
    data = open_set('PW3D', 'test', data_dir=changed(
        'PW3D', 'rootnet_output/bbox_root_pw3d_output.json', lambda content: content[:5]))  # those of training
    assert data.boxes.depth_source == 'estimate from the box'


def test_rootnet_boxes_may_be_corners(open_set, changed):
    def to_corners(content):
        for entry in content:
            x, y, w, h = entry['bbox']
            entry['bbox'] = [x, y, x + w, y + h]
    corners = open_set('PW3D', 'test', 'rootnet_box_format=xyxy', data_dir=changed(
        'PW3D', 'rootnet_output/bbox_root_pw3d_output.json', to_corners))
    for a, b in zip(corners.samples, open_set('PW3D', 'test').samples, strict=True):
        np.testing.assert_allclose(a.bbox, b.bbox, rtol=1e-6)


def test_coco_has_no_numbers_but_images(open_set, tmp_path):
    data = open_set('MSCOCO', 'test', 'vis=true', f'output_dir={tmp_path}')
    mesh = data.human_model(torch.zeros(1, 72), torch.zeros(1, 10))[0].numpy()
    outs = predict(data, np.repeat(mesh, len(data), 0) * (1, -1, -1) + (0, 0, 18.), param=False)
    assert data.evaluate(outs, 0) == {}
    assert len(list((tmp_path / 'vis').glob('MSCOCO_*_lixel.jpg'))) == len(data) == 5
    assert data.print_eval_result({})['metrics'] == {}


@pytest.fixture
def freihand(open_set, tiny_datasets, tmp_path):
    """The test split with its ground truth released: random hands (4, 778, 3) and their joints."""
    copy_set(tiny_datasets, tmp_path, 'FreiHAND')
    model = open_set('FreiHAND', 'test').human_model
    rng = np.random.default_rng(0)
    with torch.no_grad():
        verts, _ = model(*(torch.from_numpy(rng.normal(size=(4, n)).astype(np.float32) * .3) for n in (48, 10)))
    verts = verts.double().numpy() + (0, 0, .6)
    joints = np.einsum('jv,bvc->bjc', model.joint_regressor.numpy(), verts)
    for name, content in (('xyz', joints), ('verts', verts)):
        (tmp_path / 'FreiHAND' / 'data' / f'evaluation_{name}.json').write_text(json.dumps(content.tolist()))
    return open_set('FreiHAND', 'test', f'output_dir={tmp_path}/out', data_dir=tmp_path), verts, joints


def test_freihand_writes_one_prediction_per_image_in_order(freihand, tmp_path):
    data, verts, joints = freihand
    results = data.evaluate(predict(data, verts), 0)
    summary = data.print_eval_result(results)
    for name in ('pred', 'pred_param'):
        written = json.loads((tmp_path / 'out' / 'result' / f'{name}.json').read_text())
        np.testing.assert_allclose(written[0], joints, atol=1e-5)
        np.testing.assert_allclose(written[1], verts, atol=1e-5)
        with zipfile.ZipFile(tmp_path / 'out' / 'result' / f'{name}.zip') as archive:
            assert json.loads(archive.read('pred.json')) == written
    metrics = summary['metrics']
    assert metrics['pa_mpjpe_lixel'] < 1e-2 and metrics['pa_mpvpe_lixel'] < 1e-2
    assert metrics['f_5_lixel'] == metrics['f_15_lixel'] == 1 and metrics['auc_lixel'] > .99
    with pytest.raises(UserError, match='3 predictions for 4 images'):
        data.print_eval_result({k: v[:3] for k, v in results.items()})


def test_freihand_without_ground_truth_reports_no_error(open_set, tmp_path, caplog):
    caplog.set_level(logging.INFO, 'data')
    data = open_set('FreiHAND', 'test', f'output_dir={tmp_path}')
    results = data.evaluate(predict(data, np.random.default_rng(0).normal(size=(4, 778, 3)) * .05 + (0, 0, .6)), 0)
    assert set(results) == {'joint_out', 'mesh_out', 'joint_out_param', 'mesh_out_param'}
    assert data.print_eval_result(results)['metrics'] == {}
    assert 'pred.json' in caplog.text and 'MPJPE' not in caplog.text


def test_only_annotated_joints_of_the_evaluated_set_count():
    joints = EvalJoints(HUMAN36M, np.zeros((17, 5), np.float32), MUCO)
    assert 'Neck' not in joints.names() and len(joints.indices) == 13
    with pytest.raises(UserError, match='no Pelvis'):
        EvalJoints(HUMAN36M, np.zeros((17, 5), np.float32), JointSet('Mine', ('Nose',), root='Nose'))
