"""What the log says about the speed of the loader processes."""
import logging
import multiprocessing
from types import SimpleNamespace

import pytest

from common import base
from common.train import pace
from common.train.pace import Pace
from common.train.transport import Transport
from tests.tiny import tiny_config, use_random_data


def lines(caplog, workers, rate, steps):
    """What a Pace says of steps of 8 samples, given as (number, seconds, seconds of waiting)."""
    transport = SimpleNamespace(workers=workers, rate=rate)
    with caplog.at_level(logging.INFO):
        one = Pace(transport, step_size=8)
        for step in steps:
            one.add(*step)
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_loading_that_keeps_up_is_one_line(caplog):
    """80 images in 2 s, 2 % of it waiting; the slow first steps do not count."""
    said = lines(caplog, 4, 1000., [(1, 60, 50), (5, 1, .02), (5, 1, .02), (10, 9, 9)])
    assert said == [('INFO', 'loader processes: 4; together they can read 1000 images/s here (measured on the first '
                             'batches)')]


def test_loading_that_is_too_slow_is_a_warning(caplog, monkeypatch):
    monkeypatch.setattr(pace, 'core_count', lambda: 16)
    _, (level, text) = lines(caplog, 2, 42., [(1, 1, 0), (10, 2, .8)])
    assert level == 'WARNING'
    assert text == ('the network is faster than the loading: 40% of the time is spent waiting for data (40 images/s '
                    'are trained on): raise num_thread (this machine has 16 cores), put the data on a faster disk, or '
                    'make the images smaller')


@pytest.mark.parametrize(('workers', 'rate', 'levels'), [
    (2, 400., ['INFO']),  # a GPU that is busy while the program waits
    (0, 400., ['INFO', 'WARNING'])])  # no loader processes: reading and training take turns
def test_waiting_alone_is_no_fault(caplog, workers, rate, levels):
    assert [level for level, _ in lines(caplog, workers, rate, [(1, 1, 0), (10, 2, .8)])] == levels


def test_few_steps_say_nothing(caplog):
    assert lines(caplog, 2, 1., [(100, 1, 1), (9, 1, 1)]) == []


def test_the_rate_is_that_of_all_processes_at_the_usual_speed():
    transport = Transport(3, pin_memory=False)
    assert transport.rate == 0
    transport.seconds = [5., .01, .01, .02, .01]  # the first batch starts everything
    assert transport.rate == pytest.approx(300)


@pytest.mark.parametrize('workers', [0, 1])
def test_a_training_says_it_once(workers, monkeypatch, tmp_path):
    use_random_data(monkeypatch, length=24)
    trainer = base.Trainer(tiny_config(tmp_path, f'num_thread={workers}', 'end_epoch=2'))
    trainer.train()
    assert not multiprocessing.active_children()  # the loader processes end with the training
    text = (tmp_path / 'log' / 'train_logs.txt').read_text()
    assert text.count(f'loader processes: {workers}; ') == text.count(' images/s here') == 1
