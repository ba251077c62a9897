"""Random body poses inside the range of human joints.

Angles are sampled in degrees along anatomical axes (flexion, abduction, twist) from a table of everyday attitudes, then
turned into the rotations of the 24 kinematic joints. A pose whose limbs would pass through the trunk or through each
other is drawn again. Body frame: x to the person's left, y up, z to the front.
"""
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from common.human_model.smpl import PARENTS
from data.Synthetic.geometry import clipped_normal, forward_kinematics, rotation_about, segment_distance, unit

MAX_TRIES = 30
Range = tuple[float, float]  # degrees
Leg = tuple[Range, Range, Range, Range, Range]

# attitude: (weight, elevation from hanging, azimuth 0 side / 90 front / -90 back, inward twist, elbow flexion)
ARM: dict[str, tuple[float, Range, Range, Range, Range]] = {
    'hang': (.18, (3, 28), (-20, 70), (-20, 40), (5, 55)),
    'swing_front': (.06, (15, 50), (70, 105), (-10, 30), (5, 80)),
    'swing_back': (.06, (15, 50), (-100, -60), (-10, 30), (5, 50)),
    'akimbo': (.08, (35, 58), (-30, 5), (50, 80), (75, 110)),
    'front': (.16, (50, 112), (60, 112), (-25, 55), (5, 120)),
    'side': (.16, (55, 112), (-15, 40), (-85, 45), (5, 115)),
    'overhead': (.14, (122, 168), (0, 95), (-35, 30), (5, 120)),
    'across': (.05, (25, 80), (85, 122), (0, 45), (35, 120)),
    'behind': (.03, (15, 40), (-80, -45), (50, 85), (35, 85)),
    'free': (.08, (8, 150), (-25, 112), (-50, 50), (5, 138)),
}
# attitude: (weight, pelvis pitch, leg, other leg); leg: hip flexion, abduction, outward twist, knee and ankle flexion
_STAND = ((-8, 15), (-2, 12), (-10, 25), (-5, 15), (-8, 8))
_WIDE = ((-5, 30), (10, 34), (-5, 30), (0, 40), (-15, 8))
_SIT = ((65, 102), (-2, 28), (-15, 25), (55, 108), (-15, 25))
_SQUAT = ((60, 115), (4, 38), (-5, 30), (80, 135), (-30, 5))
_FREE = ((-20, 110), (-8, 42), (-20, 35), (0, 135), (-25, 35))
LEGS: dict[str, tuple[float, Range, Leg, Leg]] = {
    'stand': (.24, (-6, 8), _STAND, _STAND),
    'wide': (.09, (-6, 15), _WIDE, _WIDE),
    'walk': (.14, (-4, 10), ((12, 45), (-3, 8), (-8, 15), (0, 40), (-12, 10)),
             ((-25, 2), (-3, 8), (-8, 15), (5, 65), (-10, 30))),
    'run': (.07, (2, 25), ((45, 95), (-3, 12), (-10, 15), (45, 115), (-12, 15)),
            ((-22, 8), (-3, 8), (-10, 15), (15, 95), (-5, 35))),
    'sit': (.10, (-15, 12), _SIT, _SIT),
    'squat': (.09, (0, 38), _SQUAT, _SQUAT),
    'lunge': (.07, (-4, 18), ((55, 95), (-2, 12), (-8, 15), (55, 102), (-15, 8)),
              ((-22, 8), (-2, 8), (-8, 12), (15, 75), (-15, 20))),
    'kneel': (.04, (-6, 12), ((75, 98), (-2, 14), (-8, 15), (75, 105), (-10, 15)),
              ((-6, 12), (-2, 8), (-8, 8), (80, 112), (0, 40))),
    'kick': (.06, (-12, 8), ((35, 100), (-5, 22), (-15, 25), (0, 70), (-10, 35)), _STAND),
    'sidelift': (.04, (-5, 8), ((-5, 30), (25, 55), (-5, 30), (0, 60), (-8, 30)), _STAND),
    'free': (.06, (-10, 25), _FREE, _FREE),
}


class BodyPose:
    """Draws poses for a body with the rest joints (24, 3) in metres; the arms' rest may be any, from T to hanging.

    facing (3, 3): rotation to camera space in which the upright body looks at the camera.
    """
    distance = (3., 10.)  # metres from the camera, range
    facing = np.diag([1., -1., -1.])

    def __init__(self, rest_joints: ArrayLike) -> None:
        self.rest = np.asarray(rest_joints, np.float64)
        self.arm_weight = np.array([row[0] for row in ARM.values()])
        self.legs_weight = np.array([row[0] for row in LEGS.values()])

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Local rotations (24, 3, 3); the root's holds the tilt of the pelvis, not the heading."""
        rotations = np.tile(np.eye(3), (24, 1, 1))
        self._trunk(rng, rotations)
        for _ in range(MAX_TRIES):
            self._legs(rng, rotations)
            if not self._legs_collide(rotations):
                break
        else:
            rotations[[1, 2, 4, 5]] = np.eye(3)
        for _ in range(MAX_TRIES):
            self._arms(rng, rotations)
            if not self._arms_collide(rotations):
                break
        return rotations

    def _trunk(self, rng: np.random.Generator, rotations: np.ndarray) -> None:
        bend = clipped_normal(rng, 8, 13, -15, 50)
        lean = clipped_normal(rng, 0, 9, -25, 25)
        turn = clipped_normal(rng, 0, 14, -40, 40)
        for joint, share in zip((3, 6, 9), rng.dirichlet((12, 12, 12)), strict=True):
            rotations[joint] = _euler(bend * share, turn * share, lean * share)
        nod = clipped_normal(rng, 2, 14, -32, 38)
        tilt = clipped_normal(rng, 0, 8, -22, 22)
        look = clipped_normal(rng, 0, 24, -65, 65)
        share = rng.uniform(.35, .55)
        rotations[12] = _euler(nod * share, look * share, tilt * share)
        rotations[15] = _euler(nod * (1 - share), look * (1 - share), tilt * (1 - share))

    def _legs(self, rng: np.random.Generator, rotations: np.ndarray) -> None:
        name = list(LEGS)[rng.choice(len(LEGS), p=self.legs_weight / self.legs_weight.sum())]
        _, pitch, *legs = LEGS[name]
        rotations[0] = _euler(rng.uniform(*pitch), 0, clipped_normal(rng, 0, 4, -12, 12))
        level = rng.random(5)  # both legs are alike in the symmetric attitudes
        for k, side in enumerate(rng.permutation(2)):
            if legs[0] is legs[1]:
                own = np.clip(level + rng.normal(0, .15, 5), 0, 1)
            else:
                own = rng.random(5)
            hip, abduction, twist, knee, ankle = _blend(legs[k], own)
            s = 1 - 2 * side
            rotations[1 + side] = (rotation_about((1, 0, 0), -hip) @ rotation_about((0, 0, 1), s * abduction)
                                   @ rotation_about((0, 1, 0), s * twist))
            rotations[4 + side] = _euler(knee, rng.uniform(-4, 4), 0)
            rotations[7 + side] = _euler(ankle, rng.uniform(-8, 8), rng.uniform(-8, 8))
            rotations[10 + side] = _euler(rng.uniform(-15, 5), 0, 0)

    def _arms(self, rng: np.random.Generator, rotations: np.ndarray) -> None:
        pair = rng.choice(len(ARM), 2, p=self.arm_weight / self.arm_weight.sum())
        level = rng.random((2, 4))
        if rng.random() < .35:
            pair[1] = pair[0]
            level[1] = np.clip(level[0] + rng.normal(0, .12, 4), 0, 1)
        for side in range(2):
            _, *ranges = ARM[list(ARM)[pair[side]]]
            self._arm(rng, rotations, side, *_blend(ranges, level[side]))

    def _arm(self, rng: np.random.Generator, rotations: np.ndarray, side: int, elevation: float, azimuth: float,
             twist: float, flexion: float) -> None:
        """Set collar, shoulder, elbow, wrist and hand of one side (0 left, 1 right); angles in degrees."""
        mirror = np.array([1 - 2 * side, 1, 1])  # the right arm is the left one in a mirror
        collar, shoulder, elbow, wrist, hand = (mirror * self.rest[k + side] for k in (13, 16, 18, 20, 22))
        upper = unit(elbow - shoulder)
        forearm = unit(wrist - elbow)
        bend = np.rad2deg(np.arccos(np.clip(upper @ forearm, -1, 1)))
        # the direction in which the elbow bends: to the front if the arm is straight at rest
        toward = forearm
        if bend <= 5:
            toward = np.array([0., 0, 1])
        toward = unit(_reject(toward, upper))
        e = np.deg2rad(elevation)
        a = np.deg2rad(azimuth)
        target = np.array([np.sin(e) * np.cos(a), -np.cos(e), np.sin(e) * np.sin(a)])
        # With the smallest turn from hanging, the forearm's plane depends on the way up: overhead it is twisted back.
        swing = rotation_about(np.cross((0, -1, 0), target), elevation)
        twist += np.clip((elevation - 80) / 70, 0, 1) * (azimuth - 55)
        front = rotation_about(target, twist) @ swing @ (0, 0, 1)
        turn = _frame(target, front) @ _frame(upper, toward).T
        lift = np.clip((elevation - 50) / 110, 0, 1) * rng.uniform(12, 26) + rng.normal(0, 2)
        advance = np.sin(e) * np.sin(a) * rng.uniform(5, 15)
        collar_turn = rotation_about((0, 0, 1), lift) @ rotation_about((0, 1, 0), -advance)
        pronation = rng.uniform(-60, 60)
        hinge = np.cross(upper, toward)
        flip = np.diag(mirror).astype(float)
        local = {13: collar_turn, 16: collar_turn.T @ turn,
                 18: rotation_about(hinge, flexion - bend) @ rotation_about(forearm, .35 * pronation),
                 20: rotation_about(forearm, .65 * pronation)
                 @ rotation_about(hinge, clipped_normal(rng, 0, 18, -45, 45))
                 @ rotation_about(toward, clipped_normal(rng, 0, 7, -15, 15)),
                 22: rotation_about(hinge, clipped_normal(rng, 5, 8, -15, 25))}
        for joint, matrix in local.items():
            rotations[joint + side] = flip @ matrix @ flip

    def _legs_collide(self, rotations: np.ndarray) -> bool:
        p = forward_kinematics(rotations, self.rest, PARENTS)
        left = np.stack([p[1], p[4], p[7], p[10]])
        right = np.stack([p[2], p[5], p[8], p[11]])
        radius = np.array([.075, .06, .055])
        points = _between(left[1:], left[:-1])
        legs = segment_distance(points, right[:-1], right[1:]) < radius + .05
        knees = np.stack([p[4], p[5]])
        trunk = segment_distance(knees, np.stack([p[6], p[9]]), np.stack([p[9], p[12]])) < .17
        return bool(legs.any() or trunk.any())

    def _arms_collide(self, rotations: np.ndarray) -> bool:
        p = forward_kinematics(rotations, self.rest, PARENTS)
        crown = p[15] + 1.3 * (p[15] - p[12])
        start = np.stack([p[0], p[3], p[9], p[15], p[1], p[2], p[4], p[5]])
        end = np.stack([p[3], p[9], p[12], crown, p[4], p[5], p[7], p[8]])
        radius = np.array([.14, .13, .12, .10, .085, .085, .06, .06])
        # the last joint is the root of the fingers
        tips = [p[22 + k] + .8 * (p[22 + k] - p[20 + k]) for k in range(2)]
        arms = [np.stack([p[18 + k], p[20 + k], p[22 + k], tips[k]]) for k in range(2)]
        for k in range(2):
            points = np.concatenate([_between(arms[k][1:], arms[k][:-1]), arms[k][1:]])
            if (segment_distance(points, start, end) < radius + .03).any():
                return True
            if (segment_distance(p[18 + k][None], start[:3], end[:3]) < radius[:3] + .01).any():
                return True
        points = np.concatenate([_between(arms[0][1:], arms[0][:-1]), arms[0][1:]])
        return bool((segment_distance(points, arms[1][:-1], arms[1][1:]) < .075).any())


def _euler(pitch: float, yaw: float, roll: float) -> np.ndarray:
    """Turn about x (forward), y (to the left) and z, in degrees."""
    return Rotation.from_euler('YXZ', (yaw, pitch, roll), degrees=True).as_matrix()


def _blend(ranges: Sequence[Range], level: np.ndarray) -> list[float]:
    """The numbers at level (N,) in 0..1 of N ranges (low, high)."""
    return [low + t * (high - low) for (low, high), t in zip(ranges, level, strict=True)]


def _reject(v: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """The part of v that is perpendicular to the unit vector axis."""
    return v - (v @ axis) * axis


def _frame(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Rotation matrix whose columns are first, second and their cross product (both unit, perpendicular)."""
    return np.stack([first, second, np.cross(first, second)], axis=1)


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a + b) / 2
