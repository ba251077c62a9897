"""Smoothing over time: One-Euro and Gaussian filters for arrays of frames, and for rotations."""
import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.spatial.transform import Rotation

METHODS = ('one_euro', 'gaussian')


def one_euro(values, fps, min_cutoff=1., beta=0.1, derivative_cutoff=1.):
    """The One-Euro filter (Casiez et al., CHI 2012) along the first axis.

    values (T, ...) -> (T, ...). A low-pass filter whose cut-off frequency, `min_cutoff` Hz at rest, rises by `beta`
    Hz per unit of speed (units of `values` per second): steady when still, without lag when moving. Online: a frame
    depends on earlier ones only.
    """
    def weight(cutoff):
        return 1 / (1 + fps / (2 * np.pi * cutoff))

    out = np.array(values, np.float64)
    speed = np.zeros_like(out[0])
    for t in range(1, len(out)):
        speed = speed + weight(derivative_cutoff) * ((out[t] - out[t - 1]) * fps - speed)
        out[t] = out[t - 1] + weight(min_cutoff + beta * np.abs(speed)) * (out[t] - out[t - 1])
    return out


def gaussian(values, fps, seconds=0.08):
    """Gaussian low-pass of standard deviation `seconds` along the first axis; (T, ...) -> (T, ...)."""
    return gaussian_filter1d(np.asarray(values, np.float64), max(seconds * fps, 0.5), axis=0, mode='nearest')


def smooth(values, fps, method):
    """(T, ...) -> (T, ...) by one of METHODS, for values in metres (or of a like size)."""
    return one_euro(values, fps) if method == 'one_euro' else gaussian(values, fps)


def smooth_rotations(rotvecs, fps, method):
    """(T, K, 3) axis-angle -> the same, smoothed: the matrices are filtered, then made rotations again."""
    shape = np.shape(rotvecs)
    matrices = Rotation.from_rotvec(np.reshape(rotvecs, (-1, 3))).as_matrix().reshape(*shape[:2], 3, 3)
    return Rotation.from_matrix(smooth(matrices, fps, method).reshape(-1, 3, 3)).as_rotvec().reshape(shape)


def runs(frames):
    """Increasing frame numbers -> slices of those that follow each other without a gap."""
    cuts = [0, *(np.flatnonzero(np.diff(frames) != 1) + 1), len(frames)]
    return [slice(a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True) if b > a]
