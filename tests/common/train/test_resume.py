"""What a resumed or a long training must not get wrong: augmentation, random numbers, settings of this run."""
import random

import numpy as np
import pytest
import torch

from common import base
from common.errors import UserError
from common.snapshot import checkpoint
from common.train import random_state
from common.train.loader import EpochView, TrainBatches, make_loader
from common.train.start import Start, load_state
from tests.tiny import RandomDataset, tiny_config, use_random_data


def draw():
    """One number of every generator."""
    return [torch.rand(1).item(), np.random.rand(), random.random()]


def test_random_numbers_go_on_where_they_were_captured():
    random_state.seed_all(3)
    draw()
    state = random_state.capture()
    first = draw()
    assert draw() != first
    random_state.restore(state)
    assert draw() == first


@pytest.mark.parametrize('workers', [0, 1])
def test_every_epoch_has_its_own_augmentation(workers, tmp_path):
    data = RandomDataset('train', tiny_config(tmp_path), length=4)
    batches = TrainBatches(4, 2, seed=0)
    loader = make_loader(EpochView(data), batches, workers, pin_memory=False)
    for epoch in (0, 1, 5, 1):
        batches.set_position(epoch)
        images = torch.cat([inputs['img'] for inputs, _, _ in loader])
        order = [index for batch in batches for _, index in batch]
        data.set_epoch(epoch)
        expected = torch.stack([torch.from_numpy(data[index][0]['img']) for index in order])
        assert torch.equal(images, expected)
        data.set_epoch(-1)  # no number of an epoch: the view has to set it


def optimizer_with(weight_decay):
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    return torch.optim.AdamW([weight], lr=0.1, weight_decay=weight_decay)


def test_an_exact_resume_restores_all_but_the_weight_decay():
    before = optimizer_with(weight_decay=0.1)
    before.step()
    random_state.seed_all(3)
    state = {'step': 2, 'step_size': 2, 'samples': 9, 'scaler': {}, 'random': random_state.capture()}
    content = {'optimizer': before.state_dict(), 'state': state}
    expected = draw()
    after = optimizer_with(weight_decay=0.5)
    start = Start(epoch=1, content=content, exact=True)
    load_state(start, after, torch.amp.GradScaler('cpu', enabled=False), {'step_size': 2, 'samples': 9})
    assert draw() == expected and start.step == 2
    assert after.param_groups[0]['weight_decay'] == 0.5
    assert torch.equal(after.state_dict()['state'][0]['exp_avg'], before.state_dict()['state'][0]['exp_avg'])


def test_a_loss_that_is_not_finite_is_noticed_before_a_snapshot(tmp_path, monkeypatch):
    """The log looks at losses every 100 steps only, a snapshot is due after the second."""
    use_random_data(monkeypatch)
    with pytest.raises(UserError, match='not finite at epoch 0 itr 1'):
        base.Trainer(tiny_config(tmp_path, 'lr=1e30', 'log_every=100', 'snapshot_every=2')).train()
    assert not checkpoint.find_snapshots(tmp_path / 'model_dump')
