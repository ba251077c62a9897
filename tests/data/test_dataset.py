"""Mixtures of data sets."""
import pytest

from data.dataset import MultipleDatasets, sample_rng


class Numbers:
    """A data set of (name, index) pairs."""

    def __init__(self, name, length):
        self.name, self.length, self.epoch = name, length, 0

    def __len__(self):
        return self.length

    def set_epoch(self, epoch):
        self.epoch = epoch

    def get(self, index, rng):
        return self.name, index, float(rng.random())


def test_data_sets_one_after_the_other():
    mixed = MultipleDatasets([Numbers('a', 3), Numbers('b', 2)], make_same_len=False)
    assert [mixed[i][:2] for i in range(len(mixed))] == [('a', 0), ('a', 1), ('a', 2), ('b', 0), ('b', 1)]
    with pytest.raises(IndexError):
        mixed[5]


def test_data_sets_made_equally_long():
    mixed = MultipleDatasets([Numbers('a', 3), Numbers('b', 8)], make_same_len=True)
    assert len(mixed) == 16
    items = [mixed[i][:2] for i in range(16)]
    assert [name for name, _ in items] == ['a'] * 8 + ['b'] * 8
    assert [i for _, i in items[:6]] == [0, 1, 2, 0, 1, 2]   # whole multiples of the shorter set in order
    assert {i for _, i in items[6:8]} <= {0, 1, 2}           # the rest at random
    assert [i for _, i in items[8:]] == list(range(8))


def test_the_random_rest_and_the_augmentation_are_a_function_of_seed_epoch_and_index():
    def draw(seed, epoch):
        mixed = MultipleDatasets([Numbers('a', 5), Numbers('b', 64)], make_same_len=True, seed=seed)
        mixed.set_epoch(epoch)
        assert mixed.dbs[0].epoch == epoch
        return [mixed[i] for i in range(len(mixed))]

    assert draw(0, 0) == draw(0, 0)
    assert draw(0, 0) != draw(0, 1) != draw(1, 0)
    values = [value for *_, value in draw(0, 0)]
    assert len(set(values)) == len(values)  # the same sample, met twice in an epoch, is augmented in two ways
    assert sample_rng(1, 2, 3).random() == sample_rng(1, 2, 3).random()
