"""Synthetic samples: reproducible, anatomically possible, and drawn where their numbers say."""
import multiprocessing

import cv2
import numpy as np
import pytest

from common.human_model import get_human_model
from common.utils.render import rasterise
from data.Synthetic.generator import Generator, Person
from data.Synthetic.geometry import forward_kinematics, rotation_about
from data.Synthetic.hand_pose import PARENTS as HAND_PARENTS
from data.Synthetic.pose import PARENTS, BodyPose
from data.Synthetic.wardrobe import Wardrobe
from tests.synthetic_tools import bend, mesh_of, mesh_rest, rotation_angle, unit

COUNT = 24


@pytest.fixture(scope='module')
def body():
    return get_human_model('open_body')


@pytest.fixture(scope='module')
def generator(body):
    return Generator(body)


@pytest.fixture(scope='module')
def drawn(generator):
    return [generator('train', i, 0) for i in range(COUNT)]


def same(a, b):
    np.testing.assert_array_equal(a.img, b.img)
    np.testing.assert_array_equal(a.numbers(), b.numbers())


def _draw_one(index):
    return Generator(get_human_model('open_body'))('train', index, 0)


def test_a_sample_depends_on_nothing_but_its_numbers(generator, drawn):
    same(generator('train', 7, 0), drawn[7])
    with multiprocessing.get_context('spawn').Pool(1) as pool:  # another process that has drawn nothing before
        same(pool.apply(_draw_one, (5,)), drawn[5])


def test_splits_seeds_and_indices_have_nothing_in_common(generator, drawn):
    others = [generator(split, i, seed) for split, seed in (('validation', 0), ('test', 0), ('train', 1))
              for i in range(4)] + drawn[:8]
    poses = np.stack([d.pose for d in others])
    distance = np.abs(poses[:, None] - poses[None]).max(-1) + np.eye(len(poses))
    assert distance.min() > .05


def test_numbers_round_trip(body, drawn):
    again = Person.from_numbers(drawn[0].numbers(), body)
    for name, value in vars(again).items():
        np.testing.assert_array_equal(value, getattr(drawn[0], name))


def test_parameters_joints_and_image_agree(body, drawn):
    for d in drawn[:8]:
        vertices, joints = mesh_of(body, d)
        np.testing.assert_allclose(joints, d.joints, atol=1e-5)
        mask = rasterise(vertices, body.face, np.ones_like(vertices), d.focal, d.princpt, d.img.shape[:2])[1] > 0
        pixels = (d.joints[:, :2] / d.joints[:, 2:] * d.focal + d.princpt).round().astype(int)
        assert mask[pixels[:24, 1], pixels[:24, 0]].mean() > .95
        x, y, w, h = d.bbox
        rows, cols = np.nonzero(mask)
        overlap = (min(x + w, cols.max()) - max(x, cols.min())) * (min(y + h, rows.max()) - max(y, rows.min()))
        assert overlap / (w * h) > .8
        assert .08 < mask.mean() * (160 ** 2) / max(w, h) ** 2 < .7


def test_the_person_is_drawn_where_the_mesh_is(generator, body):
    """Other clothes and another background change the image, the same pose keeps its mask."""
    plain = Generator(body)
    plain.clothes = type('White', (), {'dress': lambda self, rng: np.full((body.vertex_num, 3), 1, np.float32)})()
    d, expected = plain('test', 0, 0), generator('test', 0, 0)
    np.testing.assert_array_equal(d.pose, expected.pose)
    vertices, _ = mesh_of(body, d)
    mask = cv2.erode(rasterise(vertices, body.face, np.ones_like(vertices), d.focal, d.princpt, (160, 160))[1],
                     np.ones((3, 3))) == 1
    grey = d.img.astype(float)
    spread = grey.max(2) - grey.min(2)
    assert spread[mask].mean() < 45 and mask.sum() > 500


def test_poses_are_anatomically_possible(body):
    """Angles measured on the posed joints: knees bend backwards, elbows inwards, heads do not turn round."""
    _, rest = mesh_rest(body)
    poser = BodyPose(rest)
    for i in range(300):
        local = poser.sample(np.random.default_rng(i))
        p = forward_kinematics(local, rest, PARENTS)
        world = local.copy()
        for k in range(1, 24):
            world[k] = world[PARENTS[k]] @ local[k]
        for side in range(2):
            hip, knee, ankle = p[1 + side], p[4 + side], p[7 + side]
            back = world[1 + side] @ (0, 0, -1)
            assert bend(hip, knee, ankle) < 155
            assert unit(ankle - knee) @ back > -.15  # the shin is behind the thigh, at most a little stretched
            shoulder, elbow, wrist = p[16 + side], p[18 + side], p[20 + side]
            assert bend(shoulder, elbow, wrist) < 150
            upper, forearm = rest[18 + side] - rest[16 + side], rest[20 + side] - rest[18 + side]
            toward = world[16 + side] @ unit(forearm - forearm @ unit(upper) * unit(upper))
            assert unit(wrist - elbow) @ toward > -.05
        thighs = [rotation_angle(local[k]) for k in (1, 2)]
        assert max(thighs) < 150
        look = world[9].T @ world[15] @ (0, 0, 1)
        assert abs(np.rad2deg(np.arctan2(look[0], look[2]))) < 75
        assert rotation_angle(local[3]) + rotation_angle(local[6]) + rotation_angle(local[9]) < 75


def test_limbs_really_move(body):
    _, rest = mesh_rest(body)
    poser = BodyPose(rest)
    joints = np.stack([forward_kinematics(poser.sample(np.random.default_rng(i)), rest, PARENTS) for i in range(400)])
    wrists, knees = joints[:, 20:22], joints[:, 4:6]
    above = (wrists[..., 1] > joints[:, None, 15, 1]).mean()
    assert .12 < above < .45  # hands overhead
    assert (np.linalg.norm(wrists - wrists.mean(0), axis=-1).mean()) > .3
    assert (knees[..., 2] > .25).mean() > .2 and (knees[..., 2] < .1).mean() > .2
    assert (wrists[..., 2] > .3).mean() > .2
    left, right = joints[:, 20] * (-1, 1, 1), joints[:, 21]  # neither side is favoured
    assert np.abs(left.mean(0) - right.mean(0)).max() < .08


def test_arms_work_from_any_rest_pose():
    """A body that rests in a T, as SMPL does, has its arms bent to the front too."""
    t_pose = np.array([[0, 0, 0], [.1, -.1, 0], [-.1, -.1, 0], [0, .1, 0], [.1, -.5, 0], [-.1, -.5, 0], [0, .2, 0],
                       [.1, -.9, 0], [-.1, -.9, 0], [0, .3, 0], [.1, -.95, .1], [-.1, -.95, .1], [0, .5, 0],
                       [.08, .45, 0], [-.08, .45, 0], [0, .6, .05], [.2, .45, 0], [-.2, .45, 0], [.45, .45, 0],
                       [-.45, .45, 0], [.7, .45, 0], [-.7, .45, 0], [.78, .45, 0], [-.78, .45, 0]])
    poser, local = BodyPose(t_pose), np.tile(np.eye(3), (24, 1, 1))
    for side, outward in ((0, 1), (1, -1)):
        poser._arm(np.random.default_rng(0), local, side, elevation=90, azimuth=0, twist=-(10 / 70) * -55, flexion=90)
        p = forward_kinematics(local, t_pose, PARENTS)
        np.testing.assert_allclose(unit(p[18 + side] - p[16 + side]), (outward, 0, 0), atol=.06)
        np.testing.assert_allclose(unit(p[20 + side] - p[18 + side]), (0, 0, 1), atol=.06)


def heading(d):
    front = cv2.Rodrigues(d.pose[:3].astype(float))[0] @ (0, 0, 1)
    return np.rad2deg(np.arctan2(front[0], -front[2]))


def test_headings(body, generator, drawn):
    assert np.abs([heading(d) for d in drawn]).max() < 75 + 12  # camera and pelvis tilt add a little
    assert np.ptp([heading(d) for d in drawn]) > 90
    everywhere = Generator(body, max_heading=180.)
    assert np.abs([heading(everywhere('train', i, 0)) for i in range(12)]).max() > 120


def test_occluder_hides_a_part_of_the_person(body, generator):
    hidden = Generator(body, occlusion=1.)('train', 3, 0)
    np.testing.assert_array_equal(hidden.pose, generator('train', 3, 0).pose)
    changed = np.abs(hidden.img.astype(int) - generator('train', 3, 0).img).max(2) > 12
    x, y, w, h = hidden.bbox.astype(int)
    assert .01 < changed[y:y + h, x:x + w].mean()


def test_both_sides_wear_the_same(body):
    """Clothes tell nothing about the side: positions along the two arms, and the two legs, are alike."""
    vertices, joints = mesh_rest(body)
    wardrobe = Wardrobe(vertices, joints, body.weights.numpy())
    for limb in (wardrobe.arm, wardrobe.leg):
        left, right = (limb[(vertices[:, 0] * s > 0) & (limb < 2)] for s in (1, -1))
        assert abs(np.mean(left) - np.mean(right)) < .15  # the two sides have different vertices
        assert left.min() < .1 and left.max() > 1.9
    colors = wardrobe.dress(np.random.default_rng(0))
    assert colors.min() >= 0 and colors.max() <= 1 and len(np.unique(colors.round(1), axis=0)) > 3


def test_fingers_curl_into_the_palm_of_a_right_hand():
    hand = get_human_model('open_hand')
    generator = Generator(hand)
    poser, names = generator.pose, hand.joint_set.joints_name
    for i in range(60):
        local = poser.sample(np.random.default_rng(i))
        p = forward_kinematics(local, poser.rest, HAND_PARENTS)
        palm = local[0] @ poser.palm
        for finger in (1, 4, 7, 10):
            base, middle, end = p[finger], p[finger + 1], p[finger + 2]
            assert bend(base, middle, end) < 125
            rest = unit(np.diff(poser.rest[finger:finger + 2], axis=0)[0])
            away = unit(local[0] @ rest)
            assert unit(middle - base) @ palm > away @ palm - .5  # straight fingers stretch back a little only
            if bend(base, middle, end) > 40:
                turned = local[0] @ local[finger] @ poser.palm
                assert unit(end - middle) @ turned > .4
    # palm to the camera: seen along the fingers, the index finger of a right hand is on the right
    near = [generator('train', i, 0) for i in range(30)]
    upright = [n for n in near if abs(np.ptp(n.joints[[5, 17], 2])) < .03]
    assert len(upright) > 2
    for n in upright:
        x, y = (n.joints[:, :2] / n.joints[:, 2:]).T
        across, ahead = np.array([x[5] - x[17], y[5] - y[17]]), np.array([x[9] - x[0], y[9] - y[0]])
        assert across[0] * ahead[1] - across[1] * ahead[0] < 0  # from pinky to index: to the right of the fingers
    assert names[5] == 'Index_1' and names[17] == 'Pinky_1'


def test_rotation_about():
    np.testing.assert_allclose(rotation_about((0, 0, 2), 90) @ (1, 0, 0), (0, 1, 0), atol=1e-12)
    matrix = rotation_about((1, 2, 3), 40)
    np.testing.assert_allclose(matrix, cv2.Rodrigues(np.deg2rad(40) * unit(np.array([1., 2, 3])))[0], atol=1e-12)
