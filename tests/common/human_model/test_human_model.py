"""HumanModel: the same meshes as smplx, the joints of the published system."""
import io
import pickle
from contextlib import redirect_stdout

import numpy as np
import pytest
import smplx
import torch

from common.errors import UserError
from common.human_model import get_human_model
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


def test_flat_hand_poses_have_the_mean_added(folder):
    model = get_human_model('mano', folder)
    pose, shape, _ = parameters(model)
    flat_pose = pose + model.pose_mean
    expected = smplx_model(smplx.MANO, mano_arrays(), use_pca=False, flat_hand_mean=True)(
        betas=shape, global_orient=flat_pose[:, :3], hand_pose=flat_pose[:, 3:])
    torch.testing.assert_close(model(pose, shape)[0], expected.vertices, rtol=0, atol=1e-6)


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
