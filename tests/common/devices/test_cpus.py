"""The number of CPU cores in containers."""
import os

import pytest
import torch

from common.devices import cpus
from main import cli


@pytest.mark.parametrize(('files', 'quota'), [
    ({'cpu.max': '150000 100000\n'}, 1.5), ({'cpu.max': 'max 100000\n'}, None), ({}, None),
    ({'cpu/cpu.cfs_quota_us': '400000\n', 'cpu/cpu.cfs_period_us': '100000\n'}, 4),
    ({'cpu/cpu.cfs_quota_us': '-1\n', 'cpu/cpu.cfs_period_us': '100000\n'}, None), ({'cpu.max': 'broken'}, None)])
def test_the_quota_of_a_container_counts(files, quota, tmp_path, monkeypatch):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert cpus.container_quota(tmp_path) == quota
    monkeypatch.setattr(cpus, 'CGROUP', tmp_path)
    monkeypatch.setattr(os, 'sched_getaffinity', lambda _: set(range(64)), raising=False)
    assert cpus.core_count() == {1.5: 2, 4: 4, None: 64}[quota]


@pytest.mark.parametrize(('threads', 'cores', 'used'), [(64, 2, 2), (1, 8, 1), (4, 4, 4)])
def test_pytorch_takes_no_more_threads_than_the_container_has_cores(threads, cores, used, monkeypatch):
    """It sees all cores of the machine; fewer, by OMP_NUM_THREADS, stay fewer."""
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '')  # for what follows to be undone
    set_to = []
    monkeypatch.setattr(cli, 'core_count', lambda: cores)
    monkeypatch.setattr(torch, 'get_num_threads', lambda: threads)
    monkeypatch.setattr(torch, 'set_num_threads', set_to.append)
    cli.configure(cli.make_parser('').parse_intermixed_args(['--gpu', 'cpu']))
    assert set_to == [used]
