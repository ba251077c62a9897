"""How a training ends that is asked to: the exit code says which signal it was, and a closed terminal loses nothing."""
import os
import pty
import select
import signal
import sys
import threading

import pytest

from common.snapshot import checkpoint
from main import train as program
from tests.faults.running_child import ranks, start, use_noise
from tests.tiny import SETTINGS, calling


def train_and(folder, before_step, workers=0, end_epoch=2):
    """main/train.py on noise; `before_step(n)` is called before the n-th step. Returns the exit code."""
    use_noise(25)
    settings = [word for word in SETTINGS if not word.startswith('num_thread')]
    with calling(before_step):
        return program.main(['--gpu', 'cpu', '--cfg', 'nano', *settings, f'output_dir={folder}',
                             f'num_thread={workers}', f'end_epoch={end_epoch}'])


def train_and_stop(folder, kind, of_rank='0'):
    """A signal comes in the third step, to one of the processes."""
    def before_step(number):
        if number == 3 and os.environ.get('RANK', '0') == of_rank:
            os.kill(os.getpid(), kind)

    return train_and(folder, before_step)


def saved_steps(folder):
    (_, path), = checkpoint.find_snapshots(folder / 'model_dump')
    return checkpoint.read(path)['state']['step']


@pytest.mark.parametrize(('kind', 'code'), [
    (signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGUSR1, 138)])
def test_the_exit_code_names_the_signal(tmp_path, kind, code):
    """So `train && test` does not go on with the test; the code of a program that the signal ends."""
    child = start(train_and_stop, tmp_path, kind)
    assert child.end() == code, child.text()
    assert saved_steps(tmp_path) == 3 and 'stopped; the last step is saved' in child.text()


def test_the_exit_code_of_all_processes(tmp_path):
    children = ranks(train_and_stop, tmp_path, signal.SIGTERM, of_rank='1')
    assert [child.end() for child in children] == [143, 143], children[0].text()


def nothing(number):
    pass


def test_the_exit_code_of_a_training_that_ends_by_itself(tmp_path):
    child = start(train_and, tmp_path, nothing, end_epoch=1)
    assert child.end() == 0, child.text()


class Terminal:
    """A terminal that this process prints to, and somebody who reads it until it is closed."""

    def __init__(self):
        self.master, slave = pty.openpty()
        for stream in (1, 2):
            os.dup2(slave, stream)
        os.close(slave)
        sys.stdout.reconfigure(line_buffering=True)  # as Python does for a terminal
        self.is_open = True
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while self.is_open:
            if select.select([self.master], [], [], 0.05)[0]:
                os.read(self.master, 4096)

    def close(self):
        self.is_open = False
        self.reader.join()
        os.close(self.master)


def train_in_a_terminal(folder, workers):
    """The terminal is closed in the third step; its system then sends SIGHUP."""
    terminal = Terminal()

    def before_step(number):
        if number == 3:
            terminal.close()
            os.kill(os.getpid(), signal.SIGHUP)

    return train_and(folder, before_step, workers)


@pytest.mark.parametrize('workers', [0, 1])
def test_a_closed_terminal(tmp_path, workers):
    """Whatever is printed to it from then on is an error of the system."""
    assert start(train_in_a_terminal, tmp_path, workers).end() == 129
    assert saved_steps(tmp_path) == 3
    assert 'stopped; the last step is saved. Resume' in (tmp_path / 'log/train_logs.txt').read_text().splitlines()[-1]
