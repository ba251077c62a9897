"""The embedded body and hand: sound files, right anatomy, the axes of SMPL and MANO."""
import numpy as np
import pytest
import torch

from common.human_model import get_human_model
from common.human_model.open_model import FOLDER


@pytest.mark.parametrize('name', ('open_body', 'open_hand'))
def test_embedded_files_are_sound(name):
    path = FOLDER / f'{name}.npz'
    model = get_human_model(name)
    sizes = {'open_body': (6890, 13776, 24, 29), 'open_hand': (778, 1538, 16, 21)}[name]
    assert path.stat().st_size < 10 ** 6
    assert (model.vertex_num, len(model.face), model.kinematic_joint_num, model.joint_num) == sizes
    assert model.face.dtype == np.int64 and set(np.unique(model.face)) == set(range(model.vertex_num))
    for rows in (model.weights, model.joint_regressor, *map(torch.from_numpy, model.regressors.values())):
        assert rows.min() >= 0 and not rows.isnan().any()
        target = rows.sum(1)
        torch.testing.assert_close(target, torch.ones_like(target), rtol=0, atol=1e-5)
    edges = np.sort(model.face[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    _, uses = np.unique(edges, axis=0, return_counts=True)
    assert uses.max() == 2 and (uses == 1).sum() == {'open_body': 0, 'open_hand': 16}[name]   # a hole at the wrist
    corners = model.v_template.numpy()[model.face]
    volume = np.linalg.det(corners.astype(np.float64)).sum() / 6
    assert volume > 0   # faces look outwards


def joints_of(model, pose):
    """{joint: (3,) position} of one pose given as {joint: axis-angle}."""
    values = torch.zeros(1, model.kinematic_joint_num, 3)
    for joint, rotation in pose.items():
        values[0, model.joint_set.index(joint)] = torch.tensor(rotation)
    vertices, joints = model(values.flatten(1), torch.zeros(1, 10))
    named = dict(zip(model.joint_set.joints_name, model.fit_joints(vertices, joints)[0].numpy(), strict=True))
    return named, vertices[0].numpy()


def test_open_body_is_a_person_in_the_axes_of_smpl():
    model = get_human_model('open_body')
    joints, mesh = joints_of(model, {})
    assert 1.5 < np.ptp(mesh[:, 1]) < 1.9 and np.ptp(mesh[:, 2]) < .5
    heights = [joints[name][1] for name in ('R_Ankle', 'R_Knee', 'R_Hip', 'Torso', 'Spine', 'Chest', 'Neck', 'Head')]
    assert heights == sorted(heights)
    for left, right in model.joint_set.flip_pairs:   # the body's left is +x, and it is symmetric
        left, right = (joints[model.joint_set.joints_name[row]] for row in (left, right))
        assert left[0] > .01
        np.testing.assert_allclose(left * [-1, 1, 1], right, atol=.005)
    assert joints['Nose'][2] > joints['Head'][2] + .08 and joints['L_Toe'][2] > joints['L_Ankle'][2] + .1   # faces +z
    assert joints['L_Ear'][2] < joints['L_Eye'][2] - .05 and joints['Nose'][1] < joints['L_Eye'][1]


def test_limbs_of_the_open_body_bend_like_those_of_smpl():
    model = get_human_model('open_body')
    rest, _ = joints_of(model, {})
    bent, _ = joints_of(model, {'L_Knee': [1.2, 0, 0], 'R_Shoulder': [0, 0, -1.], 'Neck': [.5, 0, 0]})
    assert bent['L_Ankle'][2] < rest['L_Ankle'][2] - .2      # the heel goes back
    assert bent['R_Wrist'][1] > rest['R_Wrist'][1] + .2      # the arm goes up
    assert bent['Nose'][1] < rest['Nose'][1] - .03           # the head bows
    for name in ('R_Ankle', 'L_Hip', 'L_Wrist'):
        np.testing.assert_allclose(bent[name], rest[name], atol=1e-6)


def test_data_set_regressors_of_the_open_body_follow_the_skeleton():
    model = get_human_model('open_body')
    h36m = ('Pelvis', 'R_Hip', 'R_Knee', 'R_Ankle', 'L_Hip', 'L_Knee', 'L_Ankle', 'Torso', 'Neck', 'Nose', 'Head_top',
            'L_Shoulder', 'L_Elbow', 'L_Wrist', 'R_Shoulder', 'R_Elbow', 'R_Wrist')
    coco = ('Nose', 'L_Eye', 'R_Eye', 'L_Ear', 'R_Ear', 'L_Shoulder', 'R_Shoulder', 'L_Elbow', 'R_Elbow', 'L_Wrist',
            'R_Wrist', 'L_Hip', 'R_Hip', 'L_Knee', 'R_Knee', 'L_Ankle', 'R_Ankle')
    pose = {'L_Knee': [1.2, 0, 0], 'R_Shoulder': [0, 0, -.8], 'L_Elbow': [0, -1.2, 0], 'R_Hip': [-.8, 0, 0]}
    for angles in ({}, pose):
        joints, mesh = joints_of(model, angles)
        for name, names in (('h36m', h36m), ('coco', coco)):
            assert model.regressor(name).shape == (17, 6890) and model.regressor(name).dtype == np.float32
            regressed = dict(zip(names, model.regressor(name) @ mesh, strict=True))
            for joint in set(names) & set(joints) - {'Pelvis', 'Torso', 'Neck'}:   # placed elsewhere in Human3.6M
                np.testing.assert_allclose(regressed[joint], joints[joint], atol=.015, err_msg=f'{name} {joint}')
        regressed = dict(zip(h36m, model.regressor('h36m') @ mesh, strict=True))
        np.testing.assert_allclose(regressed['Pelvis'], (joints['L_Hip'] + joints['R_Hip']) / 2, atol=.01)
        np.testing.assert_allclose(regressed['Head_top'][1], mesh[:, 1].max(), atol=.01)
        assert joints['Pelvis'][1] < regressed['Torso'][1] < regressed['Neck'][1] < joints['Head'][1]


def test_open_hand_is_a_right_hand_with_the_joints_of_mano():
    model = get_human_model('open_hand')
    pose = torch.zeros(2, 48)
    bones = model.joint_set.skeleton
    vertices, joints = model(pose, torch.zeros(2, 10))
    joints = model.fit_joints(vertices, joints)[0].numpy()
    at = dict(zip(model.joint_set.joints_name, joints, strict=True))
    lengths = np.array([np.linalg.norm(joints[a] - joints[b]) for a, b in bones])
    assert .01 < lengths.min() and lengths.max() < .13 and .15 < np.linalg.norm(at['Middle_4'] - at['Wrist']) < .22
    for finger in ('Thumb', 'Index', 'Middle', 'Ring', 'Pinky'):   # each joint further out than the one before
        reach = [np.linalg.norm(at[f'{finger}_{i}'] - at['Wrist']) for i in (1, 2, 3, 4)]
        assert reach == sorted(reach)
    across = at['Index_1'] - at['Pinky_1']
    order = [(at[f'{finger}_1'] - at['Pinky_1']) @ across for finger in ('Pinky', 'Ring', 'Middle', 'Index')]
    assert order == sorted(order)
    palm = np.cross(at['Index_1'] - at['Wrist'], at['Pinky_1'] - at['Wrist'])   # out of the palm of a right hand
    palm /= np.linalg.norm(palm)
    np.testing.assert_allclose(palm, [0, -1, 0], atol=.2)   # MANO's axes
    assert (at['Thumb_4'] - at['Wrist']) @ palm > .02 and at['Thumb_4'] @ across > at['Index_1'] @ across
    pose.view(2, 16, 3)[1, 1:4, 2] = .8   # the index finger curls
    vertices, joints = model(pose, torch.zeros(2, 10))
    moved = dict(zip(model.joint_set.joints_name, model.fit_joints(vertices, joints)[1].numpy(), strict=True))
    assert (moved['Index_4'] - at['Index_4']) @ palm > .01
    assert np.linalg.norm(moved['Index_4'] - at['Wrist']) < np.linalg.norm(at['Index_4'] - at['Wrist']) - .02
    np.testing.assert_allclose(moved['Middle_4'], at['Middle_4'], atol=.001)
    np.testing.assert_allclose(moved['Index_1'], at['Index_1'], atol=1e-6)
    regressed = model.joint_regressor @ vertices
    torch.testing.assert_close(regressed, model.fit_joints(vertices, joints), rtol=0, atol=.005)
