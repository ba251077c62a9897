"""A machine without a GPU starts no second Python to count them."""
import subprocess
from types import SimpleNamespace

import pytest
import torch

from common.devices import gpus
from common.errors import UserError
from main.cli import configure, make_parser


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """machine(device files, CUDA version of PyTorch): here from now on; PyTorch itself finds no GPU."""
    def make(files, cuda='13.0'):
        for name in files:
            (tmp_path / name).touch()
        monkeypatch.setattr(gpus, 'DEVICES', tmp_path)
        monkeypatch.setattr(torch.version, 'cuda', cuda)
        monkeypatch.setattr(torch.version, 'hip', None)
        monkeypatch.setattr(torch.cuda, 'device_count', lambda: 0)
        monkeypatch.setattr(gpus, '_VISIBLE_AT_START', None)

    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '0')  # for what follows to be undone
    return make


@pytest.mark.parametrize('words', [[], ['--gpu', '0'], ['--gpu', 'cpu']])
@pytest.mark.parametrize(('files', 'cuda', 'visible'), [
    ((), '13.0', None), (('null', 'tty'), '13.0', None), (('nvidia0', 'nvidiactl'), None, None),
    (('nvidia0',), '13.0', '')])
def test_no_second_process_is_started(words, files, cuda, visible, machine, monkeypatch):
    machine(files, cuda)
    monkeypatch.setattr(gpus, '_VISIBLE_AT_START', visible)
    monkeypatch.setattr(subprocess, 'Popen', lambda *_, **__: pytest.fail('a process is started'))
    configure(make_parser('').parse_intermixed_args(words))
    assert gpus.devices() == [torch.device('cpu')]


@pytest.mark.parametrize('file', ['nvidia0', 'nvidiactl', 'nvhost-gpu', 'dxg', 'kfd'])
def test_with_a_driver_the_gpus_are_counted(file, machine, monkeypatch):
    """`--gpu 5` where there are two: PyTorch, which was told of 5 alone, finds none."""
    machine([file])
    monkeypatch.setattr(subprocess, 'run', lambda *_, **__: SimpleNamespace(returncode=0, stdout='2'))
    with pytest.raises(UserError, match='this machine shows 2 GPUs, ids 0, 1'):
        gpus.select_gpus('5')
