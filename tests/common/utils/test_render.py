"""The rasteriser: exact pixels, comparison with an independent one, and input it has to survive."""
import numpy as np
import pytest

from common.human_model import get_human_model
from common.utils import render
from tests.common.utils.numpy_zbuffer import zbuffer

TRIANGLE = np.float32([[-1, -1, 4], [1, -1, 4], [-1, 1, 4]])
ONE_FACE = np.array([[0, 1, 2]])
WHITE = np.ones((3, 3), np.float32)


@pytest.fixture(scope='module')
def body():
    """Vertices (V, 3) metres in camera space, faces and colours of the embedded body seen from the front."""
    model = get_human_model('open_body')
    vertices = model.v_template.numpy() * np.float32([1, -1, -1]) + np.float32([.1, 0, 4])
    return vertices, model.face, np.random.default_rng(0).random(vertices.shape).astype(np.float32)


def test_opencv_and_numpy_draw_the_same(body):
    vertices, faces, colors = body
    faces = np.ascontiguousarray(faces, np.int32)
    camera = (np.array([300., 310.]), np.array([80., 85.]), (170, 160))
    rgb, depth = render._zbuffer(vertices, faces, colors, *camera)
    expected_rgb, expected_depth = zbuffer(vertices, faces, colors, *camera)
    seen = np.isfinite(expected_depth)
    assert seen.sum() > 2000
    assert (np.isfinite(depth) != seen).sum() <= 2
    both = seen & np.isfinite(depth)
    np.testing.assert_allclose(depth[both], expected_depth[both], atol=1e-5)
    assert np.quantile(np.abs(rgb - expected_rgb)[both], .999) < 1e-3


@pytest.mark.parametrize('fy', [20., 25.])
def test_pixel_centres_are_integers(fy):
    """A pixel is covered if its integer coordinate lies in the projected triangle."""
    _, coverage = render.rasterise(TRIANGLE, ONE_FACE, WHITE, (20., fy), (10.3, 11.6), (24, 22))
    y, x = np.mgrid[:24, :22]
    u, v = (x - 10.3) / 20 * 4, (y - 11.6) / fy * 4
    np.testing.assert_array_equal(coverage > 0, (u >= -1) & (v >= -1) & (u + v <= 0))


def test_nearer_surface_wins_and_colors_are_interpolated():
    far = TRIANGLE * np.float32([3, 3, 1.5])
    vertices = np.concatenate([far, TRIANGLE])
    colors = np.concatenate([np.zeros((3, 3)), np.eye(3)]).astype(np.float32)
    rgb, coverage = render.rasterise(vertices, [[0, 1, 2], [3, 4, 5]], colors, (40., 40.), (20., 20.), (40, 40))
    assert coverage[14, 14] == 1
    np.testing.assert_allclose(rgb[14, 14], [.6, .2, .2], atol=1e-5)  # at (-0.6, -0.6) of the near triangle
    assert rgb[8, 8].sum() == 0 and coverage[8, 8] == 1  # only the black one behind


def test_supersampling_gives_the_covered_area(body):
    vertices, faces, colors = body
    camera = ((250., 250.), (70., 80.), (150, 140))
    fine = render.rasterise(vertices, faces, colors, *camera, supersample=4)[1]
    coarse = render.rasterise(vertices, faces, colors, *camera)[1]
    assert 0 < fine[(fine > 0) & (fine < 1)].size
    assert abs(fine.sum() - coarse.sum()) / fine.sum() < .01


def test_box_cut_by_the_border_equals_the_full_image(body):
    vertices, faces, colors = body
    whole = render.rasterise(vertices, faces, colors, (300., 300.), (100., 120.), (240, 200))[0]
    part = render.rasterise(vertices, faces, colors, (300., 300.), (40., 50.), (100, 90))[0]
    same = np.abs(whole[70:170, 60:150] - part).max(-1) < 1e-3
    assert same.mean() > .999


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf, 0., -3., 1e30])
def test_broken_vertices_are_left_out(body, bad):
    vertices, faces, colors = body
    vertices = vertices.copy()
    vertices[100:200, 2] = bad
    rgb, coverage = render.rasterise(vertices, faces, colors, (100., 100.), (30., 40.), (80, 60))
    assert np.isfinite(rgb).all() and coverage.max() == 1


@pytest.mark.parametrize('shift', [(0, 0, -10), (100, 0, 0), (np.nan, 0, 0)])
def test_nothing_to_see(body, shift):
    vertices, faces, colors = body
    rgb, coverage = render.rasterise(vertices + np.float32(shift), faces, colors, (100., 100.), (30., 40.), (80, 60))
    assert rgb.max() == 0 and coverage.max() == 0


def test_vertices_far_off_screen_and_close_to_the_camera(body):
    vertices, faces, colors = body
    for moved in (vertices * np.float32([1e5, 1e5, 1]), vertices - np.float32([0, 0, 4])):
        rgb, _ = render.rasterise(moved, faces, colors, (50., 50.), (20., 20.), (40, 40))
        assert np.isfinite(rgb).all()


@pytest.mark.parametrize('faces', [[[0, 1, 3]], [[0, 1, -1]], [[0, 1, 99999]], [[0, 1]]])
def test_face_indices_are_checked(faces):
    with pytest.raises(ValueError, match='faces must|face indices'):
        render.rasterise(TRIANGLE, faces, WHITE, (20., 20.), (10., 10.), (20, 20))


def test_vertex_normals_of_a_sphere_point_outwards():
    phi, theta = np.meshgrid(np.linspace(0, 2 * np.pi, 41), np.linspace(.01, np.pi - .01, 21), indexing='ij')
    points = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1).reshape(-1, 3)
    grid = np.arange(41 * 21).reshape(41, 21)
    a, b, c, d = (grid[i:i + 40, j:j + 20].ravel() for i, j in ((0, 0), (1, 0), (1, 1), (0, 1)))
    faces = np.concatenate([np.stack([a, d, b], 1), np.stack([d, c, b], 1)])
    normals = render.vertex_normals(points, faces).reshape(41, 21, 3)[1:-1, 1:-1]
    assert ((normals * points.reshape(41, 21, 3)[1:-1, 1:-1]).sum(-1) > .99).all()
