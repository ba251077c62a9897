"""HumanModel: the same meshes as smplx, the joints of the published system, and sound embedded models."""
import io
import pickle
from contextlib import redirect_stdout

import numpy as np
import pytest
import smplx
import torch

from common.errors import UserError
from common.human_model import get_human_model
from common.human_model.open_model import FOLDER
from common.human_model.pose import from_flat_hand_pose, pack_pose, to_flat_hand_pose, unpack_pose
from tests.py2_pickles import as_official, dump, mano_arrays, smpl_arrays

OPEN_MODELS = ('open_body', 'open_hand')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder with stand-ins for the official files."""
    folder = tmp_path_factory.mktemp('models')
    for name, arrays in (('SMPL_NEUTRAL', smpl_arrays()), ('SMPL_MALE', smpl_arrays(seed=1)),
                         ('MANO_RIGHT', mano_arrays())):
        (folder / f'{name}.pkl').write_bytes(dump(as_official(arrays), 2))
    return folder


def parameters(model, batch=3, seed=0):
    """Random pose (B, K*3), shape (B, 10) and translation (B, 3)."""
    rng = torch.Generator().manual_seed(seed)
    sizes = (3 * model.kinematic_joint_num, .5), (10, 1), (3, 1)
    return tuple(torch.randn(batch, size, generator=rng) * spread for size, spread in sizes)


def smplx_model(kind, arrays, **options):
    with redirect_stdout(io.StringIO()):   # it prints a remark about 10 shape components
        return kind('', data_struct=smplx.utils.Struct(**arrays), num_betas=10, **options)


@pytest.mark.parametrize('gender, seed', (('neutral', 0), ('male', 1)))
def test_smpl_is_that_of_smplx(folder, gender, seed):
    model = get_human_model('smpl', folder, gender)
    pose, shape, trans = parameters(model)
    expected = smplx_model(smplx.SMPL, smpl_arrays(seed=seed))(
        betas=shape, global_orient=pose[:, :3], body_pose=pose[:, 3:], transl=trans)
    vertices, joints = model(pose, shape, trans)
    torch.testing.assert_close(vertices, expected.vertices, rtol=0, atol=1e-6)
    torch.testing.assert_close(joints, expected.joints[:, :24], rtol=0, atol=1e-6)
    assert vertices.shape == (3, 6890, 3) and joints.shape == (3, 24, 3)
    assert (model.name, model.gender, model.is_hand) == ('smpl', gender, False)


def test_mano_is_that_of_smplx_without_pca_and_with_the_mean_hand(folder):
    model = get_human_model('mano', folder)
    pose, shape, trans = parameters(model)
    expected = smplx_model(smplx.MANO, mano_arrays(), use_pca=False, flat_hand_mean=False)(
        betas=shape, global_orient=pose[:, :3], hand_pose=pose[:, 3:], transl=trans)
    vertices, joints = model(pose, shape, trans)
    torch.testing.assert_close(vertices, expected.vertices, rtol=0, atol=1e-6)
    torch.testing.assert_close(joints, expected.joints, rtol=0, atol=1e-6)
    assert vertices.shape == (3, 778, 3) and joints.shape == (3, 16, 3) and model.is_hand


def test_conversion_between_the_hand_conventions(folder):
    model = get_human_model('mano', folder)
    pose, shape, _ = parameters(model)
    flat_pose = to_flat_hand_pose(pose, model.pose_mean)
    expected = smplx_model(smplx.MANO, mano_arrays(), use_pca=False, flat_hand_mean=True)(
        betas=shape, global_orient=flat_pose[:, :3], hand_pose=flat_pose[:, 3:])
    torch.testing.assert_close(model(pose, shape)[0], expected.vertices, rtol=0, atol=1e-6)
    torch.testing.assert_close(from_flat_hand_pose(flat_pose, model.pose_mean), pose)


@pytest.mark.parametrize('name', ('smpl', 'mano', *OPEN_MODELS))
def test_batches_types_and_repetition(folder, name):
    model = get_human_model(name, folder)
    pose, shape, trans = parameters(model, batch=4)
    vertices, joints = model(pose, shape, trans)
    one = model(pose[:1], shape[:1], trans[:1])
    torch.testing.assert_close(vertices[:1], one[0], rtol=0, atol=1e-6)
    torch.testing.assert_close(vertices, model(pose, shape)[0] + trans[:, None], rtol=0, atol=1e-6)
    assert torch.equal(vertices, model(pose, shape, trans)[0])
    for empty in (model(pose[:0], shape[:0], trans[:0]), model(pose[:0], shape[:0])):
        assert empty[0].shape == (0, model.vertex_num, 3) and empty[1].shape == (0, model.kinematic_joint_num, 3)
    assert torch.equal(model(pose.double(), shape.double(), trans.double())[0], vertices)
    with torch.autocast('cpu', torch.bfloat16):
        assert torch.equal(model(pose, shape, trans)[0], vertices)
    exact = model.double()(pose.double(), shape.double(), trans.double())
    assert exact[0].dtype == torch.float64
    torch.testing.assert_close(exact[0].float(), vertices, rtol=0, atol=1e-5)
    torch.testing.assert_close(exact[1].float(), joints, rtol=0, atol=1e-5)


@pytest.mark.parametrize('name', ('smpl', 'mano', *OPEN_MODELS))
def test_constants_follow_the_module_and_stay_out_of_snapshots(folder, name):
    model = get_human_model(name, folder)
    assert model.state_dict() == {} and not list(model.parameters())
    other = get_human_model(name, folder)
    assert other.shapedirs.data_ptr() == model.shapedirs.data_ptr()   # one copy in memory
    model.double()
    assert model.joint_regressor.dtype == torch.float64 and other.joint_regressor.dtype == torch.float32
    pose, shape, _ = parameters(other)
    assert torch.equal(pickle.loads(pickle.dumps(other))(pose, shape)[0], other(pose, shape)[0])


@pytest.mark.parametrize('name', ('smpl', 'mano', *OPEN_MODELS))
def test_gradients_are_finite_at_the_rest_pose(folder, name):
    model = get_human_model(name, folder)
    pose = torch.zeros(2, 3 * model.kinematic_joint_num, requires_grad=True)
    shape = torch.zeros(2, 10, requires_grad=True)
    vertices, _ = model(pose, shape)
    vertices.square().sum().backward()
    assert pose.grad.isfinite().all() and shape.grad.isfinite().all() and pose.grad.abs().sum() > 0


def test_joints_of_smpl(folder):
    model, arrays = get_human_model('smpl', folder), smpl_arrays()
    assert model.joint_regressor.shape == (29, 6890) and model.joint_num == 29 and model.kinematic_joint_num == 24
    np.testing.assert_allclose(model.joint_regressor[:24], arrays['J_regressor'], atol=1e-7)
    for row, vertex in zip(model.joint_regressor[24:], (331, 2802, 6262, 3489, 3990), strict=True):
        assert row[vertex] == 1 and row.sum() == 1 and (row != 0).sum() == 1
    pose, shape, trans = parameters(model)
    vertices, joints = model(pose, shape, trans)
    fit = model.fit_joints(vertices, joints)
    assert torch.equal(fit[:, :24], joints) and torch.equal(fit[:, 24], vertices[:, 331])
    vertices, joints = model(pose * 0, shape, trans)
    torch.testing.assert_close(model.joint_regressor @ vertices, model.fit_joints(vertices, joints), rtol=0, atol=1e-5)


def test_joints_of_mano(folder):
    model, arrays = get_human_model('mano', folder), mano_arrays()
    order = [0, 13, 14, 15, 16, 1, 2, 3, 17, 4, 5, 6, 18, 10, 11, 12, 19, 7, 8, 9, 20]
    rows = np.zeros((21, 778))
    rows[:16] = arrays['J_regressor']
    for row, vertex in enumerate((745, 317, 445, 556, 673)):
        rows[16 + row, vertex] = 1
    np.testing.assert_allclose(model.joint_regressor, rows[order], atol=1e-7)
    vertices, joints = model(*parameters(model))
    fit = model.fit_joints(vertices, joints)
    at = model.joint_set.index
    assert torch.equal(fit[:, at('Wrist')], joints[:, 0]) and torch.equal(fit[:, at('Thumb_1')], joints[:, 13])
    for finger, first, tip in (('Thumb', 13, 745), ('Index', 1, 317), ('Middle', 4, 444), ('Ring', 10, 556),
                               ('Pinky', 7, 673)):   # 444: as the ground truth of the published system
        assert torch.equal(fit[:, at(f'{finger}_1'):at(f'{finger}_4')], joints[:, first:first + 3])
        assert torch.equal(fit[:, at(f'{finger}_4')], vertices[:, tip])


@pytest.mark.parametrize('name', OPEN_MODELS)
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


@pytest.mark.parametrize('name', ('smpl', 'mano', *OPEN_MODELS))
def test_pose_parts(name):
    joint_num = get_human_model(name).kinematic_joint_num if name in OPEN_MODELS else {'smpl': 24, 'mano': 16}[name]
    pose = np.arange(2. * 3 * joint_num).reshape(2, -1)
    root, rest = unpack_pose(pose, name)
    assert root.shape == (2, 3) and np.array_equal(pack_pose(root, rest, name), pose)
    with pytest.raises(UserError, match=f'{joint_num * 3} values.*{joint_num * 3 + 1}'):
        unpack_pose(np.zeros(joint_num * 3 + 1), name)
    with pytest.raises(UserError, match=f'{joint_num * 3 - 3} values'):
        pack_pose(root, rest[:, 1:], name)


def test_mistakes_are_named(folder):
    model = get_human_model('smpl', folder)
    with pytest.raises(UserError, match=r'pose of \(B, 72\).*\(1, 48\)'):
        model(torch.zeros(1, 48), torch.zeros(1, 10))
    with pytest.raises(UserError, match=r'shape of \(B, 10\).*\(1, 300\)'):
        model(torch.zeros(1, 72), torch.zeros(1, 300))
    with pytest.raises(UserError, match='no joint regressor for h36m'):
        model.regressor('h36m')
    with pytest.raises(UserError, match='smplh.*smpl, mano, open_body, open_hand'):
        get_human_model('smplh', folder)
    with pytest.raises(UserError, match='open_body is neutral only'):
        get_human_model('open_body', gender='female')
    for name, gender in (('smpl', 'other'), ('mano', 'male')):
        with pytest.raises(UserError, match=f'no {gender!r} model'):
            get_human_model(name, folder, gender)
