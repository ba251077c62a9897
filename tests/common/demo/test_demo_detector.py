"""The demo's person detector: torchvision's network with random weights, and its answers by a stand-in."""
import numpy as np
import pytest
import torch
from torchvision.models import detection

from common.demo.inputs import detector
from common.errors import UserError


class Answers(torch.nn.Module):
    """Stands in for the network: two people, a dog, and somebody hardly seen; boxes as corners."""

    def forward(self, images):
        self.shape = tuple(images[0].shape)
        return [{'boxes': torch.tensor([[10., 20, 40, 90], [0, 0, 5, 5], [50, 10, 70, 80], [1, 1, 9, 9]]),
                 'labels': torch.tensor([1, 18, 1, 1]), 'scores': torch.tensor([.99, .98, .9, .2])}]


@pytest.fixture
def stand_in(monkeypatch):
    net = Answers()
    monkeypatch.setattr(detection, detector.DETECTORS[0], lambda **_: net)
    return net


def test_people_only_as_xywh(stand_in):
    found = detector.Detector()(np.zeros((100, 80, 3), np.uint8))
    np.testing.assert_allclose(found, [[10, 20, 30, 70], [50, 10, 20, 70]])
    assert stand_in.shape == (3, 100, 80)


def test_huge_images_are_reduced(stand_in):
    found = detector.Detector(limit=1)(np.zeros((8000, 2000, 3), np.uint8))
    assert stand_in.shape == (3, 1600, 400)
    np.testing.assert_allclose(found, [[50, 100, 150, 350]])


def test_failed_download_says_what_to_do(monkeypatch):
    def refuse(**_):
        raise OSError('no route to host')

    monkeypatch.setattr(detection, detector.DETECTORS[0], refuse)
    with pytest.raises(UserError, match='--bbox.*--detector_weights FILE'):
        detector.Detector()


def test_weights_file(tmp_path):
    name = 'fasterrcnn_mobilenet_v3_large_fpn'
    torch.manual_seed(0)
    net = detection.fasterrcnn_mobilenet_v3_large_fpn(weights=None, weights_backbone=None)
    published = {k: v for k, v in net.state_dict().items() if not k.endswith('num_batches_tracked')}  # as theirs are
    torch.save(published, tmp_path / 'w.pth')
    boxes = detector.Detector(name, tmp_path / 'w.pth', threshold=0.)(np.zeros((64, 64, 3), np.uint8))
    assert all(box.shape == (4,) and (box[2:] > 0).all() for box in boxes)
    (tmp_path / 'bad.pth').write_text('<html>')
    (tmp_path / 'text.pth').write_text('hello')
    torch.save({'a': torch.zeros(1)}, tmp_path / 'other.pth')
    torch.save(dict.fromkeys(net.state_dict(), 1.), tmp_path / 'numbers.pth')
    for file, told in (('bad.pth', 'not a file of PyTorch weights'), ('text.pth', 'not a file of PyTorch weights'),
                       ('other.pth', 'not the weights of'), ('numbers.pth', 'not the weights of'),
                       ('none.pth', 'cannot be read')):
        with pytest.raises(UserError, match=told):
            detector.Detector(name, tmp_path / file)
