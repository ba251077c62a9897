"""Learning rates against the published tables; batches; which parameters are trained."""
import math

import numpy as np
import pytest

from common.errors import UserError
from common.human_model import get_human_model
from common.train.loader import TrainBatches, shard
from common.train.optim import Schedule, freeze_and_collect, make_optimizer
from main.config import Config
from main.model import get_model
from tests.tiny import tiny_config


@pytest.mark.parametrize(('hand', 'stage', 'first', 'table'), [
    (False, 'lixel', 0, {1e-4: range(0, 10), 1e-5: range(10, 12), 1e-6: range(12, 13)}),
    (False, 'param', 13, {1e-4: range(13, 15), 1e-5: range(15, 17), 1e-6: range(17, 18)}),
    (True, 'lixel', 0, {1e-4: range(0, 17), 1e-5: range(17, 21), 1e-6: range(21, 25)}),
    (True, 'param', 25, {1e-5: range(25, 26), 1e-6: range(26, 30)})])
def test_published_learning_rates(hand, stage, first, table):
    config = Config()
    config.override(['body_model=' + ('mano' if hand else 'smpl'), f'stage={stage}'])
    schedule = Schedule(config.lr_schedule, config.lr, config.lr_dec_factor, config.lr_dec_epoch, first,
                        config.end_epoch, steps_per_epoch=100)
    epochs = [epoch for span in table.values() for epoch in span]
    assert epochs == list(range(first, config.end_epoch))
    for rate, span in table.items():
        for epoch in span:
            assert schedule.at(epoch) == schedule.at(epoch, 99) == pytest.approx(rate, rel=1e-12)


def test_cosine_and_warmup():
    schedule = Schedule('cosine', 1.0, 10, [], start_epoch=2, end_epoch=4, steps_per_epoch=10, warmup=4)
    assert [schedule.at(2, step) for step in range(4)] == pytest.approx(
        [(step + 1) / 4 * 0.5 * (1 + math.cos(math.pi * step / 20)) for step in range(4)])
    assert schedule.at(3, 0) == pytest.approx(0.5) and schedule.at(3, 9) == pytest.approx(0.00616, abs=1e-5)
    step = Schedule('step', 1.0, 10, [1], 0, 2, 10, warmup=2)
    assert [step.at(0, 0), step.at(0, 1), step.at(0, 2), step.at(1, 0)] == [0.5, 1, 1, 0.1]
    assert step.table() == 'epochs 0..0: 1, epochs 1..1: 0.1'


def keys(batches, epoch, start=0):
    batches.set_position(epoch, start)
    return list(batches)


def test_batches_are_a_function_of_seed_and_epoch():
    batches = TrainBatches(17, 4, seed=1)
    first = keys(batches, 0)
    assert len(first) == 4 and all(len(batch) == 4 for batch in first)  # the 17th sample is dropped
    assert len({index for batch in first for _, index in batch}) == 16
    assert first == keys(TrainBatches(17, 4, seed=1), 0) and {epoch for batch in first for epoch, _ in batch} == {0}
    assert first != keys(TrainBatches(17, 4, seed=2), 0)
    assert [i for b in first for _, i in b] != [i for b in keys(batches, 1) for _, i in b]
    assert keys(batches, 0, start=3) == first[3:] and len(batches) == 1


def test_any_split_of_a_step_sees_the_same_samples():
    whole = [sorted(batch) for batch in keys(TrainBatches(25, 8, seed=0), 5)]
    ranks = [keys(TrainBatches(25, 4, seed=0, rank=rank, world=2), 5) for rank in (0, 1)]
    assert [sorted(a + b) for a, b in zip(*ranks, strict=True)] == whole
    small = keys(TrainBatches(25, 2, seed=0, accum=4), 5)
    assert [sorted(sum(small[i:i + 4], [])) for i in range(0, len(small), 4)] == whole
    with pytest.raises(UserError, match='has 25 samples, but one step takes 26'):
        TrainBatches(25, 13, seed=0, accum=2)


@pytest.mark.parametrize('world', [1, 2, 8])
def test_the_test_set_is_shared_out_in_order(world):
    parts = [shard(17, 4, rank, world) for rank in range(world)]
    assert [i for part in parts for batch in part for i in batch] == list(range(17))
    assert all(np.diff(batch).tolist() == [1] * (len(batch) - 1) for part in parts for batch in part)


def test_each_stage_trains_its_own_parameters():
    human_model = get_human_model('open_body')
    counts = {}
    for stage in ('lixel', 'param'):
        model = get_model(tiny_config('/nonexistent', f'stage={stage}'), human_model, 'test')
        trained = freeze_and_collect(model)
        names = {name.split('.')[0] for name, p in model.named_parameters() if p.requires_grad}
        assert ('param_regressor' in names) == (stage == 'param')
        counts[stage] = len(trained)
        unused = [name for name, p in model.named_parameters() if not p.requires_grad]
        assert stage == 'param' or all(name.startswith(('param_regressor', 'mesh_backbone.conv1', 'mesh_backbone.bn1'))
                                       for name in unused)
    total = len(list(model.parameters()))
    assert counts['lixel'] + counts['param'] == total - 3  # the mesh backbone's unused stem: one convolution, one norm


def test_optimisers():
    human_model = get_human_model('open_body')
    trained = freeze_and_collect(get_model(tiny_config('/nonexistent'), human_model, 'test'))
    optimizer = make_optimizer('adamw', trained, 1e-3, 0.1)
    decays = {group['weight_decay']: {p.ndim > 1 for p in group['params']} for group in optimizer.param_groups}
    assert decays == {0.1: {True}, 0.0: {False}} and optimizer.defaults['betas'] == (0.9, 0.999)
    assert sum(len(group['params']) for group in optimizer.param_groups) == len(trained)
