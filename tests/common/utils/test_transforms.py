"""Cameras, placement of fits, flips and alignment."""
import numpy as np
import pytest
import torch

from common.utils import transforms
from common.utils.joint_set import SMPL
from data.placed_fit import place_fit
from data.sample import Fit, Sample
from tests.data_tools import pinhole, rotation, symmetric_body

ORDER = SMPL.flip_order()[:24]


@pytest.fixture(scope='module')
def body():
    return symmetric_body()


def run(model, pose, shape, trans=None):
    """Vertices (V, 3) in float64."""
    with torch.no_grad():
        vertices, _ = model(*(torch.tensor(np.asarray(v))[None] for v in (pose, shape)))
    return vertices[0].numpy().astype(np.float64) + (0 if trans is None else trans)


TURNS = [np.zeros(3), np.array([np.pi, 0, 0]), np.array([0, np.pi, 0]), np.array([0, 0, np.pi]),
         np.pi * np.ones(3) / np.sqrt(3), np.array([0, np.pi - 1e-6, 0]), np.array([1e-7, 0, 0]),
         *np.random.default_rng(0).normal(size=(6, 3)) * 2]


@pytest.mark.parametrize('turn', TURNS)
@pytest.mark.parametrize('root', [[.3, -.2, .5], [0, np.pi, 0], [0, 0, 0]])
def test_fit_in_the_world_and_fit_in_camera_space_are_the_same_body(turn, root, body):
    rng = np.random.default_rng(1)
    pose, shape, trans, t = rng.normal(size=72) * .3, rng.normal(size=10), rng.normal(size=3), rng.normal(size=3) * 3
    pose[:3] = root
    R = rotation(turn)
    sample = Sample('', (200, 200), np.zeros(4), pinhole(), fit=Fit(pose, shape, trans, R=R, t=t))
    placed = place_fit(sample, lambda gender: body[0])
    wanted = transforms.world2cam(run(body[0], pose, shape, trans), R, t)
    np.testing.assert_allclose(placed.vertices, wanted, atol=1e-4)


def test_rotated_pose_is_the_composed_rotation():
    for turn in TURNS:
        for root in TURNS:
            pose = np.concatenate([root, np.ones(69)])
            turned = transforms.rotate_pose(pose, rotation(turn))
            np.testing.assert_allclose(rotation(turned[:3]), rotation(turn) @ rotation(root), atol=3e-5)
            np.testing.assert_array_equal(turned[3:], pose[3:])


def test_body_of_the_mirrored_pose_is_the_mirrored_body(body):
    model, mirrored_vertex = body
    rng = np.random.default_rng(2)
    pose, shape = rng.normal(size=72) * .5, rng.normal(size=10)
    flipped = transforms.flip_pose(pose, ORDER)
    wanted = run(model, pose, shape)[mirrored_vertex] * (-1, 1, 1)
    np.testing.assert_allclose(run(model, flipped, shape), wanted, atol=2e-6)
    np.testing.assert_array_equal(transforms.flip_pose(flipped, ORDER), pose)


def test_flipped_fit_is_seen_in_the_mirrored_image(body):
    """With the principal point in the middle, each vertex is where its mirror image is."""
    model, mirrored_vertex = body
    rng = np.random.default_rng(3)
    shape, camera = (240, 320), pinhole(300., (159.5, 119.5))
    for R in (None, rotation([2., .3, -.2])):
        t = None if R is None else np.array([.2, .1, 4.])
        trans = np.array([.3, -.2, 4.]) if R is None else rng.normal(size=3) * .1
        fit = Fit(rng.normal(size=72) * .3, rng.normal(size=10), trans, R=R, t=t)
        sample = Sample('', shape, np.zeros(4), camera, fit=fit)
        plain, flipped = (place_fit(sample, lambda gender: model, flip) for flip in (False, True))
        before, after = (transforms.cam2pixel(p.vertices, camera.focal, camera.princpt) for p in (plain, flipped))
        np.testing.assert_allclose(after[:, 0], shape[1] - 1 - before[mirrored_vertex, 0], atol=2e-3)
        np.testing.assert_allclose(after[:, 1:], before[mirrored_vertex, 1:], atol=2e-3)


def test_pixels_and_camera_space_are_inverse():
    points = np.random.default_rng(4).normal(size=(5, 7, 3)) + (0, 0, 5)
    pixels = transforms.cam2pixel(points, np.array([500., 510]), np.array([100., 120]))
    np.testing.assert_allclose(pixels[0, 0, 0], points[0, 0, 0] / points[0, 0, 2] * 500 + 100)
    np.testing.assert_allclose(transforms.pixel2cam(pixels, np.array([500., 510]), np.array([100., 120])), points)


def test_alignment_is_exact_for_a_similarity_and_never_mirrors():
    rng = np.random.default_rng(5)
    source = rng.normal(size=(8, 14, 3))
    moved = np.stack([rng.uniform(.2, 5) * x @ rotation(rng.normal(size=3) * 2).T + rng.normal(size=3) for x in source])
    np.testing.assert_allclose(transforms.rigid_align(source, moved), moved, atol=1e-9)
    mirrored = source * (-1, 1, 1)
    errors = np.linalg.norm(transforms.rigid_align(source, mirrored) - mirrored, axis=-1).mean(-1)
    assert (errors > .1).all()


@pytest.mark.parametrize('points', [np.zeros((6, 3)), np.ones((6, 3)), np.eye(6, 3) * [1, 0, 0], np.ones((1, 3))])
def test_alignment_of_degenerate_points_is_finite(points):
    target = np.random.default_rng(6).normal(size=points.shape)
    assert np.isfinite(transforms.rigid_align(points, target)).all()
    assert np.isfinite(transforms.rigid_align(target, points)).all()


def test_alignment_keeps_nan_to_its_own_sample():
    source = np.random.default_rng(7).normal(size=(3, 5, 3))
    target = source.copy()
    target[1, 2, 0] = np.nan
    aligned = transforms.rigid_align(source, target)
    assert np.isnan(aligned[1]).all()
    np.testing.assert_allclose(aligned[[0, 2]], source[[0, 2]], atol=1e-9)


def test_depth_from_box_scales_with_the_focal_length():
    box = np.array([0, 0, 200, 200])
    assert transforms.depth_from_box(box, (1500., 1500.), 2.) == pytest.approx(15)
    assert transforms.depth_from_box(box, (3000., 3000.), 2.) == pytest.approx(30)
