"""People are followed through a video from their boxes in the first frame, and told when they are lost."""
import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from common.demo.people.following import Follower, colors_at, likeness
from common.demo.people.prediction import Prediction
from common.demo.people.predictor import BoxPredictor
from common.human_model import get_human_model
from main.config import cfg
from main.demo import SNAPSHOT, main
from main.predictor import load_predictor
from tests.moving_clips import Walker, draw_clip, overlap

FRAMES = 60
SIZE = (300, 400)
STAYS = {'across': Walker(3, (60, 150), (5, 0)), 'nearer': Walker(1, (200, 150), (0.5, 0), 100, 1.012),
         'away': Walker(5, (300, 180), (-3, -0.5), 150, 0.99)}


@pytest.fixture(scope='module')
def predictor() -> BoxPredictor:
    cfg.load('nano')
    return load_predictor(cfg, SNAPSHOT)


def follow(predictor: BoxPredictor, images: list[np.ndarray], first: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    """Where each person was looked for in each frame (T, N, 4), and who was there."""
    follower = Follower(list(first.astype(np.float32)))
    boxes = []
    there = []
    for image in images:
        boxes.append(np.stack(follower.boxes))
        there.append(follower.update(image, predictor.predict(image, follower.boxes)))
    return np.stack(boxes), there


@pytest.mark.timeout(300)
@pytest.mark.parametrize('walker', STAYS.values(), ids=STAYS)
def test_the_box_stays_on_the_person(predictor: BoxPredictor, walker: Walker) -> None:
    images, truth = draw_clip(predictor.human_model, [walker], FRAMES, SIZE)
    boxes, there = follow(predictor, images, truth[0])
    overlaps = [overlap(box[0], true[0]) for box, true in zip(boxes, truth, strict=True)]
    assert len(overlaps) == 60 and min(overlaps) > 0.5
    assert there == [[0]] * 60


@pytest.mark.timeout(300)
def test_who_leaves_is_lost_and_who_stays_is_not(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The whole demo, with two people: one leaves to the right, whose box stays where they were seen last."""
    walkers = [Walker(2, (250, 150), (6, 0)), Walker(4, (60, 150), (1, 0))]
    images, truth = draw_clip(get_human_model('open_body'), walkers, FRAMES, SIZE)
    path = tmp_path / 'clip.avi'
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'MJPG'), 25, SIZE[::-1])
    for image in images:
        writer.write(image[..., ::-1])
    writer.release()
    boxes = []
    for box in truth[0]:
        boxes += ['--bbox', *(f'{number:.1f}' for number in box)]
    assert main(['--gpu', 'cpu', '--stage', 'lixel', '--output', str(tmp_path / 'out'), '--input', str(path),
                 *boxes]) == 0
    record = json.loads((tmp_path / 'out' / 'clip' / 'result.json').read_text())
    lost = record['frames_lost']
    gone = [frame for frame in range(FRAMES) if truth[frame, 0, 0] > SIZE[1]]
    in_sight = [frame for frame in range(FRAMES) if truth[frame, 0, :3:2].sum() <= SIZE[1]]
    assert list(lost) == ['0'] and len(gone) > 15 and len(in_sight) > 15
    assert set(gone) <= set(lost['0']) and not set(in_sight) & set(lost['0'])
    assert record['frames_without_people'] == []
    for frame in record['frames']:
        expected = [1] if frame['frame'] in lost['0'] else [0, 1]
        assert [person['id'] for person in frame['people']] == expected
        stays = frame['people'][-1]
        assert overlap(np.array(stays['bbox']), truth[frame['frame'], 1]) > 0.5
    said = capsys.readouterr().out
    assert (f'clip.avi: person 0 was lost in {len(lost["0"])} of 60 frames, the first is {lost["0"][0]}; they have no '
            'mesh there') in said
    assert 'person 1 was lost' not in said and '--every_frame' in said


def _mesh(x: float, y: float, w: float, h: float) -> Prediction:
    rng = np.random.default_rng(0)
    mesh = rng.uniform(0, 1, (500, 3)) * [w, h, 0] + [x, y, 0]
    box = np.zeros(4, np.float32)
    return Prediction(box, box, mesh.astype(np.float32))


def _image(red_from: int) -> np.ndarray:
    """Green, with a red person of 30 x 60 pixels."""
    image = np.zeros((100, 200, 3), np.uint8)
    image[..., 1] = 200
    image[20:80, red_from:red_from + 30] = (200, 0, 0)
    return image


@pytest.mark.parametrize('image, mesh', [
    (_image(52), _mesh(110, 20, 30, 60)), (_image(100), _mesh(50, 20, 30, 60)), (_image(52), _mesh(60, 40, 0, 0)),
    (_image(52), _mesh(50, -55, 30, 60))], ids=['jumped', 'gone', 'point', 'outside'])
def test_lost_and_found_again(image: np.ndarray, mesh: Prediction) -> None:
    """Whoever is lost keeps their box, and is found there again."""
    follower = Follower([np.array([50, 20, 30, 60])])
    assert follower.update(_image(50), [_mesh(50, 20, 30, 60)]) == [0]
    box = follower.boxes[0]
    np.testing.assert_allclose(box, [50, 20, 30, 60], atol=1)
    for _ in range(30):
        assert follower.update(image, [mesh]) == []
    np.testing.assert_array_equal(follower.boxes[0], box)
    assert follower.update(_image(55), [_mesh(55, 20, 30, 60)]) == [0]
    np.testing.assert_allclose(follower.boxes[0], [55, 20, 30, 60], atol=1)


def test_two_people_are_not_one() -> None:
    """When somebody passes in front, the one behind is lost: not followed on with the other's mesh."""
    follower = Follower([np.array([50, 20, 30, 60]), np.array([120, 20, 30, 60])])
    there = []
    for frame in range(12):
        image = _image(50 + 6 * frame)
        image[20:80, 120:150] = (0, 0, 200)
        image[20:80, 50 + 6 * frame:80 + 6 * frame] = (200, 0, 0)
        behind = 120
        if frame > 9:  # the network sees the one in front
            behind = 50 + 6 * frame
        there.append(follower.update(image, [_mesh(50 + 6 * frame, 20, 30, 60), _mesh(behind, 20, 30, 60)]))
    assert there == [[0, 1]] * 10 + [[0]] * 2
    np.testing.assert_allclose(follower.boxes[0][0], 50 + 6 * 12, atol=1)  # looked for where they will be


def test_colors() -> None:
    image = _image(50)
    red = colors_at(image, np.array([[60., 40], [70, 50], [-5, 3], [500, 3]]))
    green = colors_at(image, np.array([[0., 0], [199.4, 99.4]]))
    assert red.sum() == pytest.approx(1) and likeness(red, red) == pytest.approx(1) and likeness(red, green) < 0.05
    outside = colors_at(image, np.array([[-5., 3]]))
    assert outside.sum() == 0 and likeness(outside, red) == 0
