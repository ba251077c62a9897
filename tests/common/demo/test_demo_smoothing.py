"""Smoothing of videos: noise falls, and what moves stays where it is."""
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from common.demo.people.smoothing import WEAK, runs, smooth, smooth_rotations, spline
from tool.bench.smoothing import measure

RNG = np.random.default_rng(0)
TIMES = np.arange(90) / 25
FLIGHT = np.clip(TIMES % 1.2 - 0.3, 0, 0.6)  # seconds since a jump


def acceleration(values: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(values, 2, axis=0), axis=-1).mean())


@pytest.fixture(scope='module')
def measured() -> dict:
    return measure(('still, person', 'still, vertices', '2 px per frame', '10 px per frame'))


@pytest.mark.timeout(300)
@pytest.mark.parametrize('scene', ['2 px per frame', '10 px per frame'])
@pytest.mark.parametrize('kind', ['lixel', 'param'])
def test_overlays_of_moving_people_stay(measured: dict, scene: str, kind: str) -> None:
    moved, _, _ = measured[scene][kind]
    assert moved < 0.5


@pytest.mark.parametrize('scene', ['still, person', 'still, vertices'])
@pytest.mark.parametrize('kind', ['lixel', 'param'])
def test_jitter_of_still_people_falls(measured: dict, scene: str, kind: str) -> None:
    _, jitter, steps = measured[scene][kind]
    assert jitter > 0.7 and steps > 0.7


def test_noise_of_still_points_falls() -> None:
    still = np.array([0.3, -1, 4]) + RNG.normal(size=(90, 20, 3)) * 0.01
    out = smooth(still, TIMES)
    assert out.shape == still.shape
    assert acceleration(out) < 0.1 * acceleration(still)
    assert out.std(0).mean() < 0.3 * still.std(0).mean()
    np.testing.assert_allclose(out[20:].mean((0, 1)), [0.3, -1, 4], atol=0.003)


@pytest.mark.parametrize('path', [0.3 * np.sin(3 * np.pi * TIMES), 3 * FLIGHT - 5 * FLIGHT ** 2,
                                  np.clip(TIMES - 1, 0, 1)], ids=['waving', 'jumping', 'start and stop'])
def test_motion_keeps_its_size(path: np.ndarray) -> None:
    """Smoothed noisy motions are nearer to the truth than before, however fast."""
    truth = path[:, None, None] * [0., 1, 0]
    noisy = truth + RNG.normal(size=(90, 200, 3)) * 0.01
    error = np.square(smooth(noisy, TIMES) - truth).mean()
    assert error < 0.6 * np.square(noisy - truth).mean()


@pytest.mark.parametrize('count', [1, 2, 3, 4, 50])
def test_straight_motion_stays_to_the_ends(count: int) -> None:
    """At uneven times, too."""
    times = np.cumsum(RNG.uniform(0.02, 0.1, count))
    line = times[:, None] * [1., -7, 0] + 3
    np.testing.assert_allclose(smooth(line, times), line, atol=1e-9)


def test_frames_at_almost_the_same_time() -> None:
    times = np.sort(np.append(TIMES, TIMES[40] + 1e-6))
    values = 1000 + RNG.normal(size=(91, 2))
    out = smooth(values, times)
    assert np.abs(out - 1000).max() < 2


def test_cutoff_is_in_hertz_at_any_rate() -> None:
    for fps in (30, 120):
        times = np.arange(4 * fps) / fps
        out = spline(np.cos(2 * np.pi * WEAK * times), np.diff(times), WEAK)
        assert np.abs(out[fps:-fps]).max() == pytest.approx(0.5, abs=0.05)


def test_rotations_near_half_a_turn() -> None:
    """Axis-angle vectors jump between +pi and -pi there; the rotations, and what comes out, do not."""
    noisy = Rotation.from_rotvec([0, np.pi, 0]) * Rotation.from_rotvec(RNG.normal(size=(90, 3)) * 0.05)
    assert np.abs(np.diff(noisy.as_rotvec(), axis=0)).max() > 6
    out = Rotation.from_rotvec(smooth_rotations(noisy.as_rotvec()[:, None], TIMES)[:, 0])
    off = (Rotation.from_rotvec([0, -np.pi, 0]) * out).magnitude()
    assert off.max() < 0.15
    assert acceleration(out.as_matrix()) < 0.1 * acceleration(noisy.as_matrix())


def test_runs() -> None:
    assert runs([3, 4, 5, 8, 9, 20]) == [slice(0, 3), slice(3, 5), slice(5, 6)]
    assert runs([]) == []
