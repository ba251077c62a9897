"""Image, joints, mesh and parameters move together, in every data set; with the tiny data of the golden tests."""
import dataclasses

import numpy as np
import pytest
import torch

from common.utils import transforms
from common.utils.preprocessing import AugParams
from data import build_dataset
from data.placed_fit import place_fit
from tests.data_tools import HANDS, data_config, dot_position, image_with_dot, in_patch

NAMES = ('Human36M', 'MuCo', 'MSCOCO', 'PW3D', 'FreiHAND')
WITH_JOINTS = ('Human36M', 'MuCo', 'MSCOCO')
AUGS = [AugParams(1.1, 0.), AugParams(.8, 40., (.9, 1.1, 1.)), AugParams(1.2, -55., flip=True), AugParams(flip=True)]


@pytest.fixture(scope='module')
def datasets(stand_in_bodies, tiny_datasets):
    """{name: training split}."""
    return {name: build_dataset(name, 'train', data_config(
        stand_in_bodies, tiny_datasets, *(HANDS if name == 'FreiHAND' else []))) for name in NAMES}


def item(data, index, aug):
    return {k: v for part in data.get_item(index, aug) for k, v in part.items()}


def with_dot(data, monkeypatch, pixel):
    """Let every image of the data set be a dot at a pixel."""
    monkeypatch.setattr(data, 'load_image', lambda sample: image_with_dot(sample.img_shape, pixel))


def centred(sample):
    """A sample with its cameras' principal points in the middle of the image, where a flip leaves them."""
    height, width = sample.img_shape
    middle = np.float32([(width - 1) / 2, (height - 1) / 2])
    cameras = {key: dataclasses.replace(camera, princpt=middle) for key in ('camera', 'fit_camera')
               if (camera := getattr(sample, key)) is not None}
    return dataclasses.replace(sample, **cameras)


def first_with(data, wanted):
    """Index of the first sample that `wanted` holds for."""
    return next(i for i in range(len(data)) if wanted(data.samples[i]))


@pytest.mark.parametrize('name', WITH_JOINTS)
@pytest.mark.parametrize('aug', AUGS)
def test_joints_move_with_the_image(name, aug, datasets, monkeypatch):
    data = datasets[name]
    sample = dataclasses.replace(data.samples[0], fit=None)
    monkeypatch.setattr(data, 'samples', [sample])
    model_set = data.human_model.joint_set
    checked = 0
    for row in range(data.joint_set.joint_num):
        pixel, joint = sample.joint_img[row], data.joint_set.joints_name[row]
        if joint not in model_set.joints_name or (sample.joint_valid is not None and not sample.joint_valid[row]):
            continue
        if not (8 < pixel[0] < sample.img_shape[1] - 9 and 8 < pixel[1] < sample.img_shape[0] - 9):
            continue
        with_dot(data, monkeypatch, pixel)
        got = item(data, 0, aug)
        if aug.flip:
            joint = {'L_': 'R_', 'R_': 'L_'}.get(joint[:2], joint[:2]) + joint[2:]
        coord = got['orig_joint_img'][model_set.index(joint)]
        patch = in_patch(coord, data.cfg)
        if (np.abs(patch - 128) < 115).all():
            np.testing.assert_allclose(dot_position(got['img']), patch, atol=.5)
            checked += 1
    assert checked >= 3


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('aug', AUGS[:2])
def test_mesh_moves_with_the_image(name, aug, datasets, monkeypatch):
    data = datasets[name]
    index = first_with(data, lambda s: s.fit is not None)
    sample = data.samples[index]
    placed = place_fit(sample, data.body)
    pixels = transforms.cam2pixel(placed.vertices, placed.camera.focal, placed.camera.princpt)[:, :2]
    checked = 0
    for vertex in range(0, len(pixels), len(pixels) // 6):
        with_dot(data, monkeypatch, pixels[vertex])
        got = item(data, index, aug)
        patch = in_patch(got['fit_mesh_img'][vertex], data.cfg)
        if (np.abs(patch - 128) < 110).all() and (pixels[vertex] > 8).all() \
                and (pixels[vertex] < np.array(sample.img_shape[::-1]) - 9).all():
            np.testing.assert_allclose(dot_position(got['img']), patch, atol=.5)
            checked += 1
    assert checked >= 3


@pytest.mark.parametrize('name', NAMES)
def test_camera_space_turns_with_the_image(name, datasets, monkeypatch):
    """The turned root-relative joints, put back at the turned root, are seen where the affine puts the joints."""
    data = datasets[name]
    index = first_with(data, lambda s: s.fit is not None)
    sample = centred(data.samples[index])
    middle = (sample.fit_camera or sample.camera).princpt
    side = np.float32(sample.img_shape[0])
    sample.bbox = np.float32([*(middle - side / 2), side, side])  # turned about the optical axis
    monkeypatch.setattr(data, 'samples', [sample])
    got = item(data, 0, AugParams(1., 35.))
    camera = sample.fit_camera or sample.camera
    root = place_fit(sample, data.body).joints[data.human_model.root_joint_idx]
    joints = got['fit_joint_cam'] + transforms.z_rotation(-35.) @ root
    pixels = transforms.cam2pixel(joints, camera.focal, camera.princpt)[:, :2]
    wanted = (pixels - middle) / side * 256 + 128
    np.testing.assert_allclose(in_patch(got['fit_joint_img'], data.cfg), wanted, atol=.5)
    np.testing.assert_array_equal(got['fit_joint_cam'][data.human_model.root_joint_idx], 0)


@pytest.mark.parametrize('name', NAMES)
def test_pose_parameters_give_the_mesh_target(name, datasets):
    """The body of pose_param, as the network's regressor is compared, is the target body turned by the augmentation."""
    data = datasets[name]
    index = first_with(data, lambda s: s.fit is not None and s.fit.gender == 'neutral' or name == 'PW3D')
    for aug in AUGS[:3]:
        got = item(data, index, aug)
        model = data.body(data.samples[index].fit.gender)
        shape = torch.from_numpy(data.samples[index].fit.shape)[None]
        with torch.inference_mode():
            joints = model.fit_joints(*model(torch.from_numpy(got['pose_param'])[None], shape))[0].numpy()
        joints -= joints[data.human_model.root_joint_idx]
        np.testing.assert_allclose(joints, got['fit_joint_cam'], atol=1e-4)


@pytest.mark.parametrize('name', [*WITH_JOINTS, 'PW3D'])
def test_flipping_the_mirror_image_gives_the_original(name, datasets, monkeypatch):
    """Flip twice: image, joints, masks and pose of a mirrored sample, flipped, are those of the sample itself."""
    data = datasets[name]
    sample = centred(data.samples[first_with(data, lambda s: s.fit is not None)])
    width = sample.img_shape[1]
    img = data.load_image(sample)
    body_order = data.human_model.joint_set.flip_order()[:24]
    x, y, w, h = sample.bbox
    mirror = dataclasses.replace(sample, bbox=np.float32([width - 1 - x - w, y, w, h]))
    if name in WITH_JOINTS:
        order = data.joint_set.flip_order()
        mirror.joint_img = sample.joint_img[order] * (-1, 1) + (width - 1, 0)
        mirror.joint_cam = None if sample.joint_cam is None else sample.joint_cam[order] * (-1, 1, 1)
        mirror.joint_valid = None if sample.joint_valid is None else sample.joint_valid[order]
    # the mirrored fit in camera space: what the flip of the sample itself gives
    placed, plain = place_fit(sample, data.body, flip=True), place_fit(sample, data.body)
    model = data.body(sample.fit.gender)
    with torch.inference_mode():
        at_origin, _ = model(*(torch.from_numpy(np.float32(v))[None] for v in (placed.pose, sample.fit.shape)))
    mirror.fit = dataclasses.replace(sample.fit, pose=placed.pose, R=None, t=None,
                                     trans=(placed.vertices - at_origin[0].numpy())[0])
    np.testing.assert_allclose(transforms.flip_pose(placed.pose, body_order), plain.pose, atol=1e-12)
    monkeypatch.setattr(data, 'samples', [sample, mirror])
    monkeypatch.setattr(data, 'load_image', lambda s: img if s is sample else np.ascontiguousarray(img[:, ::-1]))
    first, second = item(data, 0, AugParams(1.1, 0.)), item(data, 1, AugParams(1.1, 0., flip=True))
    assert set(first) == set(second)
    for key in first:
        atol = 2 / 255 if key == 'img' else 2e-3 if key.endswith('img') else 2e-4
        np.testing.assert_allclose(first[key], second[key], atol=atol, err_msg=key)


@pytest.mark.parametrize('name', NAMES)
def test_without_augmentation_samples_are_always_the_same(name, datasets):
    data = datasets[name]
    first, again = item(data, 0, None), item(data, 0, AugParams())
    for key in first:
        np.testing.assert_array_equal(first[key], again[key])


@pytest.mark.parametrize('name', NAMES)
def test_targets_have_the_documented_types_shapes_and_ranges(name, datasets):
    data = datasets[name]
    joints, vertices = data.human_model.joint_num, data.human_model.vertex_num
    rotations = data.human_model.kinematic_joint_num * 3
    shapes = {'img': (3, 256, 256), 'orig_joint_img': (joints, 3), 'fit_joint_img': (joints, 3),
              'fit_mesh_img': (vertices, 3), 'orig_joint_cam': (joints, 3), 'fit_joint_cam': (joints, 3),
              'pose_param': (rotations,), 'shape_param': (10,), 'orig_joint_valid': (joints, 1),
              'orig_joint_trunc': (joints, 1), 'fit_joint_trunc': (joints, 1), 'fit_mesh_trunc': (vertices, 1),
              'is_valid_fit': (), 'is_3D': ()}
    for index in range(len(data)):
        got = {k: v for part in data[index] for k, v in part.items()}
        assert {k: v.shape for k, v in got.items()} == shapes
        assert all(v.dtype == np.float32 and np.isfinite(v).all() for v in got.values())
        assert got['img'].min() >= 0 and got['img'].max() <= 1
        for coord, mask in (('orig_joint_img', 'orig_joint_trunc'), ('fit_joint_img', 'fit_joint_trunc'),
                            ('fit_mesh_img', 'fit_mesh_trunc')):
            inside = got[coord][got[mask][:, 0] > 0]
            assert (inside >= 0).all() and (inside < 64).all()
        assert got['is_3D'] == (name != 'MSCOCO')
        if not got['is_3D']:
            assert (got['orig_joint_img'][:, 2] == 0).all() and (got['orig_joint_cam'] == 0).all()
