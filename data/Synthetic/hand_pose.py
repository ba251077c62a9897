"""Random poses of a right hand in MANO's layout, inside the range of human fingers.

A gesture says how far each finger is curled; the joints of a finger curl together. Angles are in degrees from the rest
pose, about axes taken from the rest joints: flexion towards the palm, spread in the plane of the palm.
"""
import numpy as np
from numpy.typing import ArrayLike

from common.human_model.mano import PARENTS
from data.Synthetic.geometry import clipped_normal, forward_kinematics, rotation_about, segment_distance, unit
from data.Synthetic.pose import Range

# first of the three joints of each finger
INDEX = 1
MIDDLE = 4
PINKY = 7
RING = 10
THUMB = 13
MAX_TRIES = 20
# gesture: (weight, curl of thumb, index, middle, ring, pinky), each a range within 0 straight .. 1 fist
_OUT = (0, .2)
_HALF = (.2, .6)
_IN = (.75, 1)
GESTURES: dict[str, tuple[float, Range, Range, Range, Range, Range]] = {
    'open': (.22, _OUT, _OUT, _OUT, _OUT, _OUT),
    'relaxed': (.2, (0, .5), (.1, .45), (.15, .5), (.2, .55), (.2, .6)),
    'fist': (.1, (.5, .9), _IN, _IN, _IN, _IN),
    'point': (.1, (.2, .9), _OUT, _IN, _IN, _IN),
    'two': (.07, (.5, .9), _OUT, _OUT, _IN, _IN),
    'thumb': (.06, _OUT, _IN, _IN, _IN, _IN),
    'pinch': (.09, (.4, .7), (.4, .6), (0, .6), (0, .6), (0, .6)),
    'grasp': (.08, (.1, .6), _HALF, _HALF, _HALF, _HALF),
    'free': (.08, (0, 1), (0, 1), (0, 1), (0, 1), (0, 1)),
}


class HandPose:
    """Draws poses for a hand with the rest joints (16, 3) in metres.

    facing (3, 3): rotation to camera space in which the fingers point up and the palm faces the camera.
    """
    distance = (.4, 1.2)  # metres from the camera, range

    def __init__(self, rest_joints: ArrayLike) -> None:
        rest = np.asarray(rest_joints, np.float64)
        self.rest = rest
        self.weight = np.array([row[0] for row in GESTURES.values()])
        ahead = unit(rest[MIDDLE] - rest[0])
        # of a right hand: out of the palm
        palm = np.cross(rest[INDEX] - rest[0], rest[PINKY] - rest[0])
        self.palm = unit(palm - (palm @ ahead) * ahead)
        fingers_up = np.stack([(0, -1, 0), (0, 0, -1), (1, 0, 0)], axis=1)
        self.facing = fingers_up @ np.stack([ahead, self.palm, np.cross(ahead, self.palm)])
        across = unit(rest[PINKY] - rest[THUMB])
        self.hinges = {finger: self._hinges(finger, self.palm) for finger in (INDEX, MIDDLE, PINKY, RING)}
        self.hinges[THUMB] = self._hinges(THUMB, .8 * across + .6 * self.palm)

    def _hinges(self, finger: int, toward: np.ndarray) -> np.ndarray:
        """Axes (3, 3), one per joint of a finger, about which it curls in the direction `toward`."""
        bones = np.diff(self.rest[finger:finger + 3], axis=0)[[0, 1, 1]]
        return np.cross(bones, toward)

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Local rotations (16, 3, 3); the root's tilts the upright hand."""
        rotations = np.tile(np.eye(3), (16, 1, 1))
        for _ in range(MAX_TRIES):
            name = list(GESTURES)[rng.choice(len(GESTURES), p=self.weight / self.weight.sum())]
            _, *curls = GESTURES[name]
            spread = clipped_normal(rng, 2, 4, -4, 9)
            for finger, (low, high) in zip((THUMB, INDEX, MIDDLE, RING, PINKY), curls, strict=True):
                self._curl(rng, rotations, finger, rng.uniform(low, high), spread)
            if not self._collide(rotations):
                break
        roll = rotation_about(self.palm, clipped_normal(rng, 0, 30, -75, 75))
        pitch = rotation_about(np.cross(self.palm, self.rest[MIDDLE]), clipped_normal(rng, 0, 20, -50, 50))
        rotations[0] = roll @ pitch
        return rotations

    def _curl(self, rng: np.random.Generator, rotations: np.ndarray, finger: int, curl: float,
              spread: float) -> None:
        """Bend the joints of a finger: curl from 0 straight to 1 fist, spread in degrees."""
        hinge = self.hinges[finger]
        if finger == THUMB:
            angles = np.array([-8, -10, -12]) + curl * np.array([28, 50, 65]) + rng.normal(0, 5, 3)
            aside = rng.normal(0, 7)
        else:
            first = -12 + curl * 85
            second = curl * 92
            angles = np.array([first, second, .6 * second]) + rng.normal(0, (6, 6, 4))
            angles = np.clip(angles, (-20, -3, -3), (85, 100, 65))
            side = {INDEX: 1, MIDDLE: .2, RING: -.6, PINKY: -1.4}[finger]
            aside = (side * spread + rng.normal(0, 2)) * (1 - .8 * curl)
        for k in range(3):
            rotations[finger + k] = rotation_about(hinge[k], angles[k])
        rotations[finger] = rotation_about(self.palm, aside) @ rotations[finger]

    def _collide(self, rotations: np.ndarray) -> bool:
        """Whether the thumb goes through another finger."""
        p = forward_kinematics(rotations, self.rest, PARENTS)
        fingers = np.array([INDEX, MIDDLE, RING, PINKY])
        start = p[fingers]
        middle = p[fingers + 1]
        end = p[fingers + 2]
        thumb = np.stack([p[THUMB + 1], p[THUMB + 2], 1.6 * p[THUMB + 2] - .6 * p[THUMB + 1]])
        return bool((segment_distance(thumb, np.r_[start, middle], np.r_[middle, end]) < .014).any())
