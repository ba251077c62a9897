"""Batches that travel through shared memory: the same as PyTorch's, and nobody's once they have arrived."""
import itertools

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, default_collate

from common.train.loader import make_loader, shard
from common.train.transport import PREFETCH


class Nests(Dataset):
    """Sample i has arrays of several types, filled with i; `length` samples."""

    def __init__(self, length, scale=1):
        self.length = length
        self.scale = scale

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        img = np.full((5 * self.scale, 3, 3), i, np.uint8)
        return ({'img': img, 'scale': np.full(3, i / 7, np.float32)},
                {'joint': np.full((3, 4), i, np.float64).T, 'none': np.zeros((0, 2), np.float32)},
                {'valid': np.float32(i), 'flag': np.array(i % 2 == 1), 'number': i, 'list': [i, 1.5]})


def leaves(nest):
    """The tensors of a nest, in order, with their paths."""
    if isinstance(nest, dict):
        return [(f'{name}/{path}', leaf) for name, value in nest.items() for path, leaf in leaves(value)]
    if isinstance(nest, (list, tuple)):
        return [(f'{i}/{path}', leaf) for i, value in enumerate(nest) for path, leaf in leaves(value)]
    return [('', nest)]


def same(got, want):
    for (path, mine), (other, theirs) in zip(leaves(got), leaves(want), strict=True):
        assert path == other and mine.dtype == theirs.dtype and torch.equal(mine, theirs), path


@pytest.mark.parametrize('workers', [0, 1, 2])
def test_batches_are_those_of_pytorch_and_stay_as_they_are(workers):
    """All of them are kept while the memory that they came in is used again, in two epochs."""
    data = Nests(41)
    batches = shard(41, 2)
    loader = make_loader(data, batches, workers, pin_memory=False)
    got = [*loader, *loader]
    assert len(got) == 2 * len(batches) > 4 * (PREFETCH + 1)
    for batch, indices in zip(got, itertools.cycle(batches)):
        same(batch, default_collate([data[i] for i in indices]))
    assert loader.transport.size >= sum(leaf.nbytes for _, leaf in leaves(got[-1]))


@pytest.mark.parametrize('workers', [0, 2])
def test_an_epoch_may_be_left_and_batches_may_grow(workers):
    data = Nests(40, scale=500)
    batches = [[i] for i in range(8)] + [list(range(8, 20)), list(range(20, 40))]
    loader = make_loader(data, batches, workers, pin_memory=False)
    first = list(itertools.islice(loader, 3))
    for batch, indices in zip([*first, *loader], batches[:3] + batches, strict=True):
        same(batch, default_collate([data[i] for i in indices]))


@pytest.mark.parametrize('workers', [0, 1])
def test_samples_of_different_shapes_are_an_error(workers):
    class Uneven(Nests):
        def __getitem__(self, i):
            return np.zeros(i + 1)

    with pytest.raises(ValueError, match='same shape'):
        next(iter(make_loader(Uneven(4), shard(4, 2), workers, pin_memory=False)))
