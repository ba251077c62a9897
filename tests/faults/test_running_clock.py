"""The computer's clock is put back, or was never set, while a training runs."""
import itertools
import re
import sys
import time

import pytest
from tqdm import tqdm

from common import base
from common.train import monitor
from tests.tiny import tiny_config, use_random_data


@pytest.mark.parametrize('now', [itertools.count(1.8e9, -3600), itertools.cycle([1.8e9, 0.0]), itertools.repeat(0.0)],
                         ids=['an hour back at each look', 'to and fro', 'stands still in 1970'])
def test_a_clock_that_goes_backwards(tmp_path, monkeypatch, capsys, now):
    use_random_data(monkeypatch)
    monkeypatch.setattr(time, 'time', lambda: next(now))
    monkeypatch.setattr('tqdm.std.time', time.time)
    monkeypatch.setattr(monitor, 'tqdm', lambda **options: tqdm(**{**options, 'disable': False, 'file': sys.stderr}))
    assert base.Trainer(tiny_config(tmp_path)).train()
    lines = re.findall(r'Epoch .*speed: (\S+)\((\S+)s r(\S+)\)s/itr (\S+)h/epoch', capsys.readouterr().out)
    assert len(lines) == 8 and all(float(value) >= 0 for line in lines for value in line)
    assert (tmp_path / 'model_dump' / 'snapshot_1.pth.tar').exists()
