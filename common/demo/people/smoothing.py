"""Smoothing over time without lag: still people are steadied, what moves stays where it is."""
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solveh_banded
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

STRONG = 0.6  # Hz; faster changes are taken for noise, unless there is more of them than noise makes
WEAK = 4.  # Hz; faster changes always are
NOISE_MARGIN = 2.5  # times the median power of the noise counts as noise: its power varies
POWER_SECONDS = 0.12  # over which the power of a motion is measured
SHORTEST_STEP = 0.1  # parts of the median step; frames that are nearer count as so far apart


def smooth(values: ArrayLike, times: ArrayLike) -> np.ndarray:
    """Smooth points over time.

    Two smoothing splines are fitted to all frames, before and after: a strong and a weak one. The strong one is right
    for whoever stands still or moves evenly, which both leave as it is. What it takes away from the weak one is given
    back where there is more of it than noise makes (empirical Wiener filter, per point), so that waving hands, steps
    and jumps keep their size. The noise is what the weak one takes away from the values.

    Args:
        values: (T, ..., C) points of C coordinates in one unit.
        times: (T,) seconds, increasing.
    Returns:
        (T, ..., C) float64.
    """
    values = np.asarray(values, np.float64)
    if len(values) < 3:
        return values
    steps = np.diff(np.asarray(times, np.float64))
    step = float(np.median(steps))
    steps = np.maximum(steps, SHORTEST_STEP * step)
    strong = spline(values, steps, STRONG)
    weak = spline(values, steps, WEAK)
    noise = np.median(_power(values - weak), axis=0)
    of_noise = NOISE_MARGIN * noise * _noise_ratio(step)
    taken = weak - strong
    power = gaussian_filter1d(_power(taken), POWER_SECONDS / step, axis=0, mode='nearest')
    motion = np.clip(1 - of_noise / np.maximum(power, 1e-30), 0, 1)
    return strong + motion * taken


def spline(values: np.ndarray, steps: np.ndarray, cutoff: float) -> np.ndarray:
    """The discrete smoothing spline (Whittaker 1923): no lag, and straight lines stay as they are, to their ends.

    It minimises the squared distance to the values plus a weight times the squared second derivative.

    Args:
        values: (T, ...), at least 3.
        steps: (T - 1,) seconds between them, positive.
        cutoff: Hz; sine waves of this frequency are halved.
    Returns:
        (T, ...) float64.
    """
    count = len(values)
    before = steps[:-1]
    after = steps[1:]
    span = (before + after) / 2
    second = np.stack([1 / (before * span), -1 / before / span - 1 / after / span, 1 / (after * span)])  # derivative
    weight = (2 * np.pi * cutoff) ** -4 * span / np.median(steps)
    bands = np.zeros((3, count))  # the upper part of the symmetric matrix I + D' W D, its diagonal last
    bands[2] = 1
    for row in range(3):
        for column in range(row, 3):
            bands[2 - column + row, column:count - 2 + column] += weight * second[row] * second[column]
    return solveh_banded(bands, values.reshape(count, -1)).reshape(values.shape)


def _power(values: np.ndarray) -> np.ndarray:
    """(..., C) -> (..., 1) squared length."""
    return (values ** 2).sum(-1, keepdims=True)


def _noise_ratio(step: float) -> float:
    """Of white noise: the power between the two splines, per power of what the weak one takes away.

    Args:
        step: seconds between frames.
    """
    swing = (2 * np.sin(np.linspace(0, np.pi, 1000) / 2) / step) ** 4  # of the second derivative, by frequency
    strong = 1 / (1 + (2 * np.pi * STRONG) ** -4 * swing)
    weak = 1 / (1 + (2 * np.pi * WEAK) ** -4 * swing)
    return float(((weak - strong) ** 2).mean() / ((1 - weak) ** 2).mean())


def smooth_rotations(rotvecs: np.ndarray, times: ArrayLike) -> np.ndarray:
    """(T, K, 3) axis-angle -> the same, smoothed: the matrices are smoothed, then made rotations again."""
    matrices = Rotation.from_rotvec(rotvecs.reshape(-1, 3)).as_matrix()
    smoothed = smooth(matrices.reshape(*rotvecs.shape[:2], 9), times)
    return Rotation.from_matrix(smoothed.reshape(-1, 3, 3)).as_rotvec().reshape(rotvecs.shape)


def runs(frames: Sequence[int]) -> list[slice]:
    """Increasing frame numbers -> slices of those that follow each other without a gap."""
    if not len(frames):
        return []
    starts = [0, *(np.flatnonzero(np.diff(frames) != 1) + 1).tolist()]
    ends = [*starts[1:], len(frames)]
    return [slice(start, end) for start, end in zip(starts, ends, strict=True)]
