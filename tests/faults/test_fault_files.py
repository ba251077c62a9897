"""Every other file that the programs read: settings, snapshots, weights, boxes, pictures, videos, picture stores."""
import shutil

import cv2
import numpy as np
import pytest
import torch

from common import checkpoint, snapshot_meta
from common.demo.boxes import read_box_file
from common.demo.detector import _read_weights
from common.demo.images import read_image
from common.demo.sources import Video
from common.errors import UserError
from common.nets.resnet import ResNetBackbone
from common.resume import newest_snapshot
from common.utils.preprocessing import load_img
from data.Synthetic.store import open_store
from main import demo, test, train
from main.config import Config
from tests.demo_tools import write_picture, write_snapshot, write_video
from tests.faults.commands import refusal, says
from tests.faults.spoil import HTML, SPOIL, spoiled
from tool import export_weights

faults = pytest.mark.parametrize('fault', SPOIL)
WEIGHTS = {  # of a file of PyTorch weights
    'empty': 'the file is empty', 'truncated': 'it is truncated or damaged',
    'html': 'it is a web page, so the download went wrong; open the link in a browser',
    'zip': 'it is a zip archive of other files',
    'text': 'it holds things other than tensors and plain values, or is damaged', 'jpeg': 'it is a JPEG picture',
    'folder': 'it is a folder: name the file itself, and do not unpack it',
    'no permission': 'it cannot be read .Permission denied.'}


@pytest.fixture(scope='module')
def snapshot(tmp_path_factory):
    return write_snapshot(tmp_path_factory.mktemp('snapshot') / 'snapshot_0.pth.tar')


@faults
def test_settings(fault, tmp_path, capsys):
    path = tmp_path / 'own.yaml'
    path.write_text('trainset_3d: [Synthetic, MuCo]\n')
    with spoiled(path, fault):
        message = refusal(capsys, train.main, '--cfg', path)
    says(message, str(path), {'missing': 'neither a preset .body, hand, nano. nor an existing YAML file',
                              'folder': 'cannot be read .Is a directory.', 'empty': 'it is empty',
                              'no permission': 'cannot be read .Permission denied.: see to its permissions'}.get(
                                  fault, 'is not a YAML file of settings .*main/configs has examples'))
    assert len(message) < 500  # no list of all settings


@faults
@pytest.mark.parametrize('program', ('train', 'test', 'demo', 'export'))
def test_snapshot(program, fault, snapshot, tmp_path, capsys):
    main, words = {
        'train': (train.main, ('--cfg', 'nano', '--snapshot', snapshot, f'output_dir={tmp_path}')),
        'test': (test.main, ('--cfg', 'nano', '--snapshot', snapshot, f'output_dir={tmp_path}')),
        'demo': (demo.main, ('--snapshot', snapshot)),
        'export': (export_weights.main, (snapshot, tmp_path / 'out'))}[program]
    with spoiled(snapshot, fault):
        message = refusal(capsys, main, *(('--gpu', 'cpu') if program != 'export' else ()), *words)
    missing = fault == 'missing'
    says(message, f'no snapshot {snapshot}' if missing else f'{snapshot} is not a checkpoint: {WEIGHTS[fault]}')


def test_continue_takes_the_snapshot_before_a_damaged_one(snapshot, tmp_path):
    for epoch, fault in ((1, None), (3, 'empty'), (4, 'truncated'), (5, 'html')):
        path = shutil.copy(snapshot, tmp_path / f'snapshot_{epoch}.pth.tar')
        if fault:
            SPOIL[fault](path)
    lines = []
    assert newest_snapshot(tmp_path, lines.append)[0].name == 'snapshot_1.pth.tar'
    assert [line.split(' is not')[0] for line in lines] == [f'{tmp_path}/snapshot_{n}.pth.tar' for n in (5, 4, 3)]


META = {'human_model': 7, 'stage': 'mesh', 'resnet_type': 'x', 'resnet_width': None, 'sigma': [2.5],
        'input_img_shape': [32], 'output_hm_shape': [8, 8, 'x'], 'config': [], 'stage_start': 'x'}


@pytest.mark.parametrize('key', [*META, 'lacks stage'])
def test_damaged_record_of_a_snapshot(key, snapshot, tmp_path):
    content = torch.load(snapshot, weights_only=True)
    if key in META:
        content['meta'][key] = META[key]
    else:
        del content['meta']['stage']
    torch.save(content, tmp_path / 'a')
    told = f'odd {key}' if key in META else key
    with pytest.raises(UserError, match=f"a is not a checkpoint: its 'meta' .*{told}: it is damaged"):
        checkpoint.read(tmp_path / 'a')


@pytest.mark.parametrize(('change', 'told'), [
    ({'epoch': 'x'}, "'epoch' is no number"), ({'epoch': float('nan')}, "'epoch' is no number"),
    ({'epoch': 10 ** 30}, "'epoch' is no number"), ({'epoch': torch.zeros(3)}, "'epoch' is no number"),
    ({'network': {'module.a': 1}}, 'the entry module.a, which is no tensor'),
    ({'network': {5: torch.zeros(1)}}, 'the entry 5, which is no tensor'), ({'network': [1]}, "it has no 'network'"),
    ({'network': {'a': torch.zeros(1).to_sparse()}}, 'of a kind that no network is made of'),
    ({'network': {'a': torch.zeros(1, dtype=torch.complex64)}}, 'of a kind that no network is made of'),
    ({'network': {'a': torch.zeros(1).expand(2 ** 40)}}, 'larger than what is stored of it'),
    ({'optimizer': 3}, "'optimizer' is no dictionary"), ({'state': {'step': 'x'}}, "'state' has no proper step, ste"),
    ({'meta': [1]}, "its 'meta' is no dictionary")])
def test_damaged_content_of_a_snapshot(change, told, snapshot, tmp_path):
    torch.save({**torch.load(snapshot, weights_only=True), **change}, tmp_path / 'a')
    with pytest.raises(UserError, match=f'a is not a checkpoint: .*{told}'):
        checkpoint.read(tmp_path / 'a')


def test_weights_that_are_not_finite(snapshot, tmp_path, capsys):
    content = torch.load(snapshot, weights_only=True)
    content['network']['module.mesh_net.conv_x.0.bias'][3] = float('nan')
    torch.save(content, tmp_path / 'a')
    message = refusal(capsys, demo.main, '--gpu', 'cpu', '--snapshot', tmp_path / 'a')
    says(message, f'{tmp_path}/a: mesh_net.conv_x.0.bias has values that are not finite: .*take another snapshot')


def test_the_guessed_sigma_of_a_file_without_a_record_is_told(snapshot, capsys):
    content = {**checkpoint.read(snapshot), 'meta': {}}
    meta = snapshot_meta.describe(content)
    snapshot_meta.adopt(meta, Config(), 'the file')
    err = capsys.readouterr().err
    assert err.count('\n') == 1
    says(err, '^note: the file does not say with which sigma it was trained; for 8 lixels 0.3125 is taken')
    snapshot_meta.tell_guess({**meta, 'output_hm_shape': [64] * 3}, 'the file')  # the published size
    assert not capsys.readouterr().err


@faults
def test_weights_of_a_backbone(fault, tmp_path):
    path, net = tmp_path / 'resnet.pth', ResNetBackbone(18, 4)
    torch.save(net.state_dict(), path)
    net.load_imagenet(str(path))
    with spoiled(path, fault), pytest.raises(UserError) as error:
        net.load_imagenet(str(path))
    says(str(error.value), 'the ImageNet weights of resnet18 cannot be loaded ',
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
        picture = write_picture(tmp_path / 'photo.jpg')
        assert refusal(capsys, demo.main, '--gpu', 'cpu', '--input', picture, '--bbox_file', path) == message


@pytest.mark.parametrize('fault', [fault for fault in SPOIL if fault != 'jpeg'])  # that is a picture, or one frame
@pytest.mark.parametrize('kind', ('picture', 'video', 'training picture'))
def test_pictures(kind, fault, tmp_path):
    path = tmp_path / ('clip.avi' if kind == 'video' else 'photo.png')
    write_video(path, 3) if kind == 'video' else write_picture(path, 60, 50)
    with spoiled(path, fault):
        if fault == 'truncated':  # longer pieces show what there is
            path.write_bytes(path.read_bytes()[:30])
        read = {'picture': read_image, 'video': Video, 'training picture': lambda path: load_img(str(path))}[kind]
        with pytest.raises((OSError, ValueError) if kind == 'training picture' else UserError) as error:
            read(path)
    assert str(path) in str(error.value) and '\n' not in str(error.value)


@pytest.fixture(scope='module')
def store(tmp_path_factory):
    """open() makes or opens a store of three grey pictures, and counts the drawn ones."""
    root, drawn = tmp_path_factory.mktemp('stores'), []

    def draw(i):
        drawn.append(i)
        return np.full((8, 8, 3), 50 * i, np.uint8), np.float32([i, 1])

    def open_it():
        drawn.clear()
        pictures = open_store(root, {'count': 3}, draw)
        assert [int(pictures[i][0].mean()) for i in range(3)] == [0, 50, 100] and pictures[2][1][0] == 2
        return pictures.folder, len(drawn)
    return open_it


@pytest.mark.parametrize('fault', [fault for fault in SPOIL if fault != 'no permission'])  # it belongs to who made it
@pytest.mark.parametrize('name', ('pictures.bin', 'ends.npy', 'numbers.npy', 'key.json'))
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
