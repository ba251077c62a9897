"""Snapshots: written whole, read strictly and without running code, interchangeable with the original's files."""
import os
import pickle

import numpy as np
import pytest
import torch

from common.errors import UserError
from common.human_model import get_human_model
from common.nets.resnet import LAYERS, ResNetBackbone
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from main.model import get_model
from tests.tiny import tiny_config


@pytest.fixture(scope='module')
def config():
    return tiny_config('/nonexistent')


@pytest.fixture(scope='module')
def human_model():
    return get_human_model('open_body')


@pytest.fixture
def model(config, human_model):
    torch.manual_seed(0)
    return get_model(config, human_model, 'test')


@pytest.fixture
def content(model, config, human_model):
    """A snapshot of another network of the same shape."""
    torch.manual_seed(1)
    other = get_model(config, human_model, 'test')
    meta = snapshot_meta.record(config, human_model, 0)
    return {'epoch': 3, 'network': checkpoint.pack_network(other), 'optimizer': {}, 'meta': meta}


def load(model, content, path, **options):
    torch.save(content, path)
    checkpoint.load_network(model, checkpoint.read(path), path, **options)


def equal(model, network):
    state = model.state_dict()
    return all(torch.equal(value.to(state[name.removeprefix('module.')].dtype), state[name.removeprefix('module.')])
               for name, value in network.items() if 'human_model_layer' not in name)


def test_snapshots_are_found_in_numeric_order(tmp_path):
    for name in ('snapshot_2.pth.tar', 'snapshot_10.pth.tar', 'snapshot_9.pth.tar', 'snapshot_11.pth.tar.tmp', 'x.pth'):
        (tmp_path / name).touch()
    assert [epoch for epoch, _ in checkpoint.find_snapshots(tmp_path)] == [2, 9, 10]
    checkpoint.prune(tmp_path, 2, newest=10)
    assert [epoch for epoch, _ in checkpoint.find_snapshots(tmp_path)] == [9, 10]


def test_a_new_run_does_not_lose_its_snapshot_to_those_of_a_longer_one(tmp_path):
    for epoch in (0, 1, 9, 10, 11):
        (tmp_path / f'snapshot_{epoch}.pth.tar').touch()
    checkpoint.prune(tmp_path, 1, newest=1)
    assert [epoch for epoch, _ in checkpoint.find_snapshots(tmp_path)] == [1, 9, 10, 11]
    checkpoint.prune(tmp_path, 0, newest=11)
    assert len(checkpoint.find_snapshots(tmp_path)) == 4


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / 'snapshot_0.pth.tar'
    checkpoint.write(path, {'epoch': 0, 'network': {}})

    def stop_halfway(content, file):
        file.write(b'half')
        raise OSError('disk full')

    monkeypatch.setattr(torch, 'save', stop_halfway)
    with pytest.raises(OSError, match='disk full'):
        checkpoint.write(path, {'epoch': 1, 'network': {}})
    assert checkpoint.read(path)['epoch'] == 0


def test_a_file_laid_out_like_the_originals(tmp_path, model, content):
    """`module.` prefix, body-model tensors inside, NumPy scalars, no record of what it is."""
    network = {**content['network'], 'module.human_model_layer.th_faces': torch.zeros(5, 3),
               'module.human_model_layer.th_betas': torch.zeros(1, 10)}
    old = {'epoch': np.float64(12), 'network': network, 'optimizer': {'lr': np.float32(1e-5)}}
    load(model, old, tmp_path / 'snapshot_12.pth.tar')
    assert equal(model, content['network'])
    assert int(checkpoint.read(tmp_path / 'snapshot_12.pth.tar')['epoch']) == 12


def test_the_original_could_load_ours(model, content):
    """Its reader fills a DataParallel-wrapped network by name."""
    wrapped = torch.nn.Module()
    wrapped.module = model
    missing, unexpected = wrapped.load_state_dict(content['network'], strict=True)
    assert not missing and not unexpected and equal(model, content['network'])


def test_without_prefix_and_in_half_precision(tmp_path, model, content):
    plain = {name.removeprefix('module.'): value for name, value in content['network'].items()}
    load(model, {**content, 'network': plain}, tmp_path / 'a')
    assert equal(model, content['network'])
    torch.save(content, tmp_path / 'b')
    checkpoint.export_weights(tmp_path / 'b', tmp_path / 'half')
    small = checkpoint.read(tmp_path / 'half')
    assert set(small) == {'epoch', 'network', 'meta'}
    assert small['network']['module.pose_backbone.conv1.weight'].dtype == torch.half
    assert (tmp_path / 'half').stat().st_size < 0.6 * (tmp_path / 'b').stat().st_size
    checkpoint.load_network(model, small, 'half')
    assert equal(model, small['network']) and model.pose_backbone.conv1.weight.dtype == torch.float32


def test_exported_weights_name_no_folder_of_the_machine(tmp_path, content):
    settings = {'output_dir': str(tmp_path), 'data_dir': 'data', 'lr': 1e-4}
    torch.save({**content, 'meta': {**content['meta'], 'config': settings}}, tmp_path / 'a')
    checkpoint.export_weights(tmp_path / 'a', tmp_path / 'b')
    assert checkpoint.read(tmp_path / 'b')['meta'] == {**content['meta'], 'config': {'data_dir': 'data', 'lr': 1e-4}}


def test_loading_is_strict(tmp_path, model, content):
    network = dict(content['network'])
    bias = network.pop('module.pose_net.conv_x.0.bias')
    with pytest.raises(UserError, match='missing pose_net.conv_x.0.bias'):
        load(model, {**content, 'network': network}, tmp_path / 'a')
    with pytest.raises(UserError, match='unexpected pose_net.extra'):
        load(model, {**content, 'network': {**content['network'], 'module.pose_net.extra': bias}}, tmp_path / 'a')
    with pytest.raises(UserError, match=r'conv_x.0.bias is \(7,\), the network has'):
        network['module.pose_net.conv_x.0.bias'] = bias[:7]
        load(model, {**content, 'network': network}, tmp_path / 'a')
    lixel = {name: value for name, value in content['network'].items() if 'param_regressor' not in name}
    with pytest.raises(UserError, match='missing param_regressor'):
        load(model, {**content, 'network': lixel}, tmp_path / 'a')
    load(model, {**content, 'network': lixel}, tmp_path / 'a', regressor_optional=True)
    assert equal(model, lixel)


class Evil:
    def __reduce__(self):
        return os.mkdir, ('/tmp/a_snapshot_ran_code',)


@pytest.mark.parametrize(('data', 'reason'), [
    (b'', 'the file is empty'), (b'  \n<!DOCTYPE html><html>quota</html>', 'it is a web page'),
    (b'PK\x03\x04 truncated', 'truncated or damaged'), (b'no pickle at all', 'tensors and plain values'),
    (pickle.dumps({'network': Evil()}, protocol=2), 'tensors and plain values')],
    ids=['empty', 'web page', 'truncated', 'text', 'code'])
def test_what_is_not_a_checkpoint(tmp_path, data, reason):
    (tmp_path / 'snapshot_1.pth.tar').write_bytes(data)
    with pytest.raises(UserError, match='is not a checkpoint: ') as error:
        checkpoint.read(tmp_path / 'snapshot_1.pth.tar')
    assert reason in str(error.value) and '\n' not in str(error.value)
    assert not os.path.exists('/tmp/a_snapshot_ran_code')


def test_cut_short_or_something_else(tmp_path, content):
    torch.save(content, tmp_path / 'a')
    (tmp_path / 'b').write_bytes((tmp_path / 'a').read_bytes()[:-2000])
    with pytest.raises(UserError, match='is not a checkpoint: it is truncated or damaged'):
        checkpoint.read(tmp_path / 'b')
    torch.save({'weights': 1}, tmp_path / 'a')
    with pytest.raises(UserError, match="it has no 'network'"):
        checkpoint.read(tmp_path / 'a')
    torch.save({'network': content['network']}, tmp_path / 'a')
    with pytest.raises(UserError, match="it has no 'epoch'"):
        checkpoint.read(tmp_path / 'a')
    with pytest.raises(UserError, match='no snapshot'):
        checkpoint.read(tmp_path / 'c')


def test_what_a_file_without_a_record_is(config, model, content):
    del content['meta']
    network = content['network']
    meta = snapshot_meta.describe(content, 'x')
    assert meta['human_model'] == 'smpl' and meta['stage'] == 'lixel'
    for name in ('resnet_type', 'resnet_width', 'head_width', 'output_hm_shape', 'input_img_shape'):
        wanted = config.resolved()[name]
        assert meta[name] == wanted
    seen = next(name for name in network if 'param_regressor' in name and name.endswith('num_batches_tracked'))
    network[seen] += 1
    assert snapshot_meta.describe(content, 'x')['stage'] == 'param'
    with pytest.raises(UserError, match='x is not a snapshot of this network'):
        snapshot_meta.describe({'network': {'module.fc.weight': torch.zeros(1)}}, 'x')


def test_test_and_demo_adopt_what_the_snapshot_is(config, content):
    other = tiny_config('/nonexistent', 'resnet_width=8', 'body_model=smpl')
    with pytest.raises(UserError, match='human_model open_body there, smpl here; resnet_width 4 there, 8 here'):
        snapshot_meta.check(content['meta'], other, 'file')
    snapshot_meta.adopt(content['meta'], other, 'file')
    snapshot_meta.check(content['meta'], other, 'file')
    assert (other.human_model, other.resnet_width, other.stage) == ('open_body', 4, 'lixel')
    with pytest.raises(UserError, match='trained in the lixel stage only'):
        snapshot_meta.adopt(content['meta'], other, 'file', stage='param')
    snapshot_meta.adopt({**content['meta'], 'stage': 'param'}, other, 'file')
    assert other.stage == 'param'


def test_a_record_without_mesh_width_is_of_two_equal_halves(content):
    other = tiny_config('/nonexistent', 'mesh_width=2')
    del content['meta']['mesh_width']
    snapshot_meta.adopt(content['meta'], other, 'file')
    assert other.mesh_width == 0


@pytest.mark.parametrize('depth', LAYERS)
def test_the_depth_of_a_backbone_is_seen_in_its_tensors(depth):
    with torch.device('meta'):
        state = ResNetBackbone(depth, 4).state_dict()
    assert snapshot_meta._guess_depth({f'pose_backbone.{name}': value for name, value in state.items()},
                                      'x') == depth
