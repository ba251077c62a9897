"""The data set Synthetic: targets that sit on the image, stored images, evaluation."""
import pickle

import cv2
import numpy as np
import pytest
import torch

from common.human_model import get_human_model
from common.train.loader import EpochView, make_loader, shard
from common.utils.preprocessing import AugParams
from common.utils.render import rasterise
from data import build_dataset
from data.Synthetic.generator import Person
from data.Synthetic.store import ImageStore
from data.Synthetic.Synthetic import Draw, fingerprint
from tests.synthetic_tools import config, mesh_of


@pytest.fixture(scope='module')
def body():
    return get_human_model('open_body')


@pytest.mark.parametrize('aug', [None, AugParams(.8, 25.), AugParams(1.2, -50., (.9, 1.1, 1.), True)])
def test_targets_sit_on_the_augmented_image(body, aug):
    """The silhouette of the mesh target covers the person that was cut out: compared on a white person on black."""
    dataset = build_dataset('Synthetic', 'train', config())
    for i in range(3):
        sample = dataset.samples[i]
        d = Person(sample.fit.pose, sample.fit.shape, sample.fit.trans, sample.camera.focal, sample.camera.princpt,
                   sample.bbox, sample.joint_cam)
        vertices, _ = mesh_of(body, d)
        mask = rasterise(vertices, body.face, np.ones_like(vertices), d.focal, d.princpt, (160, 160), 2)[1]
        dataset.load_image = lambda _, mask=mask: np.uint8(mask[..., None].repeat(3, 2) * 255)
        inputs, targets, meta = dataset.get_item(i, aug)
        assert meta['is_valid_fit'] == 1 and meta['is_3D'] == 1
        mesh = targets['fit_mesh_img'] * (4, 4, 1) + (0, 0, 1000)  # lixels to pixels; z: nearly parallel rays
        mesh[:, :2] *= mesh[:, 2:]
        seen = rasterise(mesh, body.face, np.ones_like(mesh), (1., 1.), (0., 0.), (128, 128), 2)[1] > .5
        cut = inputs['img'][2] > .5
        assert (seen & cut).sum() / (seen | cut).sum() > .93
        np.testing.assert_allclose(targets['orig_joint_img'], targets['fit_joint_img'], atol=1e-3)
        np.testing.assert_allclose(targets['orig_joint_cam'], targets['fit_joint_cam'], atol=1e-5)


def test_store_equals_drawing_on_the_fly(tmp_path):
    fresh = build_dataset('Synthetic', 'train', config())
    stored = build_dataset('Synthetic', 'train', config('synthetic_cache=true', tmp_path=tmp_path))
    assert len(stored) == 6
    for i in range(6):
        a, b = fresh.samples[i], stored.samples[i]
        jpeg = cv2.imencode('.jpg', a.extra['img'][..., ::-1], (cv2.IMWRITE_JPEG_QUALITY, 95))[1]
        np.testing.assert_array_equal(cv2.imdecode(jpeg, cv2.IMREAD_COLOR)[..., ::-1], b.extra['img'])
        assert np.abs(a.extra['img'].astype(int) - b.extra['img']).mean() < 8
        for name in ('pose', 'shape', 'trans'):
            np.testing.assert_array_equal(getattr(a.fit, name), getattr(b.fit, name))
        np.testing.assert_array_equal(a.joint_cam, b.joint_cam)
        np.testing.assert_array_equal(a.bbox, b.bbox)
    item, again = stored.get_item(1, None), fresh.get_item(1, None)
    for part, other in zip(item[1:], again[1:], strict=True):
        for key in part:
            np.testing.assert_array_equal(part[key], other[key])


def test_store_is_made_once_and_again_when_it_is_damaged_or_settings_change(tmp_path):
    def folders():
        return sorted(p for p in (tmp_path / 'cache').iterdir() if p.is_dir())

    settings = ('synthetic_cache=true', 'synthetic_train_size=3')
    first = build_dataset('Synthetic', 'train', config(*settings, tmp_path=tmp_path)).samples[2]
    folder, = folders()
    time = (folder / 'images.bin').stat().st_mtime_ns
    build_dataset('Synthetic', 'train', config(*settings, tmp_path=tmp_path))
    assert (folder / 'images.bin').stat().st_mtime_ns == time
    (folder / 'images.bin').write_bytes((folder / 'images.bin').read_bytes()[:-100])
    again = build_dataset('Synthetic', 'train', config(*settings, tmp_path=tmp_path)).samples[2]
    np.testing.assert_array_equal(first.extra['img'], again.extra['img'])
    for change in ('seed=1', 'synthetic_max_heading=180', 'synthetic_img_size=96', 'synthetic_train_size=2'):
        build_dataset('Synthetic', 'train', config(*settings, change, tmp_path=tmp_path))
    assert len(folders()) == 5


def test_store_made_by_several_processes_is_the_same(tmp_path):
    one = build_dataset('Synthetic', 'test', config('synthetic_cache=true', tmp_path=tmp_path / 'a'))
    two = build_dataset('Synthetic', 'test', config('synthetic_cache=true', 'num_thread=2', tmp_path=tmp_path / 'b'))
    for i in range(len(one)):
        np.testing.assert_array_equal(one.samples[i].extra['img'], two.samples[i].extra['img'])


def test_perfect_prediction_has_no_error(body):
    dataset = build_dataset('Synthetic', 'test', config('synthetic_test_size=3'))
    train = build_dataset('Synthetic', 'train', config('synthetic_train_size=3'))
    train.samples = dataset.samples
    items = [dataset[i] for i in range(3)]
    outs = {'mesh_coord_img': np.stack([train.get_item(i, None)[1]['fit_mesh_img'] for i in range(3)]),
            'bb2img_trans': np.stack([item[2]['bb2img_trans'] for item in items]),
            'mesh_coord_cam_target': np.stack([item[1]['fit_mesh_coord_cam'] for item in items])}
    outs['mesh_coord_cam'] = outs['mesh_coord_cam_target'] - dataset.samples[0].joint_cam[0]
    result = dataset.evaluate(outs, 0)
    for name in ('mpjpe_lixel', 'pa_mpjpe_lixel', 'mpjpe_param'):
        assert result[name].shape == (3,) and result[name].max() < .1


@pytest.mark.parametrize('cache', ['false', 'true'])
def test_the_evaluation_draws_nothing_that_a_loader_process_drew(tmp_path, cache, monkeypatch):
    dataset = build_dataset('Synthetic', 'test', config(f'synthetic_cache={cache}', 'synthetic_test_size=5',
                                                        tmp_path=tmp_path))
    whole = [dataset.samples[i] for i in (1, 2)]
    fresh = build_dataset('Synthetic', 'test', dataset.cfg)
    for _ in make_loader(fresh, shard(4, 2), 1, False):
        pass
    drawn, draw = [], Draw.__call__
    monkeypatch.setattr(Draw, '__call__', lambda self, i: drawn.append(i) or draw(self, i))
    monkeypatch.setattr(ImageStore, '__getitem__', lambda self, i: pytest.fail(f'image {i} was read'))
    samples = fresh.eval_samples(0, 4)
    assert not drawn and not any(sample.extra for sample in samples)
    for ours, theirs in zip(samples[1:3], whole, strict=True):
        for name in ('bbox', 'joint_img', 'joint_cam', 'img_shape', 'root_depth', 'ann_id'):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        np.testing.assert_array_equal(ours.camera.focal, theirs.camera.focal)
        np.testing.assert_array_equal(ours.camera.princpt, theirs.camera.princpt)
    if cache == 'false':
        assert fresh.eval_samples(4, 1)[0].ann_id == 4 and drawn == [4]
        np.testing.assert_array_equal(fresh.load_image(samples[1]), whole[0].extra['img'])


@pytest.mark.parametrize('cache', ['false', 'true'])
def test_a_data_set_travels_to_a_process_that_shares_nothing(tmp_path, cache):
    """As the start method spawn sends it to a loader process."""
    dataset = EpochView(build_dataset('Synthetic', 'train', config(f'synthetic_cache={cache}', tmp_path=tmp_path)))
    item, other = dataset[1, 2], pickle.loads(pickle.dumps(dataset))[1, 2]
    for part, same in zip(item, other, strict=True):
        for key in part:
            np.testing.assert_array_equal(part[key], same[key])


def test_drawing_leaves_the_threads_of_its_process_alone():
    dataset = build_dataset('Synthetic', 'train', config('synthetic_train_size=1'))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        _ = dataset.samples[0]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_fingerprint_tells_bodies_apart(body):
    other = get_human_model('open_body')
    assert fingerprint(other) == fingerprint(body)
    other.weights = other.weights * 1.0001
    assert fingerprint(other) != fingerprint(body)


def test_hand_data_set():
    cfg = config('body_model=open_hand', 'synthetic_test_size=3')
    assert cfg.is_hand
    train, test = (build_dataset('Synthetic', split, cfg) for split in ('train', 'test'))
    inputs, targets, meta = train[0]
    assert inputs['img'].shape == (3, 128, 128) and targets['fit_mesh_img'].shape == (778, 3)
    assert meta['fit_joint_trunc'][0] == 1 and targets['pose_param'].shape == (48,)
    train.samples = test.samples
    outs = {'mesh_coord_img': np.stack([train.get_item(i, None)[1]['fit_mesh_img'] for i in range(3)]),
            'bb2img_trans': np.stack([test[i][2]['bb2img_trans'] for i in range(3)]),
            'mesh_coord_cam_target': np.stack([test[i][1]['fit_mesh_coord_cam'] for i in range(3)])}
    result = test.evaluate(outs, 0)
    assert result['mpjpe_lixel'].max() < .05 and result['joint_error_lixel'].shape == (3, 21)
