"""The embedded body and hand: sound files, right anatomy, the axes of SMPL and MANO."""
import numpy as np
import pytest
import torch

from common.human_model import get_human_model
from common.human_model.open_model import FOLDER
from tool.open_body.mesh import principal_components
from tool.open_body.population import COUNT, people


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


def test_shapes_of_the_open_body_differ():
    """Orthogonal components, each of the first six to be seen; people of 1.50 to 1.95 m, slim and stout."""
    model = get_human_model('open_body')
    components = model.shapedirs.double().flatten(0, 1)
    sizes = components.norm(dim=0)
    cosines = (components / sizes).T @ (components / sizes)
    torch.testing.assert_close(cosines, torch.eye(10, dtype=torch.double), rtol=0, atol=1e-4)
    assert (sizes[:-1] >= sizes[1:]).all()
    assert model.shapedirs.norm(dim=1).amax(0)[:6].min() >= .005
    shapes = torch.zeros(20, 10)
    shapes[:10, 0] = torch.linspace(-2.5, 2.5, 10)
    shapes[10:, 4] = torch.linspace(-2.5, 2.5, 10)
    vertices, _ = model(torch.zeros(20, 72), shapes)
    heights = np.ptp(vertices[:10, :, 1].numpy(), axis=1)
    assert heights[0] <= 1.5 and heights[-1] >= 1.95 and (np.diff(heights) > .03).all()
    waist = np.abs(model.v_template[:, 1].numpy() - .1) < .03
    waist &= np.abs(model.v_template[:, 0].numpy()) < .2
    girths = np.ptp(vertices[10:, waist, 2].numpy(), axis=1)
    assert (np.diff(girths) > 0).all() and girths[-1] > 1.3 * girths[0]


@pytest.mark.parametrize('component', range(6))
def test_the_skeleton_of_the_open_body_grows_with_its_shape(component):
    """Joints stay inside their limbs, and left and right are alike, whatever the shape."""
    model = get_human_model('open_body')
    shapes = torch.zeros(2, 10)
    shapes[0, component] = -2.
    shapes[1, component] = 2.
    vertices, joints = model(torch.zeros(2, 72), shapes)
    for joint in ('Knee', 'Ankle', 'Elbow', 'Wrist'):
        left, right = (joints[:, model.joint_set.index(f'{side}_{joint}')] for side in 'LR')
        torch.testing.assert_close(left * torch.tensor([-1., 1, 1]), right, rtol=0, atol=.01)
        distances = (vertices - left[:, None]).norm(dim=2)
        nearest = distances.topk(12, largest=False)
        around = torch.stack([vertices[k, nearest.indices[k]] for k in range(2)]) - left[:, None]
        assert nearest.values.max() < .12  # the skin is near
        assert around.mean(1).norm(dim=1).max() < .06  # and on all sides


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


def test_principal_components_have_unit_variance():
    rng = np.random.default_rng(0)
    betas = rng.normal(size=(4000, 2)) * [3., .5]
    axes = np.linalg.qr(rng.normal(size=(12, 2)))[0]
    examples = 5. + (betas @ axes.T).reshape(-1, 4, 3)
    mean, components = principal_components(examples, count=2)
    np.testing.assert_allclose(mean, 5., atol=.2)
    np.testing.assert_allclose(np.linalg.norm(components.reshape(12, 2), axis=0), [3., .5], rtol=.05)
    coordinates = (examples - mean).reshape(-1, 12) @ np.linalg.pinv(components.reshape(12, 2)).T
    np.testing.assert_allclose(np.cov(coordinates.T), np.eye(2), atol=.01)


def test_the_people_behind_the_shapes_are_always_the_same():
    first, second = people(), people()
    assert first == second and len(first) == COUNT
    for name in ('gender', 'weight', 'muscle', 'proportions'):
        values = [person[name] for person in first]
        assert 0 <= min(values) < .1 and .9 < max(values) <= 1
