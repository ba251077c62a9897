"""Random poses of a right hand in MANO's layout, inside the range of human fingers.

A gesture says how far each finger is curled; the joints of a finger curl together. Angles are in degrees from the rest
pose, about axes taken from the rest joints: flexion towards the palm, spread in the plane of the palm.
"""
import numpy as np

from common.human_model.mano import PARENTS
from data.Synthetic.pose import clipped_normal, forward_kinematics, rotation_about, segment_distance, unit

INDEX, MIDDLE, PINKY, RING, THUMB = 1, 4, 7, 10, 13  # first of the three joints of each finger
MAX_TRIES = 20
# gesture: (weight, curl of thumb, index, middle, ring, pinky), each a range within 0 straight .. 1 fist
_OUT, _HALF, _IN = (0, .2), (.2, .6), (.75, 1)
GESTURES = {
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

    def __init__(self, rest_joints):
        self.rest = rest = np.asarray(rest_joints, np.float64)
        self.weight = np.array([row[0] for row in GESTURES.values()])
        ahead = unit(rest[MIDDLE] - rest[0])
        palm = np.cross(rest[INDEX] - rest[0], rest[PINKY] - rest[0])  # of a right hand: out of the palm
        self.palm = unit(palm - (palm @ ahead) * ahead)
        self.facing = np.stack([(0, -1, 0), (0, 0, -1), (1, 0, 0)], axis=1) @ np.stack(
            [ahead, self.palm, np.cross(ahead, self.palm)])
        across = unit(rest[PINKY] - rest[THUMB])
        self.hinges = {finger: self._hinges(finger, .8 * across + .6 * self.palm if finger == THUMB else self.palm)
                       for finger in (INDEX, MIDDLE, PINKY, RING, THUMB)}

    def _hinges(self, finger, toward):
        """Axes (3, 3), one per joint of a finger, about which it curls in the direction `toward`."""
        bones = np.diff(self.rest[finger:finger + 3], axis=0)[[0, 1, 1]]
        return np.cross(bones, toward)

    def sample(self, rng):
        """Local rotations (16, 3, 3); the root's tilts the upright hand."""
        rotations = np.tile(np.eye(3), (16, 1, 1))
        for _ in range(MAX_TRIES):
            _, *curls = GESTURES[list(GESTURES)[rng.choice(len(GESTURES), p=self.weight / self.weight.sum())]]
            spread = clipped_normal(rng, 2, 4, -4, 9)
            for finger, (low, high) in zip((THUMB, INDEX, MIDDLE, RING, PINKY), curls, strict=True):
                self._curl(rng, rotations, finger, rng.uniform(low, high), spread)
            if not self._collide(rotations):
                break
        rotations[0] = (rotation_about(self.palm, clipped_normal(rng, 0, 30, -75, 75))
                        @ rotation_about(np.cross(self.palm, self.rest[MIDDLE]), clipped_normal(rng, 0, 20, -50, 50)))
        return rotations

    def _curl(self, rng, rotations, finger, curl, spread):
        hinge = self.hinges[finger]
        if finger == THUMB:
            angles = np.array([-8, -10, -12]) + curl * np.array([28, 50, 65]) + rng.normal(0, 5, 3)
            aside = rng.normal(0, 7)
        else:
            first, second = -12 + curl * 85, curl * 92
            angles = np.array([first, second, .6 * second]) + rng.normal(0, (6, 6, 4))
            angles = np.clip(angles, (-20, -3, -3), (85, 100, 65))
            side = {INDEX: 1, MIDDLE: .2, RING: -.6, PINKY: -1.4}[finger]
            aside = (side * spread + rng.normal(0, 2)) * (1 - .8 * curl)
        for k in range(3):
            rotations[finger + k] = rotation_about(hinge[k], angles[k])
        rotations[finger] = rotation_about(self.palm, aside) @ rotations[finger]

    def _collide(self, rotations):
        """Whether the thumb goes through another finger."""
        p = forward_kinematics(rotations, self.rest, PARENTS)
        fingers = np.array([INDEX, MIDDLE, RING, PINKY])
        start, middle, end = p[fingers], p[fingers + 1], p[fingers + 2]
        thumb = np.stack([p[THUMB + 1], p[THUMB + 2], 1.6 * p[THUMB + 2] - .6 * p[THUMB + 1]])
        return bool((segment_distance(thumb, np.r_[start, middle], np.r_[middle, end]) < .014).any())
