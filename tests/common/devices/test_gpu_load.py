"""Load and memory of the GPUs in the training log."""
import logging

import pytest
import torch

from common.devices import gpus
from common.train import monitor
from common.train.metrics_file import MetricsFile


@pytest.mark.parametrize('visible, names', [('2,5', ['gpu2', 'gpu5']), (None, ['gpu0', 'gpu1'])])
def test_the_log_line_shows_every_gpu_under_its_number(monkeypatch, visible, names, caplog):
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if visible:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
    monkeypatch.setattr(gpus, '_nvml', True)
    for name, value in {'device_count': lambda: 2, 'utilization': lambda i: 90 + i,
                        'max_memory_allocated': lambda i: (i + 1) * 2 ** 30}.items():
        monkeypatch.setattr(gpus.torch.cuda, name, value)
    assert gpus.load_report() == f'{names[0]} 90% 1.0GB {names[1]} 91% 2.0GB'

    def missing(i):
        raise ModuleNotFoundError('no pynvml')

    monkeypatch.setattr(gpus.torch.cuda, 'utilization', missing)
    for _ in range(2):
        assert gpus.load_report() == f'{names[0]} 1.0GB {names[1]} 2.0GB'
    assert caplog.text.count('pip install nvidia-ml-py') == 1


@pytest.fixture
def metrics(tmp_path, caplog):
    """Takes the rows; what is logged is in caplog."""
    caplog.set_level(logging.INFO, 'common')
    return MetricsFile(tmp_path)


def test_reading_is_counted_per_step(metrics, caplog):
    """A step that accumulates two batches reads twice."""
    watch = monitor.Monitor(metrics, 0, 1, 0, 4, 4)
    watch.total.total, watch.total.calls = 8.0, 4
    watch.read.total, watch.read.calls = 6.0, 8
    watch.pending = [monitor.Step(3, 1e-4, {'joint_fit': torch.tensor(1.)})]
    watch.flush()
    assert 'speed: 2.00(0.50s r1.50)s/itr' in caplog.messages[0]


def test_the_first_process_shows_the_gpus_of_all(monkeypatch, metrics, caplog):
    monkeypatch.setattr(monitor.processes, 'gather_objects', lambda text: [text, 'gpu1 80% 3.0GB'])
    monkeypatch.setattr(monitor, 'load_report', lambda: 'gpu0 90% 3.0GB')
    with monitor.Monitor(metrics, 0, 1, 0, 1, 1) as watch:
        watch.step_done(0, 1e-4, {'joint_fit': torch.tensor(2.)})
    assert caplog.messages[0].endswith('loss_joint_fit: 2.0000 gpu0 90% 3.0GB gpu1 80% 3.0GB')
