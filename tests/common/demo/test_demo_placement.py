"""Depth, focal length and translation of the demo, against cameras and bodies that are known exactly."""
import numpy as np
import pytest

from common.demo.people.placement import check_camera, fit_translation
from common.demo.people.placer import choose_camera, place
from common.demo.people.prediction import BodyParams, Prediction
from common.errors import UserError
from common.utils.transforms import cam2pixel, depth_from_box

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(300, 3)) * [0.25, 0.5, 0.15]
SIZE = (600, 800)


def prediction(focal=1500., root=(0.4, -0.2, 8.), points=POINTS, mirrored=False, noise=0.):
    """What a perfect network says of `points` (root-relative metres) at `root`, for an image of SIZE."""
    pixels = cam2pixel(points + root, (focal, focal), (400, 300))[:, :2]
    mesh_img = np.concatenate([pixels + RNG.normal(size=pixels.shape) * noise, points[:, 2:]], 1)
    low, high = pixels.min(0), pixels.max(0)
    side = 1.25 * (high - low).max()
    crop = np.array([*(low + high - side) / 2, side, side])
    body = BodyParams(np.zeros(72), np.zeros(10), points, np.array([0.01, -0.3, 0.02]))
    return Prediction(np.array([*low, *high - low]), crop, mesh_img, body, mirrored)


def test_fit_finds_the_translation():
    for focal in ((1500, 1500), (700, 900)):
        pixels = cam2pixel(POINTS + [0.4, -0.2, 8], focal, (400, 300))[:, :2]
        np.testing.assert_allclose(fit_translation(POINTS, pixels, focal, (400, 300)), [0.4, -0.2, 8], atol=1e-9)
        np.testing.assert_allclose(fit_translation(POINTS, pixels, focal, (400, 300), depth=8.), [0.4, -0.2, 8],
                                   atol=1e-9)


def test_fit_bears_noise():
    """Vertices 3 % of the body's height off move the depth by 3 % at most."""
    pixels = cam2pixel(POINTS + [0.4, -0.2, 8], (1500, 1500), (400, 300))[:, :2]
    fitted = fit_translation(POINTS, pixels + RNG.normal(size=pixels.shape) * 10, (1500, 1500), (400, 300))
    np.testing.assert_allclose(fitted, [0.4, -0.2, 8], rtol=0.03)


def test_degenerate_input_has_no_fit():
    assert fit_translation(POINTS * 0, np.full((300, 2), 5.), (1500, 1500), (400, 300)) is None
    assert fit_translation(POINTS * np.nan, POINTS[:, :2], (1500, 1500), (400, 300)) is None


@pytest.mark.parametrize('focal', [500, 1500, 5000])
@pytest.mark.parametrize('depth', [None, 4., 11.])
def test_lixel_mesh_keeps_its_pixels(focal, depth):
    """Whatever is said of the camera, the lixel mesh is seen where the network put it."""
    person = prediction(noise=5.)
    camera = choose_camera([person], SIZE, (focal, focal))
    placed = place(person, camera, 2., depth)
    pixels = cam2pixel(placed.lixel_cam, camera.focal, camera.princpt)[:, :2]
    np.testing.assert_allclose(pixels, person.mesh_img[:, :2], atol=0.01)
    assert placed.root_depth == (depth if depth else pytest.approx(8 * focal / 1500, rel=0.1))


@pytest.mark.parametrize('focal', [500, 1500, 5000])
def test_param_mesh_covers_the_box(focal):
    person = prediction()
    camera = choose_camera([person], SIZE, (focal, focal))
    y = cam2pixel(place(person, camera, 2.).param_cam, camera.focal, camera.princpt)[:, 1]
    assert np.ptp(y) == pytest.approx(person.bbox[3], rel=0.05)


@pytest.mark.parametrize('depth', [4., 11.])
def test_given_depth_changes_no_focal_length(depth: float) -> None:
    person = prediction()
    camera = choose_camera([person], SIZE)
    placed = place(person, camera, 2., depth)
    assert camera.focal.tolist() == [1200, 1200] and camera.focal_source.startswith('default: 1.5 times')
    assert placed.depth_source == 'given'
    assert placed.root_depth == placed.trans[2] + person.body.root[2] == depth


def test_two_focal_lengths_and_depths():
    """Twice the focal length is twice the depth, up to perspective."""
    person = prediction()
    near, far = (place(person, choose_camera([person], SIZE, (f, f)), 2.).root_depth for f in (1500, 3000))
    assert far / near == pytest.approx(2, rel=0.05)


def test_without_parametric_mesh_the_box_decides():
    person = prediction()
    person.body = None
    placed = place(person, choose_camera([person], SIZE), 2.)
    assert placed.depth_source == 'box area' and placed.param_cam is None
    assert placed.root_depth == depth_from_box(person.crop_bbox, (1200, 1200), 2.)


def test_failed_fit_falls_back_to_the_box():
    person = prediction()
    person.mesh_img[:, :2] = person.mesh_img[:, :2].mean(0)  # all vertices on one pixel: no depth in them
    placed = place(person, choose_camera([person], SIZE), 2.)
    assert placed.depth_source == 'box area' and np.isfinite(placed.trans).all()


def test_mesh_stays_in_front_of_the_camera():
    """A box much larger than the focal length: the depth by its area would put half the mesh behind the camera."""
    person = prediction()
    person.crop_bbox = np.array([0, 0, 9000, 9000])
    camera = choose_camera([person], SIZE, (300, 300))
    person.body = None
    placed = place(person, camera, 2.)
    assert placed.lixel_cam[:, 2].min() > 0.09 and 'raised' in placed.depth_source


@pytest.mark.parametrize('depth, root_row', [(None, None), (6., None), (6., np.full(300, 1 / 300))])
def test_translation_reproduces_the_mesh(depth: float | None, root_row: np.ndarray | None) -> None:
    model_mesh = POINTS + prediction().body.root  # a body model's mesh has its root joint there
    placed = place(prediction(), choose_camera([prediction()], SIZE), 2., depth, root_row)
    np.testing.assert_allclose(model_mesh + placed.trans, placed.param_cam, atol=1e-6)
    left = prediction(mirrored=True)
    placed = place(left, choose_camera([left], SIZE), 2., depth, root_row)
    mirror = np.array([-1, 1, 1])
    mirrored_mesh = (POINTS * mirror + left.body.root + placed.trans) * mirror
    np.testing.assert_allclose(mirrored_mesh, placed.param_cam, atol=1e-6)


def test_wrong_cameras():
    for wrong in ({'focal': (0, 5)}, {'focal': (np.nan, 5)}, {'princpt': (np.inf, 0)}, {'root_depth': 0.5},
                  {'root_depth': -3}, {'root_depth': np.nan}, {'root_depth': 1e300}, {'focal': (1e308, 1e308)},
                  {'focal': (1e-9, 1e-9)}, {'princpt': (1e30, 0)}):
        with pytest.raises(UserError, match='must be'):
            check_camera(**{'focal': None, 'princpt': None, 'root_depth': None, 'box_size_m': 2.} | wrong)
