"""Smoothing over time: One-Euro and Gaussian filters for arrays of frames, and for rotations."""
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation


def one_euro(values: ArrayLike, fps: float, min_cutoff: float = 1., beta: float = 0.1,
             derivative_cutoff: float = 1.) -> np.ndarray:
    """The One-Euro filter (Casiez et al., CHI 2012) along the first axis.

    A low-pass filter whose cut-off frequency rises with the speed: steady when still, without lag when moving. Causal:
    a frame depends on earlier ones only.

    Args:
        values: (T, ...).
        fps: frames per second.
        min_cutoff: cut-off frequency at rest, Hz.
        beta: rise of the cut-off frequency per unit of speed, Hz / (unit of `values` / s).
        derivative_cutoff: cut-off frequency of the filter for the speed, Hz.
    Returns:
        (T, ...) float64.
    """
    def weight(cutoff: float | np.ndarray) -> float | np.ndarray:
        return 1 / (1 + fps / (2 * np.pi * cutoff))

    out = np.array(values, np.float64)
    speed = np.zeros_like(out[0])
    for t in range(1, len(out)):
        step = out[t] - out[t - 1]
        speed = speed + weight(derivative_cutoff) * (step * fps - speed)
        out[t] = out[t - 1] + weight(min_cutoff + beta * np.abs(speed)) * step
    return out


def gaussian(values: ArrayLike, fps: float, seconds: float = 0.08) -> np.ndarray:
    """Gaussian low-pass of standard deviation `seconds` along the first axis: (T, ...) -> (T, ...)."""
    frames = max(seconds * fps, 0.5)
    return gaussian_filter1d(np.asarray(values, np.float64), frames, axis=0, mode='nearest')


FILTERS: dict[str, Callable[..., np.ndarray]] = {'one_euro': one_euro, 'gaussian': gaussian}
METHODS = tuple(FILTERS)


def smooth(values: ArrayLike, fps: float, method: str) -> np.ndarray:
    """(T, ...) -> (T, ...) by one of METHODS, for values in metres (or of a like size)."""
    return FILTERS[method](values, fps)


def smooth_rotations(rotvecs: np.ndarray, fps: float, method: str) -> np.ndarray:
    """(T, K, 3) axis-angle -> the same, smoothed: the matrices are filtered, then made rotations again."""
    matrices = Rotation.from_rotvec(rotvecs.reshape(-1, 3)).as_matrix()
    smoothed = smooth(matrices.reshape(*rotvecs.shape, 3), fps, method)
    return Rotation.from_matrix(smoothed.reshape(-1, 3, 3)).as_rotvec().reshape(rotvecs.shape)


def runs(frames: Sequence[int]) -> list[slice]:
    """Increasing frame numbers -> slices of those that follow each other without a gap."""
    if not len(frames):
        return []
    starts = [0, *(np.flatnonzero(np.diff(frames) != 1) + 1).tolist()]
    ends = [*starts[1:], len(frames)]
    return [slice(start, end) for start, end in zip(starts, ends, strict=True)]
