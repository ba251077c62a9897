"""What the demo says of networks: that the bundled ones know drawings only, and how sure a network is."""
import json
import logging
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from common.demo.outputs.record import UNSURE
from common.demo.people.predictor import BoxPredictor
from common.nets.lixel import confidence
from common.snapshot.meta import has_trained_maps, trained_on
from common.utils.overlay import confidence_color
from data.Synthetic.generator import Generator
from main.config import Config
from main.demo import HAND_SAMPLES, HAND_SNAPSHOT, SAMPLES, SNAPSHOT, main
from main.predictor import load_predictor
from tests.demo_tools import write_snapshot, write_video

COUNT = 16
DRAWN = {'bodies': 'knows drawn people only', 'hands': 'knows drawn hands only'}


def records(folder: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob('*/result.json'))]


def run(tmp_path: Path, *words: object) -> list[dict]:
    """Run the demo; the records that it writes."""
    assert main(['--gpu', 'cpu', '--output', str(tmp_path / 'out'), '--stage', 'lixel', *map(str, words)]) == 0
    return records(tmp_path / 'out')


def log_prob(probabilities: list[float]) -> torch.Tensor:
    return torch.tensor(probabilities).clamp(1e-30).log()[None, :, None]


def test_confidence_is_the_entropy_between_flat_and_gaussian() -> None:
    bins = torch.arange(64.)
    gaussian = torch.softmax(-((bins - 30) / 2.5) ** 2 / 2, 0).tolist()
    flat = [1 / 64] * 64
    point = torch.softmax(-((bins - 30) / 0.2) ** 2 / 2, 0).tolist()
    z = log_prob(flat)  # does not count
    found = []
    for x, y in ((gaussian, gaussian), (flat, flat), (gaussian, flat), (point, point)):
        found.append(float(confidence([log_prob(x), log_prob(y), z], 2.5)))
    np.testing.assert_allclose(found, [1, 0, 0.5, 1], atol=1e-3)
    two = (np.array(gaussian) + np.roll(gaussian, 20)) / 2  # two places: the expected bin is at neither
    assert float(confidence([log_prob(two.tolist())] * 3, 2.5)) == pytest.approx(1 - np.log(2) / (
        np.log(64) - np.log(2.5 * np.sqrt(2 * np.pi * np.e))), abs=1e-2)


@pytest.mark.parametrize('kind, words, folder', [
    ('bodies', [], SAMPLES), ('hands', ['--cfg', 'nano_hand'], HAND_SAMPLES)])
def test_bundled_networks_warn_of_own_images_once(tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str,
                                                  words: list[str], folder: Path) -> None:
    with caplog.at_level(logging.WARNING):
        own = run(tmp_path, '--input', folder, '--bbox_file', folder / 'samples.json', *words)
    assert caplog.text.count(DRAWN[kind]) == 1 and 'published weights' in caplog.text
    assert [len(record['warnings']) for record in own] == [1] * 3  # and the network is sure of all people
    assert all(DRAWN[kind] in record['warnings'][0] for record in own)


def test_no_warning_about_the_bundled_images(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert [record['warnings'] for record in run(tmp_path)] == [[]] * 3
    assert 'drawn' not in caplog.text


def test_no_warning_of_networks_trained_on_photos(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshot = write_snapshot(tmp_path / 'tiny.pth.tar', 'trainset_3d=[Synthetic]', 'trainset_2d=[MSCOCO]')
    record, = run(tmp_path, '--input', SAMPLES / 'sample_1.jpg', '--bbox', 'full', '--snapshot', snapshot)
    assert record['warnings'] == [] and 'drawn' not in caplog.text
    assert record['people'][0]['confidence'] < UNSURE  # but maps without a loss on them have no scale


def test_records_of_any_snapshot() -> None:
    for config in ({}, {'trainset_3d': 5, 'heatmap_loss_weight': 'x'}, {'trainset_3d': None}):
        assert trained_on({'config': config}) == set() and not has_trained_maps({'config': config})
    assert trained_on({}) == set()
    assert trained_on({'config': {'trainset_3d': ['A'], 'trainset_2d': ['B']}}) == {'A', 'B'}
    assert has_trained_maps({'config': {'heatmap_loss_weight': 1}})


@pytest.mark.parametrize('words, folder, subject', [
    ([], HAND_SAMPLES, 'people'), (['--cfg', 'nano_hand'], SAMPLES, 'hands')])
def test_the_other_kind_of_image_is_told(tmp_path: Path, capsys: pytest.CaptureFixture, words: list[str], folder: Path,
                                         subject: str) -> None:
    """A network for hands on bodies, and the other way round: on the screen and in each record."""
    found = run(tmp_path, '--input', folder, '--bbox_file', folder / 'samples.json', *words)
    assert [len(record['warnings']) for record in found] == [2] * 3
    for record in found:
        warning = record['warnings'][1]
        assert 'person 0: the network is unsure' in warning and f'knows {subject}:' in warning
    assert capsys.readouterr().out.count('the network is unsure') == 3


def test_the_other_kind_of_video_is_told(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    record, = run(tmp_path, '--input', write_video(tmp_path / 'clip.avi', 3), '--bbox', 'full')
    assert len(record['warnings']) == 2 and 'unsure' in record['warnings'][1]
    assert capsys.readouterr().out.count('the network is unsure') == 1


@pytest.fixture(scope='module')
def confidences() -> dict[tuple[str, str], np.ndarray]:
    """{(network, kind of image): confidence in each of COUNT drawn bodies or hands}."""
    predictors: dict[str, BoxPredictor] = {}
    images = {}
    for kind, snapshot in (('bodies', SNAPSHOT), ('hands', HAND_SNAPSHOT)):
        config = Config()
        config.load({'bodies': 'nano', 'hands': 'nano_hand'}[kind])
        predictors[kind] = load_predictor(config, snapshot)
        draw = Generator(predictors[kind].human_model, 160, config.synthetic_max_heading, config.synthetic_occlusion)
        images[kind] = [draw('test', number, 0) for number in range(COUNT)]
    found = {}
    for network, predictor in predictors.items():
        for kind, drawn in images.items():
            people = [predictor.predict(one.img, [np.float32(one.bbox)])[0] for one in drawn]
            found[network, kind] = np.array([person.mean_confidence for person in people])
    return found


@pytest.mark.parametrize('network, other', [('bodies', 'hands'), ('hands', 'bodies')])
def test_how_often_the_threshold_is_right(confidences: dict, network: str, other: str) -> None:
    """Of 200 each, 82 and 88 % of the other kind are below it (network of bodies, of hands), 0 and 6.5 % of its own."""
    assert (confidences[network, other] < UNSURE).mean() >= 0.75
    assert (confidences[network, network] < UNSURE).mean() <= 0.07


def test_colours_of_confidences(tmp_path: Path) -> None:
    assert [confidence_color(value) for value in (0., 0.5, 1., None)] == [
        (255, 0, 0), (255, 255, 0), (0, 255, 0), (255, 255, 255)]
    run(tmp_path)
    overview = cv2.imread(str(tmp_path / 'out' / 'sample_1' / 'overview.jpg'))[..., ::-1].astype(int)
    joints = overview[28:, 486:966]  # the second panel
    assert ((joints[..., 1] > 220) & (joints[..., 0] < 80) & (joints[..., 2] < 80)).sum() > 50  # sure of all joints


def test_confidence_in_the_arrays(tmp_path: Path) -> None:
    """Named by the joints that the network predicts, whatever joint set the record has."""
    snapshot = write_snapshot(tmp_path / 'tiny.pth.tar')
    record, = run(tmp_path, '--input', SAMPLES / 'sample_1.jpg', '--bbox', 'full', '--snapshot', snapshot,
                  '--joint_set', 'coco')
    person, = record['people']
    assert list(person['joint_confidence']) == record['confidence_joint_names']
    assert len(person['joint_confidence']) == 29
    assert person['confidence'] == pytest.approx(np.mean(list(person['joint_confidence'].values())), abs=1e-6)
    with np.load(tmp_path / 'out' / 'sample_1' / 'result.npz') as arrays:
        assert arrays['joint_confidence'].shape == (1, 29) and arrays['confidence'].shape == (1,)
