"""No step of training sends a constant from the host to the device.

The step runs on tensors without values on a device that stands for a GPU, and every operation is looked at. Only the
batch may come from the host.
"""
import contextlib
import copy

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from common.human_model import get_human_model
from common.train.loop import train_step
from common.train.optim import freeze_and_collect, make_optimizer
from main.model import get_model
from tests.tiny import tiny_config
from tool.bench.network import random_batch

DEVICE, CUDA = torch.device('meta'), torch.device('cuda', 0)
KEPT = torch.ones(4)  # as a module holds it that should have made it a buffer


class HostTensors(TorchDispatchMode):
    """Notes every operation that reads or makes a tensor on the host."""

    def __init__(self):
        super().__init__()
        self.operations = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        tensors = [x for x in tree_leaves((args, kwargs, out)) if isinstance(x, torch.Tensor)]
        if any(x.device.type == 'cpu' for x in tensors):
            self.operations.append(str(func))
        return out


class HostNumbers(TorchFunctionMode):
    """Notes every function that makes a tensor of lists or arrays: on this device it leads to no operation."""

    def __init__(self):
        super().__init__()
        self.operations = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        index = [] if func is not torch.Tensor.__getitem__ else args[1] if isinstance(args[1], tuple) else [args[1]]
        if func in (torch.tensor, torch.as_tensor, torch.from_numpy, torch.Tensor.new_tensor) or any(
                isinstance(part, (list, np.ndarray)) for part in index):
            self.operations.append(str(func))
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def watch():
    """Yields a list of what is sent from the host, filled when the context ends."""
    found = []
    with HostNumbers() as numbers, HostTensors() as tensors:
        yield found
    found += numbers.operations + tensors.operations


CONSTANTS = {
    'tensor': lambda x: torch.tensor([1., 2], device=x.device), 'new_tensor': lambda x: x.new_tensor([1.]),
    'as_tensor': lambda x: torch.as_tensor([1.], device=x.device), 'no buffer': lambda x: x + KEPT.to(x.device),
    'from_numpy': lambda x: torch.from_numpy(np.ones(4)).to(x.device), 'number': lambda x: x * torch.tensor(2.),
    'index by a list': lambda x: x[[0, 1]], 'index by an array': lambda x: x[:, np.array([0, 1])]}


@pytest.mark.parametrize('constant', CONSTANTS.values(), ids=CONSTANTS)
def test_constants_are_noticed(constant):
    x = torch.empty(3, 4, device=DEVICE)
    with watch() as sent:
        constant(x)
    assert sent


def test_what_is_made_on_the_device_is_no_constant():
    with watch() as sent:
        x = torch.empty(3, 4, device=DEVICE)
        torch.where(x > 0, x * 2. + 1, 0).clamp_min(1e-3)
        torch.arange(3, device=DEVICE) + torch.eye(3, device=DEVICE) + torch.full((3,), 2., device=DEVICE)
    assert not sent


@pytest.mark.parametrize('settings', [
    ['heatmap_loss_weight=1'], ['orig_joint_loss=false', 'freeze_pose=true'], ['pose only', 'heatmap_loss_weight=1'],
    ['stage=param'], ['stage=param', 'freeze_bn=true'], ['grad_accum=2'], ['body_model=open_hand'],
    ['body_model=open_hand', 'stage=param']], ids=' '.join)
def test_a_training_step_sends_nothing(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(torch, 'autocast', lambda *args, **options: contextlib.nullcontext())  # not for this device
    config = tiny_config(tmp_path, 'clip_grad=1', *(item for item in settings if '=' in item))
    model = copy.deepcopy(get_model(config, get_human_model(config.human_model), 'train')).to(DEVICE).train()
    model.pose_only = 'pose only' in settings
    parameters = freeze_and_collect(model)
    optimizer = torch.optim.SGD(parameters)
    scaler = torch.amp.GradScaler('cpu', enabled=False)
    batches = [random_batch(model.human_model, config, 2, DEVICE) for _ in range(config.grad_accum)]
    with watch() as sent:
        losses = train_step(model, optimizer, scaler, batches, DEVICE, config.clip_grad)
    assert losses and all(value.device == DEVICE for value in losses.values())
    assert not sent


@pytest.mark.parametrize('name', ['adam', 'adamw'])
def test_the_optimiser_sends_nothing(name):
    with FakeTensorMode():  # the fused optimisers know no device but real ones
        parameters = [torch.nn.Parameter(torch.empty(shape, device=CUDA)) for shape in ((3, 4), (4,))]
        for parameter in parameters:
            parameter.grad = torch.empty_like(parameter)
        optimizer = make_optimizer(name, parameters, 1e-3, 0.1)
        with watch() as sent:
            for _ in range(2):
                optimizer.step()
    assert not sent and optimizer.state[parameters[0]]['step'].device == CUDA


@pytest.mark.parametrize('body', ['open_body', 'open_hand'])
def test_every_tensor_of_a_module_follows_it_to_a_device(body, tmp_path):
    model = get_model(tiny_config(tmp_path, f'body_model={body}'), get_human_model(body), 'train')
    for name, module in model.named_modules():
        plain = {key for key, value in vars(module).items() if key not in ('_parameters', '_buffers', '_modules')
                 for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)}
        assert not plain, f'{name}: {plain}'
