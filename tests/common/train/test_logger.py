"""The log: every message of a run, of the data and of its processes too, on the terminal and in the file."""
import json
import logging
import multiprocessing
import threading

import pytest
from tqdm import tqdm

from common import base
from common.train.logger import close_log, open_log, start_console
from common.train.metrics_file import MetricsFile
from main import train as program
from tests.tiny import SETTINGS, RandomDataset, tiny_config, use_random_data

STAMP = len('12-31 23:59:59 ')


def lines_of(path):
    """The lines of a log file, without their times."""
    return [line[STAMP:] for line in path.read_text().splitlines()]


def test_messages_go_to_the_terminal_and_the_file(tmp_path, capsys):
    start_console()
    logging.getLogger('main.cli').warning('before %s', 'the file is open')
    open_log(tmp_path / 'log', 'train_logs')
    logging.getLogger('common.train').info('two\nlines')
    logging.getLogger('common.train').debug('a detail')
    logging.getLogger('another.package').info('its own business')
    logging.getLogger('another.package').warning('odd')
    out, err = capsys.readouterr()
    assert out == 'two\nlines\n' and err == 'warning: before the file is open\nwarning: odd\n'
    path = tmp_path / 'log' / 'train_logs.txt'
    assert lines_of(path) == ['warning: before the file is open', 'two', 'lines', 'warning: odd']
    assert path.read_text()[2] == '-' and path.read_text()[STAMP - 1] == ' '


def test_a_new_log_takes_the_place_of_the_old_one(tmp_path, capsys):
    for name in ('a', 'b'):
        open_log(tmp_path, name)
        logging.getLogger('data.files').warning(name)
    assert (lines_of(tmp_path / 'a.txt'), lines_of(tmp_path / 'b.txt')) == (['warning: a'], ['warning: b'])
    close_log()
    logging.getLogger('data.files').warning('after the end')
    assert capsys.readouterr().err == 'warning: a\nwarning: b\n'
    assert not logging.getLogger('data.files').isEnabledFor(logging.INFO)


class Warns(RandomDataset):
    """Data that complain when they are opened, and about a sample that a loader process reads."""

    def __init__(self, *args):
        super().__init__(*args)
        logging.getLogger('data.checks').warning('3 x fit not finite')

    def __getitem__(self, index):
        if index == 0:
            logging.getLogger('data.mesh_dataset').warning('sample 0 is replaced')
        return super().__getitem__(index)


@pytest.mark.parametrize('workers', [0, 1])
def test_the_warnings_of_the_data_are_in_the_log_of_a_training(tmp_path, monkeypatch, workers):
    monkeypatch.setattr(base, 'build_dataset', lambda name, split, config: Warns(split, config))
    base.Trainer(tiny_config(tmp_path, f'num_thread={workers}', 'train_batch_size=3')).train()
    lines = lines_of(tmp_path / 'log' / 'train_logs.txt')
    assert lines.count('warning: 3 x fit not finite') == 1
    assert lines.count('warning: sample 0 is replaced') == 2  # once in each epoch
    assert any(line.startswith('Epoch 0/2 itr 0/3: lr: 0.001 speed: ') for line in lines)
    base.Tester(tiny_config(tmp_path), tmp_path / 'model_dump' / 'snapshot_1.pth.tar').test()
    tested = lines_of(tmp_path / 'log' / 'test_logs.txt')
    assert tested[0] == 'warning: 3 x fit not finite' and tested[-1].startswith('snapshot_1.pth.tar (lixel stage) on ')


def test_a_loader_process_does_not_wait_for_the_lock_of_the_bars(capfd):
    """It may be forked while a thread of the main process holds it, and then nobody in it ever lets it go."""
    start_console()
    held = threading.Event()
    done = threading.Event()

    def hold():
        with tqdm.get_lock():
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    context = multiprocessing.get_context('fork')
    process = context.Process(target=logging.getLogger('data').info, args=('from a loader',))
    process.start()
    process.join(20)
    code = process.exitcode
    process.kill()
    process.join()
    done.set()
    holder.join()
    assert code == 0 and 'from a loader\n' in capfd.readouterr().out


def test_a_warning_about_the_gpus_is_in_the_log(tmp_path, monkeypatch):
    use_random_data(monkeypatch)
    monkeypatch.setattr('common.devices.gpus._count_gpus', lambda: 0)
    monkeypatch.setattr('common.devices.gpus.torch.cuda.device_count', lambda: 0)
    program.main(['--gpu', '0', '--cfg', 'nano', *SETTINGS, f'output_dir={tmp_path}', 'end_epoch=1'])
    assert lines_of(tmp_path / 'log' / 'train_logs.txt')[0] == (
        'warning: --gpu 0: no CUDA device is available here, running on the CPU')


def test_metrics_of_an_earlier_run_are_set_aside(tmp_path):
    for number in range(3):
        metrics = MetricsFile(tmp_path)
        metrics.new_run()
        metrics.row({'epoch': number, 'step': 0, 'global_step': 0})
    kept = {path.name: json.loads(path.read_text())['epoch'] for path in tmp_path.iterdir()}
    assert kept == {'metrics.1.jsonl': 0, 'metrics.2.jsonl': 1, 'metrics.jsonl': 2}
    off = MetricsFile(tmp_path / 'nowhere', enabled=False)
    off.new_run()
    off.row({'epoch': 0})
    assert not (tmp_path / 'nowhere').exists()
