"""Snapshots that are damaged, forged or something else: train, test, demo and the export tell it in one line."""
import shutil

import pytest
import torch

from common.errors import UserError
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from common.train import random_state
from common.train.start import Start, load_state, newest_snapshot
from main import demo, test, train
from main.config import Config
from tests.demo_tools import write_snapshot
from tests.faults.commands import refusal, says
from tests.faults.spoil import SPOIL, WEIGHTS, spoiled
from tool import export_onnx, export_weights


@pytest.fixture(scope='module')
def snapshot(tmp_path_factory):
    return write_snapshot(tmp_path_factory.mktemp('snapshot') / 'snapshot_0.pth.tar')


@pytest.mark.parametrize('fault', SPOIL)
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


def test_a_file_of_old_pytorch_is_read(snapshot, tmp_path):
    """The published files are like this: pickles one after the other, no zip archive."""
    content = checkpoint.read(snapshot)
    torch.save(content, tmp_path / 'a', _use_new_zipfile_serialization=False)
    again = checkpoint.read(tmp_path / 'a')
    assert again['meta'] == content['meta'] and list(again['network']) == list(content['network'])
    assert all(torch.equal(value, content['network'][name]) for name, value in again['network'].items())


def test_continue_takes_the_snapshot_before_a_damaged_one(snapshot, tmp_path, caplog):
    for epoch, fault in ((1, None), (3, 'empty'), (4, 'truncated'), (5, 'html')):
        path = shutil.copy(snapshot, tmp_path / f'snapshot_{epoch}.pth.tar')
        if fault:
            SPOIL[fault](path)
    assert newest_snapshot(tmp_path)[0].name == 'snapshot_1.pth.tar'
    unreadable = [line.split(' is not')[0] for line in caplog.messages]
    assert unreadable == [f'{tmp_path}/snapshot_{n}.pth.tar' for n in (5, 4, 3)]


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
    told = f'an invalid {key}' if key in META else key
    with pytest.raises(UserError, match=f"a is not a checkpoint: its 'meta' .*{told}: it is damaged"):
        checkpoint.read(tmp_path / 'a')


SIZES = {
    'resnet_type': 152, 'resnet_width': 2 ** 40, 'head_width': -4, 'joint_num': 10 ** 9, 'vertex_num': [1],
    'output_hm_shape': [2 ** 40, 8, 8], 'input_img_shape': [2 ** 30, 2 ** 30], 'sigma': float('inf')}


@pytest.mark.parametrize('program', ['train', 'test', 'demo', 'onnx'])
@pytest.mark.parametrize('name', SIZES)
def test_a_record_of_an_impossible_size(program, name, snapshot, tmp_path, capsys, monkeypatch):
    """It is refused by the name of the file before a network is made."""
    content = torch.load(snapshot, weights_only=True)
    content['meta'][name] = SIZES[name]
    path = tmp_path / 'a.pth.tar'
    torch.save(content, path)
    if program == 'onnx':
        for package in ('onnx', 'onnxscript', 'onnxruntime'):
            pytest.importorskip(package)
    monkeypatch.setattr('main.model.Model.__init__', lambda *_, **__: pytest.fail('a network is made'))
    main, words = {
        'train': (train.main, ('--gpu', 'cpu', '--cfg', 'nano', '--snapshot', path, f'output_dir={tmp_path}')),
        'test': (test.main, ('--gpu', 'cpu', '--cfg', 'nano', '--snapshot', path, f'output_dir={tmp_path}')),
        'demo': (demo.main, ('--gpu', 'cpu', '--snapshot', path)),
        'onnx': (export_onnx.main, ('--snapshot', path, '--output', tmp_path / 'a.onnx'))}[program]
    says(refusal(capsys, main, *words), f'^{path}')


def test_a_small_file_that_claims_a_large_network(snapshot, tmp_path):
    """Its record and its smallest tensors agree."""
    content = torch.load(snapshot, weights_only=True)
    content['meta']['resnet_width'] = 512
    content['network']['module.pose_backbone.conv1.weight'] = torch.zeros(512, 3, 7, 7)
    with pytest.raises(UserError, match='its record says resnet_width 512, its tensors '):
        snapshot_meta.describe(content, 'x')
    content['network']['module.pose_backbone.layer4.0.conv2.weight'] = torch.zeros(4096, 0, 3, 3)
    with pytest.raises(UserError, match='x is not a snapshot of this network: its tensors have other shapes'):
        snapshot_meta.describe(content, 'x')


@pytest.mark.parametrize(('change', 'told'), [
    ({'epoch': 'x'}, "'epoch' is not a valid epoch"), ({'epoch': float('nan')}, "'epoch' is not a valid epoch"),
    ({'epoch': 10 ** 30}, "'epoch' is not a valid epoch"), ({'epoch': 10 ** 400}, "'epoch' is not a valid epoch"),
    ({'epoch': torch.zeros(3)}, "'epoch' is not a valid epoch"),
    ({'network': {'module.a': 1}}, 'the entry module.a, which is not a tensor'),
    ({'network': {5: torch.zeros(1)}}, 'the entry 5, which is not a tensor'), ({'network': [1]}, "it has no 'network'"),
    ({'network': {'a': torch.zeros(1).to_sparse()}}, 'of a kind that no network is made of'),
    ({'network': {'a': torch.zeros(1, dtype=torch.complex64)}}, 'of a kind that no network is made of'),
    ({'network': {'a': torch.zeros(1).expand(2 ** 40)}}, 'larger than what is stored of it'),
    ({'optimizer': 3}, "'optimizer' is not a dictionary"),
    ({'state': {'step': 'x'}}, "'state' has an invalid step, ste"),
    ({'meta': [1]}, "its 'meta' is not a dictionary")])
def test_damaged_content_of_a_snapshot(change, told, snapshot, tmp_path):
    torch.save({**torch.load(snapshot, weights_only=True), **change}, tmp_path / 'a')
    with pytest.raises(UserError, match=f'a is not a checkpoint: .*{told}'):
        checkpoint.read(tmp_path / 'a')


@pytest.mark.parametrize(('part', 'value'), [
    ('optimizer', {}), ('optimizer', {'state': 3, 'param_groups': []}),
    ('optimizer', {'state': {}, 'param_groups': [5]}), ('random', {}),
    ('random', {'torch': torch.zeros(3), 'cuda': [], 'numpy': [], 'python': []}),
    ('numpy', ['MT19937', 5, 0, 0, 0.]), ('python', [3, ['x'], None])])
def test_damaged_state_of_a_training(part, value, snapshot):
    """--continue, of a file whose weights are whole."""
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(2))])
    random = random_state.capture()
    content = {**checkpoint.read(snapshot), 'optimizer': optimizer.state_dict(), 'state': {
        'step': 0, 'step_size': 2, 'samples': 9, 'scaler': {}, 'random': random}}
    {'optimizer': content, 'random': content['state']}.get(part, random)[part] = value
    start = Start(1, path=snapshot, content=content, exact=True)
    with pytest.raises(UserError) as error:
        load_state(start, optimizer, None, {'step_size': 2, 'samples': 9})
    says(str(error.value), f'optimiser or random state in {snapshot} does not fit .*: --snapshot {snapshot} in place')


def test_weights_that_are_not_finite(snapshot, tmp_path, capsys):
    content = torch.load(snapshot, weights_only=True)
    content['network']['module.mesh_net.conv_x.0.bias'][3] = float('nan')
    torch.save(content, tmp_path / 'a')
    message = refusal(capsys, demo.main, '--gpu', 'cpu', '--snapshot', tmp_path / 'a')
    says(message, f'{tmp_path}/a: mesh_net.conv_x.0.bias has values that are not finite: .*take another snapshot')


def test_the_guessed_sigma_of_a_file_without_a_record_is_told(snapshot, caplog):
    content = {**checkpoint.read(snapshot), 'meta': {}}
    meta = snapshot_meta.describe(content, 'x')
    snapshot_meta.adopt(meta, Config(), 'the file')
    message, = caplog.messages
    says(message, '^the file does not record sigma; using 0.3125 lixels .the published ratio 2.5 / 64.$')
    snapshot_meta.warn_of_guess({**meta, 'output_hm_shape': [64] * 3}, 'the file')  # the published size
    assert len(caplog.messages) == 1


def test_a_damaged_tensor_is_noticed(tmp_path):
    """One bit of one of its numbers: the archive's checksum knows."""
    path = tmp_path / 'snapshot_0.pth.tar'
    weights = torch.arange(5000.)
    torch.save({'epoch': 0, 'network': {'module.a': weights}}, path)
    assert torch.equal(checkpoint.read(path)['network']['module.a'], weights)
    data = bytearray(path.read_bytes())
    data[data.index(weights.numpy().tobytes()[1000:1200]) + 50] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match='snapshot_0.*it is damaged: a tensor in it has another checksum'):
        checkpoint.read(path)
