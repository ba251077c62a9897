"""Options of a training that need something else: compile=true a compiler, tensorboard=true a package."""
import copy
import functools
import json
import sys

import pytest
import torch

from common import base
from common.devices import wrap
from common.errors import UserError
from common.human_model import get_human_model
from common.train.optim import freeze_and_collect
from main.model import get_model
from tests.tiny import tiny_config, use_random_data
from tool.bench.network import random_batch

CPU = torch.device('cpu')


def losses_of(folder, *overrides):
    """{loss name: [of each step]} of a short training."""
    base.Trainer(tiny_config(folder, 'end_epoch=1', *overrides)).train()
    rows = [json.loads(line) for line in (folder / 'log' / 'metrics.jsonl').read_text().splitlines()]
    return {name: [row[name] for row in rows] for name in rows[0] if name.startswith('loss')}


def test_a_compiled_network_has_the_losses_and_gradients_of_the_plain_one(tmp_path, monkeypatch):
    """Traced forward and backward as for any compiler, and then run by PyTorch: to compile them would take minutes."""
    traced, backend = [], torch._dynamo.lookup_backend('aot_eager')
    monkeypatch.setattr(torch, 'compile', functools.partial(
        torch.compile, backend=lambda graph, inputs: traced.append(graph) or backend(graph, inputs)))
    monkeypatch.setattr(wrap.shutil, 'which', lambda name: name)
    torch._dynamo.reset()
    config, found = tiny_config(tmp_path, 'heatmap_loss_weight=1'), []
    body = copy.deepcopy(get_human_model(config.human_model)).double()
    torch.manual_seed(0)
    batch = [{name: value.double() for name, value in part.items()} for part in random_batch(body, config, 2, CPU)]
    for compiled in (False, True):
        torch.manual_seed(0)
        model = get_model(config, body, 'train').double().train()
        freeze_and_collect(model)
        losses = wrap.wrap(model, [CPU], compiled=compiled)(*batch, 'train')
        sum(loss.mean() for loss in losses.values()).backward()
        found.append((losses, {name: p.grad for name, p in model.named_parameters() if p.requires_grad}))
    assert traced and all(gradient is not None for gradient in found[0][1].values())
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(theirs, ours, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(('settings', 'named'), [({}, r'g\+\+'), ({'CXX': '/nowhere/icpx'}, '/nowhere/icpx')])
def test_without_a_compiler_there_is_one_line(settings, named, tmp_path, monkeypatch):
    use_random_data(monkeypatch)
    monkeypatch.delenv('CXX', raising=False)
    for name, value in {**settings, 'PATH': str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=r'compile=true needs a C\+\+ compiler, and there is no ' + named + ' here'):
        losses_of(tmp_path, 'compile=true')


def test_without_tensorboard_there_is_one_line(tmp_path, monkeypatch):
    use_random_data(monkeypatch)
    monkeypatch.setitem(sys.modules, 'tensorboard', None)
    with pytest.raises(UserError, match='tensorboard=true needs the package "tensorboard" .*: pip install tensorboard'):
        losses_of(tmp_path, 'tensorboard=true')


def test_tensorboard_shows_every_loss_of_every_step(tmp_path, monkeypatch):
    events = pytest.importorskip('tensorboard.backend.event_processing.event_accumulator')
    use_random_data(monkeypatch)
    losses = losses_of(tmp_path, 'tensorboard=true')
    shown = events.EventAccumulator(str(tmp_path / 'log')).Reload()
    assert {*losses, 'lr'} == set(shown.Tags()['scalars'])
    for name, values in losses.items():
        assert [event.value for event in shown.Scalars(name)] == pytest.approx(values, rel=1e-6)
        assert [event.step for event in shown.Scalars(name)] == list(range(len(values)))
