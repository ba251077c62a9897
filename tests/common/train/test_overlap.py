"""A batch is evaluated while the network runs on the next one."""
import threading

import numpy as np
import pytest

from common import base
from common.snapshot import checkpoint
from common.train.overlap import Overlap
from tests.tiny import RandomDataset, tiny_config, use_random_data


def test_results_come_in_order_and_one_waits_at_most():
    results = []
    started = []
    release = threading.Event()

    def work(number):
        started.append(number)
        assert release.wait(60)
        return number

    with Overlap(work, results.append) as overlap:
        overlap.submit(0)
        assert not results  # the program goes on
        release.set()
        for number in range(1, 20):
            overlap.submit(number)
            assert results == list(range(number))
    assert results == started == list(range(20))


def test_an_error_of_the_work_ends_the_program():
    with pytest.raises(ZeroDivisionError), Overlap(lambda x: 1 / x, print) as overlap:
        overlap.submit(0)
    with pytest.raises(ZeroDivisionError), Overlap(lambda x: 1 / x, print) as overlap:
        overlap.submit(0)
        overlap.submit(1)


def test_the_error_of_the_program_comes_first():
    with pytest.raises(KeyError), Overlap(lambda x: 1 / x, print) as overlap:
        overlap.submit(0)
        raise KeyError


def test_the_network_runs_during_the_evaluation(monkeypatch, tmp_path):
    """29 samples by 3: the evaluation of a batch ends only after the network was called for the next one."""
    use_random_data(monkeypatch, length=29)
    config = tiny_config(tmp_path, 'lixel_epochs=1')
    base.Trainer(config).train()
    tester = base.Tester(config, checkpoint.snapshot_path(tmp_path / 'model_dump', 0))
    calls = threading.Semaphore(0)
    tester.net.register_forward_pre_hook(lambda *args: calls.release())
    plain = RandomDataset.evaluate
    starts = []

    def evaluate(self, outs, start):
        if not starts:
            assert calls.acquire(timeout=60)  # for this batch
        if start < 27:
            assert calls.acquire(timeout=60)  # for the next one
        starts.append(start)
        return plain(self, outs, start)

    monkeypatch.setattr(RandomDataset, 'evaluate', evaluate)
    assert tester.test() == {'row': 14.0}
    assert starts == list(range(0, 29, 3)) and np.array_equal(tester.dataset.results['row'], np.arange(29))
