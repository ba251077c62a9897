"""The network on people of images: order, batches, left hands; all with a very small random network."""
from pathlib import Path

import numpy as np
import pytest

from common.demo.inputs.sources import InputImage
from common.errors import UserError
from main.config import cfg
from main.predictor import load_predictor
from tests.demo_tools import blobs, write_snapshot

BOXES = [np.float32([20 + 9 * i, 30, 60, 120]) for i in range(5)]


@pytest.fixture(scope='module')
def body(tmp_path_factory):
    return write_snapshot(tmp_path_factory.mktemp('body') / 'tiny.pth.tar')


@pytest.fixture(scope='module')
def hand(tmp_path_factory):
    return write_snapshot(tmp_path_factory.mktemp('hand') / 'tiny.pth.tar', 'body_model=open_hand')


def load(path, stage=None, left=False, **overrides):
    cfg.load('nano')
    predictor = load_predictor(cfg, path, stage, left)
    for name, value in overrides.items():
        setattr(predictor, name, value)
    return predictor


def test_batches_do_not_change_the_answer(body):
    image = blobs(240, 180)
    together, apart = load(body, batch_size=4), load(body, batch_size=1)
    both = zip(together.predict(image, BOXES), (apart.predict(image, [box])[0] for box in BOXES), strict=True)
    meshes = []
    for one, other in both:
        np.testing.assert_allclose(one.mesh_img, other.mesh_img, atol=0.02)
        for name, tolerance in (('mesh_cam', 1e-4), ('pose', 1e-3), ('betas', 1e-4)):
            np.testing.assert_allclose(getattr(one.body, name), getattr(other.body, name), atol=tolerance)
        meshes.append(one.mesh_img)
    assert np.abs(meshes[0] - meshes[4]).max() > 1  # other boxes, other answers


def test_a_crowd_goes_through_in_batches(body):
    """20 people of one image, 8 at a time: 3 passes, not 20."""
    predictor = load(body, batch_size=8)
    passes = []
    predictor.model.register_forward_pre_hook(lambda _, inputs: passes.append(len(inputs[0]['img'])))
    boxes = [np.float32([5 * i, 30, 60, 120]) for i in range(20)]
    assert len(predictor.predict(blobs(240, 180), boxes)) == 20
    assert passes == [8, 8, 4]


def test_stream_keeps_the_order_across_images(body):
    predictor = load(body, batch_size=3)
    images = [InputImage(Path('x'), blobs(240, 180, seed), BOXES[:count]) for seed, count in enumerate((2, 0, 4, 1))]
    batches = []
    run = predictor.run
    predictor.run = lambda patches: (batches.append(len(patches)), run(patches))[1]
    found = list(predictor.stream(images))
    assert [image is given for (image, _), given in zip(found, images, strict=True)] == [True] * 4
    assert [len(people) for _, people in found] == [2, 0, 4, 1]
    assert sum(batches) == 7 and max(batches) == 3 and len(batches) == 3
    for image, people in found:
        for box, person in zip(image.boxes, people, strict=True):
            np.testing.assert_allclose(person.mesh_img, predictor.predict(image.image, [box])[0].mesh_img, atol=0.02)


def test_lixel_stage_has_no_parameters(body):
    person = load(body, stage='lixel').predict(blobs(240, 180), BOXES[:1])[0]
    assert person.body is None
    assert person.mesh_img.shape == (6890, 3)


def test_vertices_lie_in_the_crop(body):
    """x and y in pixels of the image, inside the enlarged box; depths within the 2 m cube around the person."""
    person = load(body).predict(blobs(240, 180), BOXES[:1])[0]
    x, y, w, h = person.crop_bbox
    np.testing.assert_allclose([w, h], 1.25 * 119, rtol=1e-5)
    assert (person.mesh_img[:, 0] >= x - 1).all() and (person.mesh_img[:, 0] <= x + w).all()
    assert (person.mesh_img[:, 1] >= y - 1).all() and (person.mesh_img[:, 1] <= y + h).all()
    assert np.abs(person.mesh_img[:, 2]).max() <= 1


def test_left_hand_is_the_mirrored_right_hand(hand):
    image = blobs(100, 130)
    box = np.float32([20, 10, 70, 80])
    mirrored_box = np.float32([130 - 20 - 70, 10, 70, 80])
    right = load(hand).predict(np.ascontiguousarray(image[:, ::-1]), [mirrored_box])[0]
    left_predictor = load(hand, left=True)
    left = left_predictor.predict(image, [box])[0]
    np.testing.assert_allclose(left.mesh_img, right.mesh_img * [-1, 1, 1] + [129, 0, 0], atol=1e-4)
    np.testing.assert_allclose(left.body.mesh_cam, right.body.mesh_cam * [-1, 1, 1], atol=1e-6)
    np.testing.assert_allclose(left.crop_bbox, [*(130 - right.crop_bbox[:1] - right.crop_bbox[2:3]),
                                                *right.crop_bbox[1:]], atol=1e-4)
    np.testing.assert_array_equal(left.body.pose, right.body.pose)

    def volume(mesh, faces):  # signed: positive if the faces look outwards
        a, b, c = (mesh[faces[:, i]].astype(np.float64) for i in range(3))
        return (np.cross(a, b) * c).sum() / 6

    rest = left_predictor.human_model.v_template.numpy()
    outward = volume(rest, left_predictor.human_model.face)
    assert outward > 0
    assert volume(rest * [-1, 1, 1], left_predictor.faces) == pytest.approx(outward)


def test_complaints(body, hand):
    with pytest.raises(UserError, match='--left is for hands'):
        load(body, left=True)
    cfg.load('nano')
    cfg.override(['body_model=open_hand'])
    with pytest.raises(UserError, match='trained with the body model open_body, not open_hand'):
        load_predictor(cfg, body)
    predictor = load(body)
    next(predictor.model.parameters()).data.fill_(np.nan)
    with pytest.raises(UserError, match='not finite'):
        predictor.predict(blobs(240, 180), BOXES[:1])
