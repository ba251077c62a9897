"""Forearms, sleeves and held objects of synthetic hands: closed on the hand, outside out, and never in the labels."""
import numpy as np
import pytest
import torch

from common.human_model import get_human_model
from common.utils.render import vertex_normals
from data.Synthetic import hand_props
from data.Synthetic.generator import Generator
from data.Synthetic.hand_props import TOWARDS_CAMERA, rim_loop, stretched, tube
from tests.synthetic_tools import mesh_of


@pytest.fixture(scope='module')
def hand():
    return get_human_model('open_hand')


@pytest.fixture(scope='module')
def generator(hand):
    return Generator(hand, max_heading=180.)


def posed(hand, generator, index):
    """Vertices, kinematic joints (camera space, metres) and root rotation of a drawn hand."""
    drawn = generator('test', index, 0)
    pose = torch.from_numpy(drawn.pose)[None]
    vertices, joints = hand(pose, torch.from_numpy(drawn.shape)[None], torch.from_numpy(drawn.trans)[None])
    rotation = hand_props.rotation_about(drawn.pose[:3], np.rad2deg(np.linalg.norm(drawn.pose[:3])))
    return vertices[0].numpy(), joints[0].numpy(), rotation


def test_the_rim_is_the_hole_at_the_wrist(hand):
    loop = rim_loop(hand.face)
    assert len(set(loop)) == len(loop) == 16
    edges = {(int(a), int(b)) for face in hand.face for a, b in zip(face, np.roll(face, -1), strict=True)}
    following = list(zip(loop, np.roll(loop, -1), strict=True))
    assert all((a, b) in edges and (b, a) not in edges for a, b in following)
    wrist = hand.v_template[loop].mean(0)
    assert wrist[0] > hand.v_template[:, 0].mean() + .05  # fingers along -x


def test_a_tube_shows_its_outside():
    turn = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.stack([np.cos(turn), np.sin(turn), np.zeros(12)], 1)
    for direction in (1, -1):
        rings = stretched(ring[::direction], np.array([0, 0, 1.]), np.array([0, 1, 2.]), [1, 1.5, 2])
        assert rings.shape == (3, 12, 3)
        np.testing.assert_allclose(np.linalg.norm(rings[..., :2], axis=2), np.tile([[1], [1.5], [2]], 12))
        vertices, faces, colors = tube(rings, np.array([.2, .4, .6]))
        assert faces.shape == (48, 3) and colors.shape == vertices.shape == (36, 3)
        normals = vertex_normals(vertices, faces)
        assert ((normals * vertices)[:, :2].sum(1) > .5).all()


@pytest.mark.parametrize('index', range(6))
def test_the_forearm_goes_on_from_the_wrist(hand, generator, index):
    vertices, joints, rotation = posed(hand, generator, index)
    colors = np.full_like(vertices, .5)
    props = generator.props
    for seed in range(4):
        mesh, faces, painted = props(np.random.default_rng(seed), vertices, joints, colors, rotation)
        np.testing.assert_array_equal(mesh[:hand.vertex_num], vertices)
        np.testing.assert_array_equal(faces[:len(hand.face)], hand.face)
        np.testing.assert_array_equal(painted[:hand.vertex_num], colors)
        assert len(painted) == len(mesh) > hand.vertex_num and faces.max() == len(mesh) - 1
        arm = mesh[hand.vertex_num:hand.vertex_num + 4 * 16].reshape(4, 16, 3)
        np.testing.assert_allclose(arm[0], vertices[props.rim], atol=1e-6)
        np.testing.assert_allclose(painted[hand.vertex_num:hand.vertex_num + 64], .5, atol=1e-6)
        direction = (arm[3] - arm[0]).mean(0) / hand_props.ARM_LENGTH
        assert abs(np.linalg.norm(direction) - 1) < 1e-3
        if direction[2] > TOWARDS_CAMERA:  # not turned aside: away from the fingers
            assert direction @ (joints[0] - joints[4]) > 0


def test_held_objects_and_sleeves_are_drawn_but_not_learnt(hand, generator, monkeypatch):
    images = {}
    for share in (0., 1.1):
        monkeypatch.setattr(hand_props, 'HELD', share)
        monkeypatch.setattr(hand_props, 'SLEEVE', share)
        images[share] = [generator('test', i, 0) for i in range(4)]
    for without, with_props in zip(images[0.], images[1.1], strict=True):
        np.testing.assert_array_equal(without.numbers(), with_props.numbers())
        assert np.abs(without.img.astype(int) - with_props.img).max(2).mean() > 1
        vertices, joints = mesh_of(hand, with_props)
        np.testing.assert_allclose(joints, with_props.joints, atol=1e-5)
        pixels = vertices[:, :2] / vertices[:, 2:] * with_props.focal + with_props.princpt
        low = pixels.min(0)
        high = pixels.max(0)
        center = with_props.bbox[:2] + with_props.bbox[2:] / 2
        np.testing.assert_allclose(center, (low + high) / 2, atol=8)  # the box is around the hand alone
        assert (with_props.bbox[2:] < 1.1 * (high - low) + 1).all()
