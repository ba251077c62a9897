"""The full-size network on fake CUDA devices: no tensor of another device gets in, and nothing waits for the GPU.

Backward passes run on the meta device, which has no values either: PyTorch's engine asks a driver about fake CUDA ones.
"""
import contextlib
from collections import Counter

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from common.devices.wrap import wrap
from common.human_model import get_human_model
from common.nets.fuse import fold_batchnorm
from common.train.optim import freeze_and_collect
from main.config import Config
from main.model import get_model
from tool.bench.network import random_batch
from tool.gpus.simulation import simulated_devices
from tool.gpus.waits import WAITING

CASES = {'lixel': ('body', ['heatmap_loss_weight=1'], 'train'), 'pose only': ('body', [], 'train'),
         'param': ('body', ['stage=param'], 'train'), 'hand param': ('hand', ['stage=param'], 'train'),
         'test': ('body', ['stage=param'], 'test'), 'hand test': ('hand', ['stage=param'], 'test')}
SENT = {'param': (600_000, 800_000), 'hand param': (600_000, 800_000), 'test': (0, 0)}  # weights in every pass


class Watch(TorchDispatchMode):
    """Notes operations on tensors of several devices or of the CPU, and those that wait for a result."""

    def __init__(self):
        super().__init__()
        self.faults = Counter()
        self.products = Counter()  # dtypes of convolutions and matrix products

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs, out)) if isinstance(leaf, torch.Tensor)]
        kinds = {str(tensor.device) for tensor in tensors}
        name = func.overloadpacket.__name__
        copies = name == '_to_copy'  # from one device to another, as asked
        if len(kinds) > 1 and not copies or 'cpu' in kinds or name in WAITING:
            self.faults[name, tuple(sorted(kinds))] += 1
        if name in ('convolution', 'mm', 'addmm', 'bmm'):
            self.products[tensors[0].dtype] += 1
        return out


def convert(model, move):
    """Replace every parameter and buffer by what `move` makes of it."""
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(move(parameter), requires_grad=parameter.requires_grad)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = move(buffer)


def to_cuda(tensor):
    moved = tensor.detach().to('cuda:0')
    if moved.dim() == 4:
        moved = moved.contiguous(memory_format=torch.channels_last)
    return moved


def fake_network(name, mode):
    """A network of CASES on fake cuda:0, its Config and its body model; its weights are never made."""
    preset, settings, phase = CASES[name]
    config = Config()
    config.load(preset)
    config.override([f'body_model=open_{preset}', 'pretrained_backbone=false', *settings])
    body = get_human_model(config.human_model)
    convert(body, lambda tensor: mode.from_tensor(tensor.detach()))
    with mode:
        model = get_model(config, body, phase)
        model.pose_only = name == 'pose only'
        if phase == 'test':
            fold_batchnorm(model.eval()).requires_grad_(False)
        else:
            freeze_and_collect(model)
        convert(model, to_cuda)
    return config, body, model


@pytest.fixture
def mode(monkeypatch):
    """Fake CUDA devices; autocast believes in them."""
    monkeypatch.setattr(torch.cuda.amp.common, 'amp_definitely_not_available', lambda: False)
    monkeypatch.setattr(FakeTensorMode, '__deepcopy__', lambda self, memo: self, raising=False)  # for copies of layers
    return FakeTensorMode()


@pytest.fixture
def watch():
    return Watch()


@pytest.mark.parametrize('name', CASES)
def test_the_whole_network_on_cuda_devices(mode, watch, name):
    config, body, model = fake_network(name, mode)
    phase = CASES[name][2]
    model.train(phase == 'train')
    assert any(isinstance(module, nn.BatchNorm2d) for module in model.modules()) == (phase == 'train')
    for replicas, size, amp in ((1, 3, 'none'), (2, 5, 'none'), (1, 3, 'fp16'), (2, 5, 'fp16')):
        devices = [torch.device('cuda', number) for number in range(replicas)]
        with simulated_devices(mode, watch) as sent, mode, torch.set_grad_enabled(phase == 'train'), watch:
            net = wrap(model, devices, amp)
            assert isinstance(net, nn.DataParallel) == (replicas > 1)
            batch = random_batch(body, config, size, devices[0])
            for _ in range(replicas):  # the second pass sends less
                sent.clear()
                watch.products.clear()
                outs = net(*batch, phase)
        assert not watch.faults
        if replicas > 1 and name in SENT:
            low, high = SENT[name]
            assert low <= sent['weights'] <= high
        assert all(len(out) == size and out.device == devices[0] for out in outs.values())
        assert (torch.float16 in watch.products) == (amp == 'fp16')


@pytest.mark.parametrize('name', [name for name, case in CASES.items() if case[2] == 'train'])
def test_the_backward_pass_stays_on_the_device(monkeypatch, watch, name):
    monkeypatch.setattr(torch, 'autocast', lambda *args, **options: contextlib.nullcontext())
    preset, settings, _ = CASES[name]
    config = Config()
    config.load(preset)
    config.override([f'body_model=open_{preset}', 'pretrained_backbone=false', *settings])
    body = get_human_model(config.human_model)
    device = torch.device('meta')
    batch = random_batch(body, config, 3, device)
    with device:
        model = get_model(config, body, 'train').to(device)
    model.pose_only = name == 'pose only'
    trained = freeze_and_collect(model)
    with watch:
        losses = model(*batch, 'train')
        sum(loss.mean() for loss in losses.values()).backward()
    assert not watch.faults
    assert all(parameter.grad.device == device for parameter in trained)
