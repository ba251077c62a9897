"""Batches: which samples, in which order, read by which processes."""
import re
import signal
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from common.errors import UserError, is_killed_worker
from common.train.stop import SIGNALS
from common.train.transport import PREFETCH, PackedBatches, Transport, as_it_is

GRACE = 20  # seconds a loader process lives on after SIGTERM


class EpochView(Dataset):
    """A data set indexed by (epoch, index), so that worker processes kept alive know which epoch they serve.

    Its samples are in compact form, with bytes for pixels: see MeshDataset.compact.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.epoch: int | None = None

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, key: tuple[int, int]) -> Any:
        epoch, index = key
        if epoch != self.epoch:
            self.dataset.set_epoch(epoch)
            self.epoch = epoch
        return self.dataset.compact(index)


class TrainBatches:
    """Batches of (epoch, index) for one process; the order is a function of (seed, epoch) alone.

    One step takes the next `batch * world * accum` samples of the shuffled data set: every process `batch` of them,
    `accum` times. So any number of processes sees the same samples in the same step. The rest of the epoch is dropped.

    Args:
        length: samples in the data set.
        batch: samples of one process in one batch.
        seed: of the order.
        rank: number of this process. world: how many processes there are.
        accum: batches of one step.
    Raises:
        UserError: fewer samples than one step needs.
    """

    def __init__(self, length: int, batch: int, seed: int, rank: int = 0, world: int = 1,
                 accum: int = 1) -> None:
        self.length = length
        self.batch = batch
        self.seed = seed
        self.rank = rank
        self.world = world
        self.accum = accum
        self.step_size = batch * world * accum
        self.steps = length // self.step_size
        self.epoch = 0
        self.start = 0
        if not self.steps:
            raise UserError(f'the training data has {length} samples, but one step takes {self.step_size} '
                            f'({batch} per batch x {world} devices or processes x {accum} accumulated): '
                            'lower train_batch_size or grad_accum')

    def set_position(self, epoch: int, step: int = 0) -> None:
        """The next pass is over `epoch`, from its step `step` on."""
        self.epoch = epoch
        self.start = step

    def __len__(self) -> int:
        return (self.steps - self.start) * self.accum

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.length)
        whole_steps = order[:self.steps * self.step_size]
        batches = whole_steps.reshape(self.steps, self.accum, self.world, self.batch)
        for batch in batches[self.start:, :, self.rank].reshape(-1, self.batch):
            yield [(self.epoch, int(index)) for index in batch]


def shard(length: int, batch: int, rank: int = 0, world: int = 1) -> list[list[int]]:
    """Batches of consecutive indices of process `rank`'s block of 0..length-1: each sample once, in order."""
    first = length * rank // world
    last = length * (rank + 1) // world
    return [list(range(start, min(start + batch, last))) for start in range(first, last, batch)]


def init_worker(worker_id: int) -> None:
    """One thread per loader process, which outlives a signal so that the main process can finish its step.

    Ctrl-C and the end of a terminal, and a batch system's signals reach all processes of a run, not just the main one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, 'alarm'):
        for number in SIGNALS:
            if number != signal.SIGINT:
                signal.signal(number, lambda *_: signal.alarm(GRACE))
    cv2.setNumThreads(0)
    torch.set_num_threads(1)


class Loader(DataLoader):
    """DataLoader over given batches of keys, whose processes stay alive between epochs.

    They are forked, whatever Python's default, so that all share the data set instead of having a copy each.

    Args:
        dataset: A sample, any nest of arrays and numbers, per key.
        batches: Lists of keys.
        workers: Loader processes; 0 for none.
        transport: Of the same number of processes.
    """

    def __init__(self, dataset: Any, batches: Iterable[list], workers: int, transport: Transport) -> None:
        context = None
        prefetch = None
        if workers:
            context = 'fork'
            prefetch = PREFETCH
        super().__init__(PackedBatches(dataset, transport), batch_sampler=batches, num_workers=workers,
                         prefetch_factor=prefetch, collate_fn=as_it_is, worker_init_fn=init_worker,
                         persistent_workers=workers > 0, multiprocessing_context=context)
        self.transport = transport

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # a DataLoader's own iterator gives packed batches
        return map(self.transport.unpack, super().__iter__())


def make_loader(dataset: Any, batches: Iterable[list], workers: int, pin_memory: bool) -> Loader:
    """A Loader, with the transport that it needs; pin_memory: batches lie in memory that GPUs copy from at once."""
    return Loader(dataset, batches, workers, Transport(workers, pin_memory))


class Reader:
    """Iterates over a DataLoader, and says in one line when one of its processes was killed.

    PyTorch installs a signal handler for that, which raises an exception wherever the program happens to be, in the
    middle of a step of the optimiser too. It is taken out: the next batch finds out, within five seconds.

    Raises:
        UserError: a loader process was killed, or found no shared memory. Besides that, whatever the data set raises.
    """

    def __init__(self, loader: DataLoader) -> None:
        self.batches = iter(loader)
        self.processes = loader.num_workers
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def __iter__(self) -> 'Reader':
        return self

    def __next__(self) -> Any:
        try:
            return next(self.batches)
        except (RuntimeError, OSError, EOFError) as error:
            if not self.processes:
                raise
            if self.lacks_shared_memory(error):
                raise UserError('the loader processes ran out of shared memory (/dev/shm): in Docker start the '
                                'container with --shm-size=16g; elsewhere lower num_thread or the batch size; a '
                                'training goes on with --continue') from error
            if not is_killed_worker(error):
                raise
            raise UserError('a loader process was killed, most often because memory ran short: lower num_thread or the '
                            'batch size; a training goes on with --continue') from error

    def lacks_shared_memory(self, error: Exception) -> bool:
        """Whether an error of the processes comes from too little shared memory: by its words, or a bus error."""
        if re.search(r'bus error|\(shm\)|shared memory object', str(error), re.I):
            return True
        codes = [process.exitcode for process in getattr(self.batches, '_workers', [])]
        return is_killed_worker(error) and -signal.SIGBUS in codes
