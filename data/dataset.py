"""Lists of samples that worker processes share, and the mixture of several data sets."""
import pickle
import zlib
from typing import Any

import numpy as np
from torch.utils.data import Dataset


class PackedList:
    """A read-only list of picklable items in one buffer of bytes with offsets.

    Worker processes read it without touching a reference count, so the pages stay shared. What all items have in
    common (field names, shapes of arrays) is stored once: it is the dictionary of a lossless compression.
    """

    def __init__(self, items):
        buffer, ends, self._common = bytearray(), [], b''
        for item in items:
            plain = pickle.dumps(item, protocol=5)
            self._common = self._common or plain[:1 << 15]
            packer = zlib.compressobj(level=1, wbits=-15, memLevel=5, zdict=self._common)
            buffer += packer.compress(plain) + packer.flush()
            ends.append(len(buffer))
        self._bytes = np.frombuffer(buffer, np.uint8)
        self._starts = np.array([0, *ends], np.int64)

    @property
    def nbytes(self):
        """Bytes held."""
        return self._bytes.nbytes + self._starts.nbytes + len(self._common)

    def __len__(self):
        return len(self._starts) - 1

    def __getitem__(self, index):
        """A fresh copy of the item; negative indices count from the end. IndexError beyond it."""
        index = range(len(self))[index]
        start, end = self._starts[index:index + 2]
        unpacker = zlib.decompressobj(wbits=-15, zdict=self._common)
        return pickle.loads(unpacker.decompress(memoryview(self._bytes)[start:end]))


def sample_rng(seed, epoch, index):
    """The random numbers of one sample: a function of these three alone, whatever the number of workers."""
    return np.random.default_rng([seed, epoch, index])


class MultipleDatasets(Dataset):
    """Several data sets as one.

    dbs: MeshDatasets or other MultipleDatasets. make_same_len: every set is as long as the longest: the index runs
    through a shorter one whole times, and the rest of its share is drawn at random. Otherwise one after the other.
    """

    def __init__(self, dbs, make_same_len=True, seed=0):
        self.dbs, self.make_same_len, self.seed, self.epoch = dbs, make_same_len, seed, 0
        self.ends = np.cumsum([len(db) for db in dbs])
        self.longest = max(len(db) for db in dbs)

    def set_epoch(self, epoch):
        """Choose the random numbers of an epoch."""
        self.epoch = epoch
        for db in self.dbs:
            db.set_epoch(epoch)

    def __len__(self):
        return self.longest * len(self.dbs) if self.make_same_len else int(self.ends[-1])

    def locate(self, index, rng):
        """(data set, index in it) of one index; rng draws the random rest."""
        index = range(len(self))[index]
        if not self.make_same_len:
            which = int(np.searchsorted(self.ends, index, side='right'))
            return self.dbs[which], index - int(self.ends[which] - len(self.dbs[which]))
        db, position = self.dbs[index // self.longest], index % self.longest
        whole = self.longest // len(db) * len(db)
        return db, position % len(db) if position < whole else int(rng.integers(len(db)))

    def get(self, index, rng):
        """One sample, with its random choices taken from `rng`."""
        db, position = self.locate(index, rng)
        return db.get(position, rng)

    def __getitem__(self, index):
        return self.get(index, sample_rng(self.seed, self.epoch, index))


def mix_datasets(sets_3d: list, sets_2d: list, seed: int) -> Any:
    """One data set of all: 3-D sets in a row, 2-D sets in a row, both mixed in equal parts."""
    groups = []
    for sets in (sets_3d, sets_2d):
        if len(sets) > 1:
            groups.append(MultipleDatasets(sets, make_same_len=False, seed=seed))
        else:
            groups += sets
    if len(groups) == 1:
        return groups[0]
    return MultipleDatasets(groups, make_same_len=True, seed=seed)
