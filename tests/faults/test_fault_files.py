"""Other files that the programs read: settings, weights, boxes, images, videos, stores of images."""
import cv2
import numpy as np
import pytest
import torch

from common.demo.inputs.box_file import read_box_file
from common.demo.inputs.detector import _read_weights
from common.demo.inputs.images import read_image
from common.demo.inputs.video import Video
from common.errors import UserError
from common.files import images
from common.nets.resnet import ResNetBackbone
from data.Synthetic.store import open_store
from main import demo, train
from tests.demo_tools import write_image, write_video
from tests.faults.commands import refusal, says
from tests.faults.spoil import HTML, SPOIL, WEIGHTS, spoiled

faults = pytest.mark.parametrize('fault', SPOIL)


@faults
def test_settings(fault, tmp_path, capsys):
    path = tmp_path / 'own.yaml'
    path.write_text('trainset_3d: [Synthetic, MuCo]\n')
    with spoiled(path, fault):
        message = refusal(capsys, train.main, '--cfg', path)
    says(message, str(path), {'missing': 'neither a preset .body, hand, nano, nano_hand. nor an existing YAML file',
                              'folder': 'cannot be read .Is a directory.', 'empty': 'it is empty',
                              'no permission': 'cannot be read .Permission denied.: check its permissions'}.get(
                                  fault, 'is not a YAML file of settings .*main/configs has examples'))
    assert len(message) < 500  # no list of all settings


@faults
def test_weights_of_a_backbone(fault, tmp_path):
    path, net = tmp_path / 'resnet.pth', ResNetBackbone(18, 4)
    torch.save(net.state_dict(), path)
    net.load_imagenet(str(path))
    with spoiled(path, fault), pytest.raises(UserError) as error:
        net.load_imagenet(str(path))
    says(str(error.value), f'the ImageNet weights in {path} cannot be loaded: ',
         WEIGHTS.get(fault, 'No such file'), 'pretrained_backbone=FILE')
    torch.save({'conv1.weight': torch.zeros(2)}, path)
    with pytest.raises(UserError, match='do not fit resnet18 of width 4 .first mismatch: conv1.weight'):
        net.load_imagenet(str(path))


@faults
def test_weights_of_the_detector(fault, tmp_path):
    path, net = tmp_path / 'detector.pth', torch.nn.Linear(2, 2)
    torch.save(net.state_dict(), path)
    assert set(_read_weights(path, net, 'linear')) == {'weight', 'bias'}
    with spoiled(path, fault), pytest.raises(UserError) as error:
        _read_weights(path, net, 'linear')
    says(str(error.value), f'--detector_weights {path}: not a file of PyTorch weights: ',
         WEIGHTS.get(fault, 'it cannot be read .No such file'))


@faults
def test_boxes(fault, tmp_path, capsys):
    path = tmp_path / 'boxes.json'
    path.write_text('{"photo.jpg": [[1, 2, 30, 40]]}')
    with spoiled(path, fault), pytest.raises(UserError) as error:
        read_box_file(path)
    message = str(error.value)
    reasons = {'missing': 'No such file', 'folder': 'Is a directory', 'no permission': 'Permission denied'}
    says(message, f'--bbox_file {path}: ', reasons.get(fault, 'not a JSON file .*such as'))
    if fault == 'html':
        path.write_bytes(HTML)
        image = write_image(tmp_path / 'photo.jpg')
        assert refusal(capsys, demo.main, '--gpu', 'cpu', '--input', image, '--bbox_file', path) == message


@pytest.mark.parametrize('fault', [fault for fault in SPOIL if fault != 'jpeg'])  # that is an image, or one frame
@pytest.mark.parametrize('kind', ('image', 'video', 'training image'))
def test_images(kind, fault, tmp_path):
    path = tmp_path / ('clip.avi' if kind == 'video' else 'photo.png')
    write_video(path, 3) if kind == 'video' else write_image(path, 60, 50)
    with spoiled(path, fault):
        if fault == 'truncated':  # longer pieces show what there is
            path.write_bytes(path.read_bytes()[:30])
        read = {'image': read_image, 'video': Video, 'training image': images.read_image}[kind]
        with pytest.raises((OSError, ValueError) if kind == 'training image' else UserError) as error:
            read(path)
    assert str(path) in str(error.value) and '\n' not in str(error.value)


@pytest.fixture(scope='module')
def store(tmp_path_factory):
    """open() makes or opens a store of three grey images, and counts the drawn ones."""
    root, drawn = tmp_path_factory.mktemp('stores'), []

    def draw(i):
        drawn.append(i)
        return np.full((8, 8, 3), 50 * i, np.uint8), np.float32([i, 1])

    def open_it():
        drawn.clear()
        images = open_store(root, {'count': 3}, draw)
        assert [int(images[i][0].mean()) for i in range(3)] == [0, 50, 100] and images[2][1][0] == 2
        return images.folder, len(set(drawn))
    return open_it


@pytest.mark.parametrize('fault', [fault for fault in SPOIL if fault != 'no permission'])  # it belongs to who made it
@pytest.mark.parametrize('name', ('images.bin', 'ends.npy', 'numbers.npy', 'key.json'))
def test_damaged_store_is_made_again(name, fault, store, monkeypatch):
    monkeypatch.setattr('data.Synthetic.store.tqdm', lambda rows, **_: rows)
    folder, _ = store()
    assert store() == (folder, 0)
    SPOIL[fault](folder / name)
    assert store() == (folder, 3)
    assert store() == (folder, 0)


@pytest.mark.parametrize('content', [np.array(5), np.zeros(3), np.int64([8, 5, 9]), np.int64([]), np.array(['a'] * 3)])
def test_store_whose_ends_make_no_sense(content, store, monkeypatch):
    monkeypatch.setattr('data.Synthetic.store.tqdm', lambda rows, **_: rows)
    folder, _ = store()
    np.save(folder / 'ends.npy', content)
    assert store() == (folder, 3)


def test_a_video_that_ends_early_gives_the_frames_there_are(tmp_path):
    path = write_video(tmp_path / 'clip.avi', 20)
    path.write_bytes(path.read_bytes()[:path.stat().st_size * 3 // 5])
    try:
        frames = [image for _, image in Video(path)]
    except UserError as error:
        assert str(path) in str(error)
    else:
        assert 0 < len(frames) < 20 and all(isinstance(frame, np.ndarray) for frame in frames)
    assert cv2.imread(str(path)) is None
