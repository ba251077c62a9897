"""The body model for one person at a time, beside HumanModel itself."""
import copy

import numpy as np
import pytest
import torch

from common.human_model import get_human_model
from common.human_model.one_body import OneBody, one_body, rodrigues
from tests.py2_pickles import as_official, dump, mano_arrays, smpl_arrays


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('models')
    for name, arrays in (('SMPL_NEUTRAL', smpl_arrays()), ('MANO_RIGHT', mano_arrays())):
        (folder / f'{name}.pkl').write_bytes(dump(as_official(arrays), 2))
    return folder


@pytest.mark.parametrize('name', ['smpl', 'mano', 'open_body', 'open_hand'])
def test_one_body_is_that_of_the_model(name, folder):
    """Poses from none to half turns, large shapes; with pose-dependent shapes (smpl, mano) and without."""
    model = get_human_model(name, folder)
    exact = copy.deepcopy(model).double()
    body = OneBody(model)
    rng = np.random.default_rng(0)
    for spread in (0, 1e-6, .3, 3):
        pose = rng.normal(scale=spread, size=model.kinematic_joint_num * 3)
        shape = rng.normal(scale=2, size=10)
        mesh, joints = body(pose, shape)
        want = exact(torch.from_numpy(pose)[None], torch.from_numpy(shape)[None])
        scale = want[0].abs().max()
        assert mesh.dtype == joints.dtype == torch.float32
        assert (mesh - want[0][0]).abs().max() < 1e-6 * scale and (joints - want[1][0]).abs().max() < 1e-6 * scale
    assert one_body(model) is one_body(model)


def test_rotation_vectors_become_rotations():
    vectors = np.array([[0, 0, 0], [np.pi / 2, 0, 0], [0, 0, np.pi], [.3, -2, 1]])
    matrices = rodrigues(vectors)
    np.testing.assert_allclose(matrices[0], np.eye(3))
    np.testing.assert_allclose(matrices[1] @ [0, 1, 0], [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(matrices[2] @ [1, 0, 0], [-1, 0, 0], atol=1e-12)
    identities = np.broadcast_to(np.eye(3), (4, 3, 3))
    np.testing.assert_allclose(matrices @ matrices.transpose(0, 2, 1), identities, atol=1e-12)
    np.testing.assert_allclose(matrices[3] @ vectors[3], vectors[3], atol=1e-12)
