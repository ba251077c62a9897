"""Drawing: what is drawn where, huge images, OBJ text."""
import numpy as np
import pytest

from common.human_model import get_human_model
from common.utils import overlay
from common.utils.render import rasterise

FACES = np.array([[0, 2, 1], [0, 3, 2]])  # a square, seen from the camera


def square(depth, half=0.5, x=0.):
    return np.array([[-half + x, -half, depth], [half + x, -half, depth], [half + x, half, depth],
                     [-half + x, half, depth]])


def test_nearer_mesh_hides_the_farther():
    img = np.zeros((100, 100, 3), np.uint8)
    red, green = (255, 0, 0), (0, 255, 0)
    for order in ((0, 1), (1, 0)):
        meshes, colors = [square(2.), square(3., 1.)], [red, green]
        out = overlay.draw_meshes(img, [meshes[i] for i in order], FACES, (80, 80), (49.5, 49.5),
                              [colors[i] for i in order], alpha=1.)
        assert out[50, 50].argmax() == 0 and out[50, 26].argmax() == 1 and out[50, 10].max() == 0
    assert img.max() == 0  # the image itself is left alone


def test_strips_join_without_a_seam(monkeypatch):
    img = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    whole = overlay.draw_meshes(img, [square(2.)], FACES, (80, 80), (40, 30))
    monkeypatch.setattr(overlay, 'STRIP', 80 * 4 * 7)
    np.testing.assert_array_equal(overlay.draw_meshes(img, [square(2.)], FACES, (80, 80), (40, 30)), whole)
    colors = overlay.shade(square(2.), FACES, overlay.PALETTE[0])
    rgb, coverage = rasterise(square(2.), FACES, colors, (80, 80), (40, 30), img.shape[:2], supersample=2)
    reference = img * (1 - .9 * coverage[..., None]) + rgb * 255 * .9
    assert np.abs(whole - reference).max() <= 1


def test_the_covered_pixels_alone_change():
    model = get_human_model('open_body')
    vertices = model.v_template.numpy() * np.float32([1, -1, -1]) + np.float32([.1, 0, 4])
    img = np.random.default_rng(1).integers(0, 255, (90, 80, 3), dtype=np.uint8)
    out = overlay.draw_meshes(img, [vertices], model.face, (150., 150.), (40., 45.), [(255, 0, 0)], alpha=1.)
    _, coverage = rasterise(vertices, model.face, np.ones_like(vertices), (150., 150.), (40., 45.), (90, 80), 2)
    np.testing.assert_array_equal(out[coverage == 0], img[coverage == 0])
    solid = out[coverage == 1]
    assert len(solid) > 300 and (solid[:, 1:] == 0).all() and solid[:, 0].min() >= 76 and solid[:, 0].max() > 230


def test_no_mesh_and_meshes_out_of_sight():
    img = np.full((20, 30, 3), 7, np.uint8)
    for meshes in ([], [square(-2.)], [square(2., x=100.)], [square(2.) * np.nan]):
        np.testing.assert_array_equal(overlay.draw_meshes(img, meshes, FACES, (50, 50), (15, 10)), img)


def test_silhouette_covers_the_vertices():
    body = get_human_model('open_body')
    mesh = body.v_template.numpy() * [1, -1, -1] + [0, 0, 5]
    img = np.full((400, 300, 3), 255, np.uint8)
    drawn = (overlay.draw_meshes(img, [mesh], body.face, (900, 900), (150, 200)) < 250).any(-1)
    x, y = np.rint(mesh[:, :2] / mesh[:, 2:] * 900 + [150, 200]).astype(int).T
    assert drawn[y, x].mean() >= 0.98


def test_points_skeleton_box():
    img = np.zeros((50, 60, 3), np.uint8)
    out = overlay.draw_points(img, [[10, 20], [np.nan, 3], [1e12, 0]], (9, 8, 7), radius=1)
    assert out[20, 10].tolist() == [9, 8, 7] and (out[:, :, 0] > 0).sum() == 5
    out = overlay.draw_skeleton(img, [[10, 10], [50, 10], [50, 40]], [(0, 1), (1, 2)], thickness=1)
    assert out[10, 30].any() and out[25, 50].any() and not out[40, 10].any()
    out = overlay.draw_box(img, [5, 6, 20, 30], (255, 0, 0), thickness=1)
    assert out[6, 5, 0] == out[36, 25, 0] == 255 and not out[20, 15].any()


def test_side_view_is_turned():
    """A mesh 0.2 m wide, 1 m high and 0.6 m deep fills the height, and from the side is three times as wide."""
    box = np.stack(np.meshgrid([-.1, .1], [-.5, .5], [-.3, .3], indexing='ij'), -1).reshape(-1, 3) + [1, 2, 9]
    faces = np.array([[a, b, c] for a in range(8) for b in range(8) for c in range(8) if a != b != c != a])
    sizes = []
    for yaw in (0, 90):
        drawn = (overlay.render_view(box, faces, (200, 200), yaw) < 250).any(-1)
        sizes.append((np.ptp(np.flatnonzero(drawn.any(1))) + 1, np.ptp(np.flatnonzero(drawn.any(0))) + 1))
    np.testing.assert_allclose(sizes, [(180, 36), (180, 108)], atol=6)


def test_one_scale_from_all_sides():
    """A bar of 1 m x 0.1 m x 0.1 m is long from the front and short from its end, and always as high."""
    bar = np.stack(np.meshgrid([-.5, .5], [-.05, .05], [-.05, .05], indexing='ij'), -1).reshape(-1, 3) + [1, 2, 9]
    faces = np.array([[a, b, c] for a in range(8) for b in range(8) for c in range(8) if a != b != c != a])
    sizes = []
    for yaw in (0, 90):
        drawn = (overlay.render_view(bar, faces, (200, 200), yaw, fits_all_sides=True) < 250).any(-1)
        sizes.append((np.ptp(np.flatnonzero(drawn.any(1))) + 1, np.ptp(np.flatnonzero(drawn.any(0))) + 1))
    np.testing.assert_allclose(sizes, [(18, 170), (18, 18)], atol=6)


def test_panels():
    wide, high = np.zeros((50, 100, 3), np.uint8), np.zeros((300, 100, 3), np.uint8)
    out = overlay.panels([wide, high], ['a', 'b'], height=200)
    assert out.shape == (228, 400 + 6 + 120, 3)


@pytest.mark.parametrize('axes, turned, said', [('y_up', [1, -1, -1], 'y up'), ('camera', [1, 1, 1], 'y down')])
def test_obj_text(axes, turned, said):
    vertices = np.array([[0.1, -2, 3.1234567], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    lines = [line.split() for line in overlay.obj_text(vertices, FACES, axes).splitlines() if not line.startswith('#')]
    read = np.array([[float(x) for x in words[1:]] for words in lines if words[0] == 'v'])
    np.testing.assert_allclose(read, vertices * np.array(turned), atol=5e-7)
    header = overlay.obj_text(vertices, FACES, axes).splitlines()[0]
    assert header.startswith('# metres') and said in header
    assert [[int(x) - 1 for x in words[1:]] for words in lines if words[0] == 'f'] == FACES.tolist()
