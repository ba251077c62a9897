"""Errors of joints and meshes: pure functions over a batch, in the unit of their input."""
from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from common.utils.transforms import rigid_align


def point_errors(pred: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Distance of each point: pred, target (B, N, 3) -> (B, N)."""
    return length(np.asarray(pred, np.float64) - target)


def length(v: np.ndarray) -> np.ndarray:
    """(..., 3) -> (...): Euclidean length, an axis at a time: three times as fast as numpy.linalg.norm."""
    x, y, z = np.moveaxis(v * v, -1, 0)
    return np.sqrt(x + y + z)


def root_aligned_errors(pred: np.ndarray, target: np.ndarray, pred_root: np.ndarray,
                        target_root: np.ndarray) -> np.ndarray:
    """Distance of each point after both sets are moved to their own root.

    Args:
        pred: (B, N, 3).
        target: (B, N, 3).
        pred_root: (B, 3).
        target_root: (B, 3).
    Returns:
        (B, N); the mean over N is MPJPE (mean per joint position error) for joints, MPVPE for the vertices of a mesh.
    """
    shift = np.asarray(pred_root, np.float64) - target_root
    return length(np.asarray(pred, np.float64) - target - shift[:, None])


def aligned_errors(pred: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Distance of each point after the best similarity (scale, rotation without reflection, translation).

    pred, target: (B, N, 3) -> (B, N); the mean over N is PA-MPJPE (Procrustes-aligned) or PA-MPVPE.
    """
    return point_errors(rigid_align(pred, target), target)


def f_scores(pred: np.ndarray, target: np.ndarray, thresholds: Sequence[float]) -> np.ndarray:
    """F-scores of two point clouds.

    The harmonic mean of precision, the share of predicted points with a target point within a threshold, and recall,
    the share of target points with a predicted point within it.

    Args:
        pred: (B, N, 3).
        target: (B, M, 3).
        thresholds: T, in the unit of the points.
    Returns:
        (B, T) in 0..1.
    """
    scores = np.zeros((len(pred), len(thresholds)))
    for row, (predicted, wanted) in enumerate(zip(pred, target, strict=True)):
        to_target = _nearest(predicted, wanted, max(thresholds))
        to_pred = _nearest(wanted, predicted, max(thresholds))
        for column, threshold in enumerate(thresholds):
            precision = (to_target < threshold).mean()
            recall = (to_pred < threshold).mean()
            if precision + recall > 0:
                scores[row, column] = 2 * precision * recall / (precision + recall)
    return scores


def _nearest(points: np.ndarray, others: np.ndarray, limit: float) -> np.ndarray:
    """(N,) distance of each point (N, 3) from the nearest of the others (M, 3); infinite beyond the limit."""
    return cKDTree(others).query(points, distance_upper_bound=limit)[0]


def auc(errors: np.ndarray, limit: float, steps: int = 100) -> np.ndarray:
    """Area under the curve of correct points (PCK) for thresholds from 0 to `limit`, normalised to 0..1.

    Args:
        errors: (B, N) in the unit of `limit`.
        limit: Largest threshold.
        steps: Number of thresholds.
    Returns:
        (B,), whose mean is the AUC of the whole set.
    """
    thresholds = np.linspace(0, limit, steps)
    correct = (np.asarray(errors)[..., None] <= thresholds).mean(-2)
    return (correct[..., 1:] + correct[..., :-1]).mean(-1) / 2
