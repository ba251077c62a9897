"""Rotation conversions against SciPy, at every angle, with their gradients."""
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from common.utils.rotations import matrix_to_axis_angle, matrix_to_quaternion, rot6d_to_matrix


def hard_rotations(n=10_000):
    """(N, 3, 3) float64: random ones, the identity; tiny, nearly half and exact half turns about many axes."""
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(200, 3))
    axes = np.concatenate([axes, np.eye(3), -np.eye(3), np.ones((1, 3))])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    special = [Rotation.from_rotvec(axes * angle).as_matrix() for angle in (1e-9, 1e-5, np.pi - 1e-7, np.pi)]
    return np.concatenate([Rotation.random(n, rng).as_matrix(), np.eye(3)[None], *special])


@pytest.mark.parametrize('dtype, tolerance', [(torch.float32, 1e-4), (torch.float64, 1e-7)])
def test_6d_to_matrix_to_axis_angle_and_back(dtype, tolerance):
    want = hard_rotations()
    matrix = rot6d_to_matrix(torch.tensor(want[:, :, :2], dtype=dtype))
    got = matrix_to_axis_angle(matrix)
    assert got.norm(dim=1).max() <= np.pi + 1e-5
    assert np.abs(Rotation.from_rotvec(got.double().numpy()).as_matrix() - want).max() < tolerance


def test_6d_columns_need_not_be_orthonormal():
    matrix = rot6d_to_matrix(torch.tensor([[[2., 3.], [0., 4.], [0., 0.]]]))
    assert torch.equal(matrix, torch.eye(3)[None])


def test_gradients_are_finite_everywhere():
    x = torch.tensor(hard_rotations(1000)[:, :, :2], dtype=torch.float32, requires_grad=True)
    matrix_to_axis_angle(rot6d_to_matrix(x)).abs().sum().backward()
    assert torch.isfinite(x.grad).all()
    assert x.grad.abs().max() < 1e3


def test_gradient_is_the_numerical_one():
    x = torch.tensor(Rotation.random(8, np.random.default_rng(1)).as_matrix()[:, :, :2], requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: matrix_to_axis_angle(rot6d_to_matrix(x)), x)


def test_quaternions_have_unit_length_and_a_positive_real_part():
    q = matrix_to_quaternion(torch.tensor(hard_rotations(1000)))
    assert (q.norm(dim=1) - 1).abs().max() < 1e-9
    assert (q[:, 0] >= 0).all()


@pytest.mark.parametrize('n', [0, 1])
def test_small_batches(n):
    assert matrix_to_axis_angle(rot6d_to_matrix(torch.eye(3)[:, :2].expand(n, 3, 2))).shape == (n, 3)
