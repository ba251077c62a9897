"""channels_last where it pays, and matrix products in full float32 in tests."""
import pytest
import torch

from common import base
from common.devices.wrap import use_channels_last
from common.errors import UserError
from common.snapshot import checkpoint
from main.config import Config
from tests.tiny import tiny_config, use_random_data

CPU = torch.device('cpu')
GPU = torch.device('cuda', 0)


@pytest.mark.parametrize('device, capability, settings, want', [
    (CPU, None, [], True), (CPU, None, ['resnet_width=8'], False), (CPU, None, ['resnet_width=16'], True),
    (GPU, (7, 5), [], False), (GPU, (7, 5), ['amp=fp16'], True), (GPU, (8, 0), [], True), (GPU, (12, 0), [], True),
    (GPU, (8, 0), ['memory_format=contiguous'], False), (GPU, (6, 1), ['memory_format=channels_last'], True),
    (CPU, None, ['resnet_width=8', 'memory_format=channels_last'], True)])
def test_where_it_pays(monkeypatch, device, capability, settings, want):
    monkeypatch.setattr(torch.cuda, 'get_device_capability', lambda device: capability)
    config = Config()
    config.override(settings)
    assert use_channels_last(config, device) == want


def test_there_are_three_choices():
    with pytest.raises(UserError, match='memory_format=nhwc: one of auto, channels_last, contiguous'):
        Config().override(['memory_format=nhwc'])


def format_of(model):
    """(of a weight, of an image in the first convolution)."""
    seen = []
    hook = model.pose_backbone.conv1.register_forward_hook(lambda module, args, out: seen.append(args[0]))
    batch = {'img': torch.rand(2, 3, 32, 32)}
    with torch.no_grad():
        model(batch, {}, {}, 'test')
    hook.remove()
    tensors = (model.pose_backbone.conv1.weight, seen[0])
    return [tensor.is_contiguous(memory_format=torch.channels_last) for tensor in tensors]


@pytest.mark.parametrize('setting, want', [('auto', False), ('channels_last', True)])
def test_training_and_test_use_the_format_and_their_precision(monkeypatch, tmp_path, setting, want):
    """Narrow networks on a CPU: the plain format, unless it is asked for."""
    use_random_data(monkeypatch)
    tuned = []
    monkeypatch.setattr(base, 'tune', tuned.append)
    config = tiny_config(tmp_path, 'lixel_epochs=1', f'memory_format={setting}')
    trainer = base.Trainer(config)
    assert format_of(trainer.model) == [want, want]
    trainer.train()
    tester = base.Tester(config, checkpoint.snapshot_path(tmp_path / 'model_dump', 0))
    assert format_of(tester.net.module) == [want, want] and tuned == ['high', 'highest']


@pytest.mark.parametrize('width', [4, 8, 12, 16])
def test_narrow_networks_train_on_a_cpu(monkeypatch, tmp_path, width):
    use_random_data(monkeypatch, length=2)
    assert base.Trainer(tiny_config(tmp_path, 'lixel_epochs=1', f'resnet_width={width}', f'head_width={width}')).train()
