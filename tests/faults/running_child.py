"""Trainings in processes of their own that start at once: forked from a server that has everything loaded.

    child = start(train, folder, 'lixel_epochs=1')      # a function of this module or of the test's, and its arguments
    child.wait_for('itr 3/')                            # until that is printed
    child.kill(signal.SIGTERM); child.end()             # -> exit code; child.text() is what it printed
"""
import functools
import json
import multiprocessing
import os
import signal
import socket
import tempfile
import time
from pathlib import Path

import torch

from common import base
from common.errors import run_main
from common.human_model import get_human_model
from tests.tiny import RandomDataset, calling, tiny_config

TIMEOUT = 240  # seconds, for everything that is waited for; the machine may be busy


class Child:
    """A running process. Use as a context, or `end()` it: nothing stays behind."""

    def __init__(self, process, out):
        self.process, self.out, self.pid = process, Path(out), process.pid

    def text(self):
        return self.out.read_text(errors='replace')

    def wait_for(self, words):
        """Wait until `words` are printed."""
        self.wait_until(lambda: words in self.text() or not self.process.is_alive())
        assert words in self.text(), self.text()

    def wait_until(self, true):
        """Wait until a function of nothing returns true."""
        end = time.monotonic() + TIMEOUT
        while not true():
            assert time.monotonic() < end, self.text()
            time.sleep(0.003)

    def kill(self, kind=signal.SIGKILL):
        os.kill(self.pid, kind)

    def end(self):
        """Wait for the end; the exit code, negative for a signal."""
        self.process.join(TIMEOUT)
        code = self.process.exitcode
        if code is None:
            self.kill()
            raise AssertionError(f'did not end by itself: {self.text()}')
        return code

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.is_alive():
            self.kill()
        self.process.join(TIMEOUT)


@functools.cache
def _server():
    """The context of a fork server with one thread per process, started now."""
    context = multiprocessing.get_context('forkserver')
    context.set_forkserver_preload([__name__])
    before = os.environ.get('OMP_NUM_THREADS')
    os.environ['OMP_NUM_THREADS'] = '1'
    try:
        process = context.Process(target=_nothing)
        process.start()
    finally:
        os.environ.pop('OMP_NUM_THREADS')
        os.environ.update({} if before is None else {'OMP_NUM_THREADS': before})
    process.join(TIMEOUT)
    return context


_outputs = functools.cache(tempfile.TemporaryDirectory)  # what the children print; deleted at the end of this process


def _nothing():
    pass


def start(function, *args, env=None, **options):
    """Run function(*args, **options), as a program's main(), in a process of its own."""
    handle, out = tempfile.mkstemp(suffix='.txt', dir=_outputs().name)
    os.close(handle)
    process = _server().Process(target=_run, args=(out, env or {}, function, args, options))
    process.start()
    return Child(process, out)


def _run(out, env, function, args, options):
    handle = os.open(out, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.environ.update(env)
    torch.set_num_threads(1)
    run_main(functools.partial(function, *args, **options))


def ranks(function, *args, world=2, **options):
    """The children that torchrun would start for one machine."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    return [start(function, *args, env={
        'RANK': str(rank), 'LOCAL_RANK': str(rank), 'WORLD_SIZE': str(world), 'LOCAL_WORLD_SIZE': str(world),
        'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port)}, **options) for rank in range(world)]


def use_noise(length):
    """Let the engine of this process open RandomDatasets of a length under every name."""
    base.build_dataset = lambda name, split, config: RandomDataset(split, config, length)


def slow(number):
    """For train(): a step takes a tenth of a second longer."""
    time.sleep(0.1)


def train(folder, *overrides, length=9, before_step=None):
    """Train the tiny network on noise; `before_step(n)` is called before the n-th step of this run, from 1."""
    use_noise(length)
    trainer = base.Trainer(tiny_config(folder, *overrides))
    with calling(before_step or (lambda number: None)):
        finished = trainer.train()
    print('finished' if finished else 'stopped', flush=True)


def read_losses(folder):
    """[(epoch, step, loss)] of all runs in an output folder."""
    rows = [json.loads(line) for line in (Path(folder) / 'log' / 'metrics.jsonl').read_text().splitlines()]
    return [(row['epoch'], row['step'], row['loss']) for row in rows]


get_human_model('open_body')  # cached: every child has it at once
