"""How a batch gets from a loader process to the main one: in one piece, through memory that both share and use again.

PyTorch would send some 15 tensors in new shared memory each: for small samples that takes longer than making them.
"""
import math
import mmap
import os
import statistics
import tempfile
import time
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

PREFETCH = 2  # batches that a loader process makes ahead of the one that the main process took last
ALIGNMENT = 64  # bytes
MEASURED = 1000  # batches whose times are kept


@dataclass(frozen=True)
class Field:
    """An array of a batch within its memory: its first byte, type and shape."""
    start: int
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> slice:
        """Its part of the memory."""
        return slice(self.start, self.start + self.dtype.itemsize * math.prod(self.shape))

    def read(self, memory: torch.Tensor) -> torch.Tensor:
        """The array, a view of the memory (uint8)."""
        return memory[self.bytes].view(self.dtype).view(self.shape)


@dataclass(frozen=True)
class Packed:
    """A batch that is on its way."""
    nest: Any  # dictionaries and lists of Fields
    size: int  # bytes
    seconds: float  # of one process for one sample, on average
    number: int | None  # of the Slot that it is in; None: in `memory`
    memory: torch.Tensor | None = None  # uint8


class Packing:
    """Stacks equal nests of dictionaries, sequences and arrays or numbers.

    Args:
        items: The samples.
    """

    def __init__(self, items: list[Any]) -> None:
        self.size = 0
        self.parts: list[tuple[Field, list[np.ndarray]]] = []
        self.nest = self.place(items)

    def place(self, values: list[Any]) -> Any:
        """Find places for what the samples have in one position of the nest."""
        first = values[0]
        if isinstance(first, dict):
            return {name: self.place([value[name] for value in values]) for name in first}
        if isinstance(first, (list, tuple)):
            return [self.place(list(parts)) for parts in zip(*values, strict=True)]
        arrays = [np.asarray(value) for value in values]
        dtype = torch.from_numpy(np.empty(0, arrays[0].dtype)).dtype
        field = Field(self.size, dtype, (len(arrays), *arrays[0].shape))
        self.size = -(-field.bytes.stop // ALIGNMENT) * ALIGNMENT
        self.parts.append((field, arrays))
        return field

    def write(self, memory: torch.Tensor) -> None:
        """Copy all arrays into the memory (uint8)."""
        for field, arrays in self.parts:
            np.stack(arrays, out=field.read(memory).numpy())


class Slot:
    """Memory of a size that is known later, shared by a process and those that it forks."""

    def __init__(self) -> None:
        if hasattr(os, 'memfd_create'):  # no part of /dev/shm, which is small in a container
            self.file = os.memfd_create('batch')
        else:
            self.file, path = tempfile.mkstemp()
            os.unlink(path)
        weakref.finalize(self, os.close, self.file)
        self.map: mmap.mmap | None = None

    def memory(self, size: int) -> torch.Tensor:
        """The first `size` bytes, which any of the processes may write."""
        if self.map is None or len(self.map) < size:
            if os.fstat(self.file).st_size < size:
                os.ftruncate(self.file, size)
            self.map = mmap.mmap(self.file, size)
        return torch.frombuffer(self.map, dtype=torch.uint8, count=size)


class Transport:
    """Packs batches in loader processes, each into its own slots in turn, and unpacks them in the main process.

    A slot is used again once the batch in it has been unpacked: a DataLoader that keeps the order asks a process for a
    batch no earlier than the one that many before it, PREFETCH, has been handed over.

    Args:
        workers: Loader processes, 0 for none; made before they are forked.
        pin_memory: Unpack into memory that GPUs copy from without waiting.
    """

    def __init__(self, workers: int, pin_memory: bool) -> None:
        self.slots = [Slot() for _ in range(workers * (PREFETCH + 1))]
        self.pin_memory = pin_memory
        self.count = 0  # batches packed in this process
        self.size = 0  # bytes of the batch unpacked last
        self.workers = workers
        self.seconds: list[float] = []  # for a sample, of the first batches

    @property
    def rate(self) -> float:
        """Samples per second that the loader processes (or else this one) can make together; 0 if unknown."""
        if not self.seconds:
            return 0.
        return max(1, self.workers) / statistics.median(self.seconds)

    def pack(self, dataset: Any, keys: list[Any]) -> Packed:
        """The samples of a batch, read and stacked."""
        start = time.perf_counter()
        packing = Packing([dataset[key] for key in keys])
        worker = get_worker_info()
        number = None
        memory = None
        if worker is None:
            memory = torch.empty(packing.size, dtype=torch.uint8)
            packing.write(memory)
        else:
            number = worker.id * (PREFETCH + 1) + self.count % (PREFETCH + 1)
            self.count += 1
            packing.write(self.slots[number].memory(packing.size))
        seconds = (time.perf_counter() - start) / len(keys)
        return Packed(packing.nest, packing.size, seconds, number, memory)

    def unpack(self, packed: Packed) -> Any:
        """The nest of tensors of a batch."""
        self.size = packed.size
        if len(self.seconds) < MEASURED:
            self.seconds.append(packed.seconds)
        source = packed.memory
        if packed.number is not None:
            source = self.slots[packed.number].memory(packed.size)
        assert source is not None  # a batch is in a slot or carries its memory
        if packed.number is not None or self.pin_memory:
            memory = torch.empty(packed.size, dtype=torch.uint8, pin_memory=self.pin_memory)
            memory.copy_(source)
        else:
            memory = source
        return read_nest(packed.nest, memory)


class PackedBatches(Dataset):
    """A data set that is read by whole batches, packed by a Transport."""

    def __init__(self, dataset: Any, transport: Transport) -> None:
        self.dataset = dataset
        self.transport = transport

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitems__(self, keys: list[Any]) -> Packed:
        """The batch of these keys (the name is PyTorch's)."""
        return self.transport.pack(self.dataset, keys)


def as_it_is(packed: Any) -> Any:
    """In place of a DataLoader's collation: the batch is packed."""
    return packed


def read_nest(nest: Any, memory: torch.Tensor) -> Any:
    """A nest of Fields as tensors, views of their memory."""
    if isinstance(nest, dict):
        return {name: read_nest(value, memory) for name, value in nest.items()}
    if isinstance(nest, list):
        return [read_nest(value, memory) for value in nest]
    return nest.read(memory)
