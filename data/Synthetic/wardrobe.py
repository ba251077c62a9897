"""Skin, hair and clothes as random vertex colours, drawn by body region on the rest mesh."""
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import ArrayLike

# kinematic joints that own the vertices of each region (left, right)
UPPER_ARM = (16, 17)
FOREARM = (18, 19)
HANDS = (20, 21, 22, 23)
THIGH = (1, 2)
SHIN = (4, 5)
FEET = (7, 8, 10, 11)
HEAD = 15
NECK = 12
# the other end of each bone of a limb
CHILD = {16: 18, 17: 19, 18: 20, 19: 21, 1: 4, 2: 5, 4: 7, 5: 8}
Lengths = tuple[tuple[float, float], ...]
# end on the arm (1 elbow, 2 wrist), probability
SLEEVES: Lengths = ((.12, .1), (.5, .35), (1.0, .1), (1.93, .45))
# end on the leg (1 knee, 2 ankle), probability
TROUSERS: Lengths = ((.35, .15), (.85, .2), (1.5, .1), (1.95, .55))


class Wardrobe:
    """Dresses one body model.

    Args:
        rest_vertices: (V, 3) metres.
        rest_joints: (24, 3) metres.
        weights: (V, 24) of the skinning.
        eyes: Vertex indices, or ().
    """

    def __init__(self, rest_vertices: ArrayLike, rest_joints: ArrayLike, weights: ArrayLike,
                 eyes: Sequence[int] = ()) -> None:
        self.rest = np.asarray(rest_vertices, np.float32)
        joints = np.asarray(rest_joints, np.float32)
        owner = np.asarray(weights).argmax(1)
        self.arm = self._limb(owner, joints, UPPER_ARM, FOREARM, HANDS)
        self.leg = self._limb(owner, joints, THIGH, SHIN, FEET)
        self.feet = np.isin(owner, FEET)
        self.hands = np.isin(owner, HANDS)
        self.head = owner == HEAD
        self.neck = owner == NECK
        self.legs = ~np.isnan(self.leg)
        self.trunk = ~(self.head | self.neck | self.legs) & np.isnan(self.arm)
        self.waist = joints[0, 1]
        self.hair = self._hair()
        self.eyes = np.zeros(0, int)
        if len(eyes):
            distance = [np.linalg.norm(self.rest - self.rest[eye], axis=1) for eye in eyes]
            self.eyes = np.flatnonzero(np.min(distance, axis=0) < .013)

    def _hair(self) -> np.ndarray:
        """(V,) 0 at the front of the jaw, 1 at the crown and at the back of the head; -inf below the head."""
        head = self.rest[self.head]
        low = head.min(0)
        high = head.max(0)
        up = (self.rest[:, 1] - low[1]) / (high[1] - low[1])
        forward = (self.rest[:, 2] - low[2]) / (high[2] - low[2])
        return np.where(self.head, up - .9 * forward, -np.inf)

    def _limb(self, owner: np.ndarray, joints: np.ndarray, first: tuple[int, ...], second: tuple[int, ...],
              end: tuple[int, ...]) -> np.ndarray:
        """Position along a limb per vertex: 0..1 on the first bone, 1..2 on the second, 3 beyond; NaN elsewhere."""
        along = np.full(len(self.rest), np.nan, np.float32)
        for bones, offset in ((first, 0), (second, 1)):
            for joint in bones:
                bone = joints[CHILD[joint]] - joints[joint]
                mine = owner == joint
                projected = (self.rest[mine] - joints[joint]) @ bone / (bone @ bone)
                along[mine] = offset + np.clip(projected, 0, 1)
        along[np.isin(owner, end)] = 3
        return along

    def dress(self, rng: np.random.Generator) -> np.ndarray:
        """Colours (V, 3) float32 in 0..1, RGB, without light."""
        skin = skin_color(rng)
        color = np.tile(skin, (len(self.rest), 1))
        shirt = clothing_color(rng)
        trousers = clothing_color(rng)
        shoes = clothing_color(rng) * rng.uniform(.3, 1)
        lengths = TROUSERS
        if rng.random() < .12:  # a dress
            trousers = shirt
            lengths = TROUSERS[:2]
        sleeve = _choose(rng, SLEEVES)
        leg = _choose(rng, lengths)
        waist = self.waist + rng.uniform(-.09, .07)
        if rng.random() > .15:
            color[self.feet | (self.leg > rng.uniform(1.75, 1.97))] = shoes
        lower = (self.legs & (self.leg < leg)) | (self.trunk & (self.rest[:, 1] < waist))
        color[lower] = trousers * self._pattern(rng)[lower]
        upper = (self.trunk & (self.rest[:, 1] >= waist)) | (self.arm < sleeve)
        if rng.random() < .15:
            upper = upper | self.neck
        color[upper] = shirt * self._pattern(rng)[upper]
        if rng.random() < .06:
            color[self.hands] = clothing_color(rng)
        if rng.random() < .92:
            color[self.hair > rng.uniform(.08, .3)] = hair_color(rng)
        color[self.eyes] = skin * .25
        noise = smooth_noise(rng, self.rest, rng.uniform(.02, .12), 9)
        return np.clip(color * noise, 0, 1).astype(np.float32)

    def _pattern(self, rng: np.random.Generator) -> np.ndarray:
        """A factor (V, 1) on a piece of cloth: plain, stripes or checks."""
        kind = rng.random()
        if kind < .65:
            return np.ones((len(self.rest), 1), np.float32)
        axes = ([1], [0], [0, 1])[rng.integers(3)]
        wave = np.sin(self.rest[:, axes] * rng.uniform(40, 110) + rng.uniform(0, 6)).sum(1, keepdims=True)
        return 1 + rng.uniform(.15, .5) * np.sign(wave)


class HandSkin:
    """Colours a hand.

    Args:
        rest_vertices: (V, 3) metres.
        rest_joints: (16, 3) metres.
        palm: (3,) unit vector out of the palm.
    """

    def __init__(self, rest_vertices: ArrayLike, rest_joints: np.ndarray, palm: np.ndarray) -> None:
        self.rest = np.asarray(rest_vertices, np.float32)
        ahead = rest_joints[4] - rest_joints[0]  # from the wrist to the middle finger
        # 0 at the wrist, 1 at the knuckles
        self.along = (self.rest - rest_joints[0]) @ (ahead / (ahead @ ahead))
        height = (self.rest - self.rest.mean(0)) @ palm
        self.palmar = np.clip(height / np.abs(height).max() * 2, -1, 1)[:, None]

    def dress(self, rng: np.random.Generator) -> np.ndarray:
        """Colours (V, 3) float32 in 0..1, RGB, without light: skin, lighter at the palm, sometimes a glove or cuff."""
        wears_glove = rng.random() < .08
        skin = clothing_color(rng) if wears_glove else skin_color(rng)
        color = skin * (1 + rng.uniform(0, .15) * self.palmar)
        if rng.random() < .4:
            color[self.along < rng.uniform(-.15, .15)] = clothing_color(rng)
        noise = smooth_noise(rng, self.rest, rng.uniform(.02, .15), 60)
        return np.clip(color * noise, 0, 1).astype(np.float32)


def skin_color(rng: np.random.Generator) -> np.ndarray:
    """RGB (3,) in 0..1, from dark to light skin."""
    dark = np.array([.32, .2, .14])
    light = np.array([.96, .78, .68])
    return dark + rng.beta(2, 1.3) * (light - dark) + rng.normal(0, .02, 3)


def hair_color(rng: np.random.Generator) -> np.ndarray:
    """RGB (3,): black to fair, or now and then a hat or cap of any colour."""
    if rng.random() < .2:
        return clothing_color(rng)
    dark = np.array([.06, .05, .05])
    fair = np.array([.68, .5, .3])
    return dark + rng.beta(.8, 1.8) * (fair - dark)


def clothing_color(rng: np.random.Generator) -> np.ndarray:
    """RGB (3,): any hue, from grey to full colour, from dark to light."""
    hue = rng.uniform(0, 360)
    saturation = rng.beta(1.2, 1.6)
    value = rng.uniform(.25, 1)
    pixel = np.array([[[hue, saturation, value]]], np.float32)
    return cv2.cvtColor(pixel, cv2.COLOR_HSV2RGB)[0, 0].astype(np.float64)


def smooth_noise(rng: np.random.Generator, points: np.ndarray, amplitude: float,
                 frequency: float) -> np.ndarray:
    """A factor (N, 1) around 1 that varies slowly over points (N, 3) metres; frequency: waves per metre."""
    wave = rng.normal(0, frequency, (3, 4)).astype(np.float32)
    phase = rng.uniform(0, 6.28, 4).astype(np.float32)
    return 1 + amplitude * np.sin(points @ wave * 6.28 / 2 + phase).mean(1, keepdims=True) * 2


def _choose(rng: np.random.Generator, table: Lengths) -> float:
    value, probability = np.array(table).T
    return rng.choice(value, p=probability / probability.sum()) + rng.normal(0, .04)
