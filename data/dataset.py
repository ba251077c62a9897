"""The random numbers of a sample, and the mixture of several data sets."""
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from common.utils.preprocessing import float_image

Arrays = dict[str, np.ndarray]
Item = tuple[Arrays, Arrays, Arrays]  # inputs, targets, meta_info


def sample_rng(seed: int, epoch: int, index: int) -> np.random.Generator:
    """The random numbers of one sample: a function of these three alone, whatever the number of workers."""
    return np.random.default_rng([seed, epoch, index])


def with_float_image(item: Item) -> Item:
    """A compact item, with its patch of bytes made into the image that the network sees."""
    inputs, targets, meta_info = item
    img = float_image({name: torch.from_numpy(value) for name, value in inputs.items()})
    return {'img': img.contiguous().numpy()}, targets, meta_info


class MultipleDatasets(Dataset):
    """Several data sets as one.

    Args:
        dbs: MeshDatasets or other MultipleDatasets.
        make_same_len: Every set is as long as the longest: the index runs through a shorter one whole times, and the
            rest of its share is drawn at random. Otherwise one set follows the other.
        seed: Of the random choices.
    """

    def __init__(self, dbs: Sequence[Any], make_same_len: bool = True, seed: int = 0) -> None:
        self.dbs = dbs
        self.make_same_len = make_same_len
        self.seed = seed
        self.epoch = 0
        self.ends = np.cumsum([len(db) for db in dbs])
        self.longest = max(len(db) for db in dbs)

    def set_epoch(self, epoch: int) -> None:
        """Choose the random numbers of an epoch."""
        self.epoch = epoch
        for db in self.dbs:
            db.set_epoch(epoch)

    def __len__(self) -> int:
        if self.make_same_len:
            return self.longest * len(self.dbs)
        return int(self.ends[-1])

    def locate(self, index: int, rng: np.random.Generator) -> tuple[Any, int]:
        """(data set, index in it) of one index; rng draws the random rest."""
        index = range(len(self))[index]
        if not self.make_same_len:
            which = int(np.searchsorted(self.ends, index, side='right'))
            return self.dbs[which], index - int(self.ends[which] - len(self.dbs[which]))
        db = self.dbs[index // self.longest]
        position = index % self.longest
        whole = self.longest // len(db) * len(db)
        if position < whole:
            return db, position % len(db)
        return db, int(rng.integers(len(db)))

    def get(self, index: int, rng: np.random.Generator) -> Any:
        """One sample, with its random choices taken from `rng`."""
        db, position = self.locate(index, rng)
        return db.get(position, rng)

    def compact(self, index: int, rng: np.random.Generator | None = None) -> Item:
        """One sample as it is sent to the device: see MeshDataset.compact."""
        rng = rng or sample_rng(self.seed, self.epoch, index)
        db, position = self.locate(index, rng)
        return db.compact(position, rng)

    def __getitem__(self, index: int) -> Any:
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
