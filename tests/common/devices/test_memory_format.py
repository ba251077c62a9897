"""channels_last where it pays, and matrix products in full float32 in tests."""
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from common import base
from common.devices.gpus import tune
from common.devices.wrap import use_channels_last
from common.errors import UserError
from common.snapshot import checkpoint
from main.config import Config
from tests.tiny import tiny_config, use_random_data

ROOT = Path(__file__).resolve().parents[3]
CPU = torch.device('cpu')
GPU = torch.device('cuda', 0)


@pytest.mark.parametrize('device, capability, settings, want', [
    (CPU, None, [], True), (CPU, None, ['memory_format=contiguous'], False),
    (GPU, (7, 5), [], False), (GPU, (7, 5), ['amp=fp16'], True), (GPU, (8, 0), [], True), (GPU, (12, 0), [], True),
    (GPU, (8, 0), ['memory_format=contiguous'], False), (GPU, (6, 1), ['memory_format=channels_last'], True),
    (CPU, None, ['resnet_width=8'], True)])
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


@pytest.mark.parametrize('setting, want', [('auto', True), ('contiguous', False)])
def test_training_and_test_use_the_format_and_their_precision(monkeypatch, tmp_path, setting, want):
    use_random_data(monkeypatch)
    tuned = []
    monkeypatch.setattr(base, 'tune', lambda precision, width: tuned.append((precision, width)))
    config = tiny_config(tmp_path, 'lixel_epochs=1', f'memory_format={setting}')
    trainer = base.Trainer(config)
    assert format_of(trainer.model) == [want, want]
    trainer.train()
    tester = base.Tester(config, checkpoint.snapshot_path(tmp_path / 'model_dump', 0))
    tester.test()
    assert format_of(tester.model) == [want, want] and tuned == [('high', 4), ('highest', 4)]


NARROW_RUN = """
import sys
from common import base
from tests.tiny import RandomDataset, tiny_config
base.build_dataset = lambda name, split, config: RandomDataset(split, config, 2)
settings = ['input_img_shape=[256,256]', 'output_hm_shape=[64,64,64]', 'sigma=2.5', 'lixel_epochs=1', *sys.argv[2:]]
base.Trainer(tiny_config(sys.argv[1], *settings)).train()
"""


@pytest.mark.parametrize('width', [4, 8])
def test_narrow_networks_of_large_images_train_on_a_cpu(tmp_path, width):
    """In a process of their own: with oneDNN their backward pass ends it by a segmentation fault."""
    words = [sys.executable, '-c', NARROW_RUN, str(tmp_path), f'resnet_width={width}', f'head_width={width}']
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_wide_networks_use_the_fast_convolutions():
    for width in (4, 16, 8, 64):
        tune('high', width)
        assert torch.backends.mkldnn.enabled == (width >= 16)
