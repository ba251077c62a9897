"""Errors of joints and meshes: known values and invariances."""
import numpy as np
import pytest

from common import metrics
from tests.data_tools import rotation


def points(seed=0, batch=4, count=14):
    return np.random.default_rng(seed).normal(size=(batch, count, 3))


def test_mpjpe_is_the_mean_distance_after_both_roots_are_at_the_origin():
    target = points()
    pred = target + (5, -3, 2)
    pred[0, 3] += (3, 4, 0)
    errors = metrics.root_aligned_errors(pred, target, pred[:, 0], target[:, 0])
    assert errors.shape == (4, 14) and errors[0, 3] == pytest.approx(5)
    assert errors.mean(1) == pytest.approx([5 / 14, 0, 0, 0])


def test_aligned_error_ignores_similarities_but_not_mirrors():
    pred = points(1)
    target = np.stack([s * x @ rotation([.3 * s, 1, 2]).T + s for s, x in enumerate(pred, 1)])
    assert metrics.aligned_errors(pred, target).max() * 1000 < 1e-6
    assert (metrics.aligned_errors(pred * (1, -1, 1), target).mean(1) > .1).all()


@pytest.mark.parametrize('point', [(0., 0, 0), (1., 1, 1), (1., 0, 0)])
def test_degenerate_predictions_have_finite_errors(point):
    pred = np.tile(point, (1, 14, 1))
    assert np.isfinite(metrics.aligned_errors(pred, points(batch=1))).all()
    assert np.isfinite(metrics.aligned_errors(points(batch=1), pred)).all()


def test_batches_do_not_change_the_result():
    pred, target = points(2), points(3)
    one_by_one = [metrics.aligned_errors(p[None], t[None])[0] for p, t in zip(pred, target, strict=True)]
    np.testing.assert_allclose(metrics.aligned_errors(pred, target), one_by_one)


def test_f_scores():
    target = np.arange(10.)[None, :, None] * (1, 0, 0)
    assert metrics.f_scores(target, target, [.01]) == 1
    assert metrics.f_scores(target + 100, target, [.01]) == 0
    half = target.copy()
    half[:, 5:] += (0, 10, 0)  # half of the predictions are right, half of the targets are found
    assert metrics.f_scores(half, target, [.01, 20.]).tolist() == [[.5, 1.]]
    few = target[:, :5]        # precision 1, recall 1/2
    assert metrics.f_scores(few, target, [.01]) == pytest.approx(2 / 3)


def test_area_under_the_curve():
    assert metrics.auc(np.zeros((2, 5)), 50.) == pytest.approx([1, 1])
    assert metrics.auc(np.full((1, 5), 100.), 50.) == pytest.approx(0)
    assert metrics.auc(np.full((1, 5), 25.), 50., steps=10001) == pytest.approx(.5, abs=1e-3)
