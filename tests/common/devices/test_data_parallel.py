"""DataParallel through the engine, on simulated devices: any number of them gives what one gives."""
import json

import numpy as np
import pytest
import torch
from torch import nn

from common import base
from common.devices import wrap as devices_wrap
from common.devices.wrap import wrap
from common.human_model import get_human_model
from common.snapshot import checkpoint
from common.train.optim import freeze_and_collect
from main.model import get_model
from tests.tiny import RandomDataset, tiny_config, use_random_data
from tool.bench.network import random_batch
from tool.gpus.simulation import cpu_devices, simulated_devices

STAGES = {'lixel': ['heatmap_loss_weight=1'], 'pose only': [], 'frozen pose': ['freeze_pose=true'],
          'param': ['stage=param'], 'hand param': ['stage=param', 'body_model=open_hand'],
          'hand lixel': ['body_model=open_hand']}


@pytest.fixture
def sent():
    """The numbers sent between the simulated devices."""
    with simulated_devices() as sent:
        yield sent


@pytest.fixture
def fixed_batchnorm(monkeypatch):
    """BatchNorm in eval mode: then a batch may be split in any way."""
    monkeypatch.setattr(nn.modules.batchnorm._BatchNorm, 'train',
                        lambda self, mode=True: nn.Module.train(self, False))


def losses_and_gradients(name, replicas, size):
    """One pass over a random batch in float64."""
    config = tiny_config('unused', *STAGES[name])
    body = get_human_model(config.human_model)
    torch.manual_seed(0)
    model = get_model(config, body, 'train').double()
    model.pose_only = name == 'pose only'
    freeze_and_collect(model)
    net = wrap(model, cpu_devices(replicas))
    assert isinstance(net, nn.DataParallel) == (replicas > 1)
    net.train()
    batch = random_batch(body, config, size, torch.device('cpu'))
    losses = net(*[{key: value.double() for key, value in part.items()} for part in batch], 'train')
    sum(loss.mean() for loss in losses.values()).backward()
    gradients = {key: value.grad for key, value in model.named_parameters() if value.grad is not None}
    assert {key for key, value in model.named_parameters() if value.requires_grad} == set(gradients)
    return losses, gradients


@pytest.mark.parametrize('size', [5, 7, 12])
@pytest.mark.parametrize('name', STAGES)
def test_losses_and_gradients_do_not_depend_on_the_replicas(sent, fixed_batchnorm, name, size):
    want_losses, want_gradients = losses_and_gradients(name, 1, size)
    for replicas in (2, 3, 4):
        losses, gradients = losses_and_gradients(name, replicas, size)
        assert losses.keys() == want_losses.keys() and gradients.keys() == want_gradients.keys()
        for key, loss in losses.items():
            assert loss.shape == (size,) and (loss - want_losses[key]).abs().max() < 1e-9
        for key, gradient in gradients.items():
            assert (gradient - want_gradients[key]).abs().max() < 1e-9, key
    assert sent['gradients'] > 0


def train(monkeypatch, folder, replicas, *overrides):
    """Train on so many devices; returns the Trainer and the losses of its steps."""
    monkeypatch.setattr(base, 'devices', lambda: cpu_devices(replicas))
    trainer = base.Trainer(tiny_config(folder, *overrides))
    assert trainer.train() and isinstance(trainer.loop.net, nn.DataParallel) == (replicas > 1)
    rows = (folder / 'log' / 'metrics.jsonl').read_text().splitlines()
    return trainer, [json.loads(row)['loss'] for row in rows]


RUNS = {'plain': [], 'settings': ['lr_schedule=cosine', 'optimizer=adamw', 'warmup_iters=3', 'clip_grad=1',
                                  'weight_decay=0.01', 'grad_accum=2'],
        'pose epochs': ['pose_epochs=1', 'heatmap_loss_weight=1'], 'hand': ['body_model=open_hand']}

COUNTS = {'settings': (1, 2, 4)}


def weights(trainer):
    return torch.cat([value.flatten().double() for value in trainer.model.state_dict().values()])


@pytest.mark.parametrize('name', RUNS)
def test_a_run_on_several_devices_is_that_on_one(sent, fixed_batchnorm, monkeypatch, tmp_path, name):
    """Both stages; the same samples in the same steps, with the same losses and, up to rounding, weights at the end."""
    use_random_data(monkeypatch, length=29)
    runs = {}
    for replicas in COUNTS.get(name, (1, 3)):
        settings = [*RUNS[name], f'train_batch_size={12 // replicas}', 'lr=1e-4', 'lixel_epochs=2', 'param_epochs=1']
        folder = tmp_path / str(replicas)
        train(monkeypatch, folder, replicas, *settings)
        runs[replicas] = train(monkeypatch, folder, replicas, *settings, 'stage=param', 'continue_train=true')
    trainer, losses = runs.pop(1)
    assert len(losses) == 3 * (29 // trainer.batches.step_size)
    for other, others in runs.values():
        assert np.allclose(others, losses, rtol=1e-4)
        assert (weights(other) - weights(trainer)).abs().mean() < 1e-5  # Adam's steps are of 1e-4


def test_batchnorm_averages_are_those_of_the_first_device(sent, monkeypatch, tmp_path):
    """They move, and count every step once."""
    use_random_data(monkeypatch, length=29)
    trainer, _ = train(monkeypatch, tmp_path, 3, 'train_batch_size=4')
    norm = trainer.model.pose_backbone.bn1
    assert (norm.running_var - 1).abs().max() > 0.01 and norm.num_batches_tracked == 2 * 2


@pytest.mark.parametrize('body', ['open_body', 'open_hand'])
def test_a_test_on_several_devices_is_that_on_one(sent, monkeypatch, tmp_path, body):
    """29 samples by 3 per device: the last batch has fewer than the rest, and may leave devices idle."""
    use_random_data(monkeypatch, length=29)
    settings = [f'body_model={body}', 'lixel_epochs=1', 'param_epochs=1']
    train(monkeypatch, tmp_path, 1, *settings)
    train(monkeypatch, tmp_path, 1, *settings, 'stage=param', 'continue_train=true')
    path = checkpoint.snapshot_path(tmp_path / 'model_dump', 1)
    outputs = []
    plain = RandomDataset.evaluate

    def evaluate(self, outs, start):
        outputs.append(outs)
        return plain(self, outs, start)

    monkeypatch.setattr(RandomDataset, 'evaluate', evaluate)
    for stage in ('lixel', 'param'):
        results = {}
        for replicas in (1, 2, 3, 4):
            monkeypatch.setattr(base, 'devices', lambda count=replicas: cpu_devices(count))
            outputs.clear()
            tester = base.Tester(tiny_config(tmp_path, *settings), path, stage)
            assert tester.test() == {'row': 14.0}
            results[replicas] = {key: np.concatenate([outs[key] for outs in outputs]) for key in outputs[0]}
        want = results.pop(1)
        assert ('mesh_coord_cam' in want) == (stage == 'param') and len(want['mesh_coord_img']) == 29
        for got in results.values():
            assert got.keys() == want.keys()
            for key, value in got.items():
                assert np.abs(value - want[key]).max() < 1e-4, key


def test_batches_go_to_their_devices_in_parts_straight_from_the_host(sent, monkeypatch, tmp_path, caplog):
    """Not whole to the first device; a training also says how to be faster."""
    use_random_data(monkeypatch, length=9)
    monkeypatch.setattr(devices_wrap, 'to_device', lambda *args: pytest.fail('a copy of the whole batch'))
    settings = ['lixel_epochs=1']
    with caplog.at_level('INFO', 'common'):
        train(monkeypatch, tmp_path, 3, *settings)
    assert 'torchrun --nproc_per_node 3 main/train.py' in caplog.text and sent['batches'] > 0
    base.Tester(tiny_config(tmp_path), checkpoint.snapshot_path(tmp_path / 'model_dump', 0)).test()


@pytest.mark.parametrize('name', STAGES)
def test_the_replicas_get_what_is_trained_alone(sent, name):
    """In every step; all else once. Three steps of SGD with batch statistics give what PyTorch's DataParallel gives."""
    config = tiny_config('unused', *STAGES[name])
    body = get_human_model(config.human_model)
    results = []
    for ours in (True, False):
        torch.manual_seed(0)
        model = get_model(config, body, 'train').double()
        model.pose_only = name == 'pose only'
        parameters = freeze_and_collect(model)
        net = wrap(model, cpu_devices(3))
        if not ours:
            net = nn.DataParallel(net.module, [0, 1, 2])
        net.train()
        optimizer = torch.optim.SGD(parameters, lr=1e-3)
        torch.manual_seed(1)
        for step in range(3):
            batch = random_batch(body, config, 8, torch.device('cpu'))
            sent.clear()
            losses = net(*[{key: value.double() for key, value in part.items()} for part in batch], 'train')
            sum(loss.mean() for loss in losses.values()).backward()
            optimizer.step()
            optimizer.zero_grad()
            trained = sum(parameter.numel() for parameter in parameters)
            if ours and step:
                assert sent['weights'] == sent['gradients'] == trained
        results.append(model.state_dict())
    for key, value in results[0].items():
        assert (value - results[1][key]).abs().double().max() < 1e-9, key


def test_a_test_sends_the_network_once(sent):
    config = tiny_config('unused', 'stage=param')
    body = get_human_model(config.human_model)
    net = wrap(get_model(config, body, 'test').eval().requires_grad_(False), cpu_devices(3))
    batch = random_batch(body, config, 2, torch.device('cpu'))  # fewer samples than devices at first
    with torch.inference_mode():
        net(*batch, 'test')
        assert sent['weights'] > 0
        sent.clear()
        outs = net(*random_batch(body, config, 8, torch.device('cpu')), 'test')
    assert sent['weights'] == 0 and len(outs['mesh_coord_cam']) == 8
