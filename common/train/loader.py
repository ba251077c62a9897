"""Batches: which samples, in which order, read by which processes."""
import signal
import threading

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from common.errors import UserError

GRACE = 20  # seconds a loader process lives on after SIGTERM


class EpochView(Dataset):
    """A data set indexed by (epoch, index), so that worker processes kept alive know which epoch they serve."""

    def __init__(self, dataset):
        self.dataset, self.epoch = dataset, None

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, key):
        epoch, index = key
        if epoch != self.epoch:
            self.dataset.set_epoch(epoch)
            self.epoch = epoch
        return self.dataset[index]


class TrainBatches:
    """Batches of (epoch, index) for one process; the order is a function of (seed, epoch) alone.

    One step takes the next `batch * world * accum` samples of the shuffled data set: every process `batch` of them,
    `accum` times. So any number of processes sees the same samples in the same step. The rest of the epoch is dropped.

    Raises:
        UserError: fewer samples than one step needs.
    """

    def __init__(self, length, batch, seed, rank=0, world=1, accum=1):
        self.length, self.batch, self.seed = length, batch, seed
        self.rank, self.world, self.accum = rank, world, accum
        self.step_size = batch * world * accum
        self.steps = length // self.step_size
        self.epoch = self.start = 0
        if not self.steps:
            raise UserError(f'the training data has {length} samples, but one step takes {self.step_size} '
                            f'({batch} per batch x {world} devices or processes x {accum} accumulated): '
                            'lower train_batch_size or grad_accum')

    def set_position(self, epoch, step=0):
        """The next pass is over `epoch`, from its step `step` on."""
        self.epoch, self.start = epoch, step

    def __len__(self):
        return (self.steps - self.start) * self.accum

    def __iter__(self):
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.length)
        chunks = order[:self.steps * self.step_size].reshape(self.steps, self.accum, self.world, self.batch)
        for batch in chunks[self.start:, :, self.rank].reshape(-1, self.batch):
            yield [(self.epoch, int(index)) for index in batch]


def shard(length, batch, rank=0, world=1):
    """Batches of consecutive indices of process `rank`'s block of 0..length-1: each sample once, in order."""
    first, last = length * rank // world, length * (rank + 1) // world
    return [list(range(i, min(i + batch, last))) for i in range(first, last, batch)]


def init_worker(worker_id):
    """One thread per loader process, which outlives a signal so that the main process can finish its step.

    Ctrl-C in a terminal and a batch system's SIGTERM reach all processes of a run, not just the main one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, 'alarm'):
        signal.signal(signal.SIGTERM, lambda *_: signal.alarm(GRACE))
    cv2.setNumThreads(0)
    torch.set_num_threads(1)


def make_loader(dataset, batches, workers, pin_memory):
    """DataLoader over given batches of keys; `workers` processes stay alive between epochs.

    They are forked, whatever Python's default: so all share the data set instead of having a copy each.
    """
    return DataLoader(dataset, batch_sampler=batches, num_workers=workers, pin_memory=pin_memory,
                      worker_init_fn=init_worker, persistent_workers=workers > 0,
                      multiprocessing_context='fork' if workers else None)


class Reader:
    """Iterates over a DataLoader, and says in one line when one of its processes was killed.

    PyTorch installs a signal handler for that, which raises an exception wherever the program happens to be, in the
    middle of a step of the optimiser too. It is taken out: the next batch finds out, within five seconds.
    Raises, besides what the data set does:
        UserError: a loader process was killed.
    """

    def __init__(self, loader):
        self.batches, self.processes = iter(loader), loader.num_workers
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return next(self.batches)
        except (RuntimeError, ConnectionError, FileNotFoundError, EOFError) as error:
            if not self.processes or str(error).startswith('Caught '):  # by the data set, in a loader process
                raise
            if isinstance(error, RuntimeError) and not str(error).startswith('DataLoader worker (pid'):
                raise
            raise UserError('a loader process was killed, most often because memory ran short: lower num_thread or the '
                            'batch size; a training goes on with --continue') from error
