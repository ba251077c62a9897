"""The number of CPU cores in containers."""
import os

import pytest

from common.devices import cpus


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
