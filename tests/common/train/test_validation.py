"""Validation after an epoch: it changes nothing in the training, and the best snapshot is linked."""
import json
import logging
from types import SimpleNamespace

import pytest

from common import base
from common.snapshot import checkpoint
from data import open_validation
from tests.faults.running_child import read_losses
from tests.tiny import RandomDataset, tiny_config, use_random_data


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Trains, with the errors that the validations are to give; returns the folder of the run."""
    def train(name, errors, *settings):
        given = iter(errors)
        use_random_data(monkeypatch)
        monkeypatch.setattr(base, 'open_validation',
                            lambda config: RandomDataset('validation', config) if config.validate_every else None)

        def summary(dataset, results):
            assert dataset.split == 'validation' and dataset.evaluated == list(range(9))
            dataset.evaluated.clear()
            return {'metrics': {'mpjpe_lixel': next(given), 'mpjpe_param': 1.0, 'unknown': None}}

        monkeypatch.setattr(RandomDataset, 'print_eval_result', summary)
        base.Trainer(tiny_config(tmp_path / name, *settings)).train()
        assert list(given) == []
        return tmp_path / name
    return train


def rows(folder):
    lines = (folder / 'log' / 'validation.jsonl').read_text().splitlines()
    return [(row['epoch'], row['mpjpe_lixel']) for row in map(json.loads, lines)]


def test_validation_leaves_the_training_as_it_is_and_links_the_best_snapshot(run):
    plain = run('plain', [], 'lixel_epochs=4')
    validated = run('validated', [5.0, 3.0, 4.0, 3.0], 'lixel_epochs=4', 'validate_every=1', 'keep_snapshots=1')
    assert read_losses(validated) == read_losses(plain)
    assert rows(validated) == [(0, 5.0), (1, 3.0), (2, 4.0), (3, 3.0)]
    folder = validated / 'model_dump'
    best = checkpoint.best_path(folder)
    assert best.is_symlink() and checkpoint.read(best)['epoch'] == 1
    assert [epoch for epoch, _ in checkpoint.find_snapshots(folder)] == [1, 3]  # the best one is not deleted
    ours, theirs = (checkpoint.read(checkpoint.snapshot_path(run / 'model_dump', 3)) for run in (validated, plain))
    assert all((ours['network'][name] == value).all() for name, value in theirs['network'].items())


def test_a_resumed_run_remembers_the_best_and_joints_alone_are_not_validated(run):
    settings = ('lixel_epochs=6', 'pose_epochs=1', 'validate_every=2')
    folder = run('run', [4.0], 'lixel_epochs=2', *settings[1:])
    run('run', [5.0, 6.0], *settings, 'continue_train=true')
    assert rows(folder) == [(1, 4.0), (3, 5.0), (5, 6.0)]
    assert checkpoint.read(checkpoint.best_path(folder / 'model_dump'))['epoch'] == 1


def test_a_set_without_a_validation_split_is_not_validated(caplog):
    caplog.set_level(logging.INFO)
    assert open_validation(SimpleNamespace(validate_every=1, testset='FreiHAND')) is None
    assert 'no validation: FreiHAND has no such split' in caplog.text


def test_epochs_tested_are_kept_side_by_side(tmp_path, monkeypatch, caplog):
    use_random_data(monkeypatch)
    base.Trainer(tiny_config(tmp_path)).train()
    monkeypatch.setattr(RandomDataset, 'print_eval_result', lambda *_: {'metrics': {'mpjpe_lixel': 12.345}})
    for epoch in (1, 0):
        base.Tester(tiny_config(tmp_path), checkpoint.snapshot_path(tmp_path / 'model_dump', epoch)).test()
    folder = tmp_path / 'result'
    assert sorted(path.name for path in folder.iterdir()) == ['Synthetic.txt', 'Synthetic_0.json', 'Synthetic_1.json']
    assert (folder / 'Synthetic.txt').read_text().splitlines() == [
        'epochs tested on Synthetic (mm)', '    0 lixel  lixel mesh: MPJPE 12.35',
        '    1 lixel  lixel mesh: MPJPE 12.35']
    assert caplog.messages[-1] == (folder / 'Synthetic.txt').read_text()
