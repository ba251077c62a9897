"""Packed lists and mixtures of data sets."""
import pickle
import sys

import numpy as np
import pytest

from data.dataset import MultipleDatasets, PackedList, sample_rng
from data.sample import Camera, Fit, Sample


def sample(i):
    rng = np.random.default_rng(i)

    def array(*shape):
        return rng.normal(size=shape).astype(np.float32)

    return Sample(f'data/Human36M/images/s_01_act_02/s_01_act_02_ca_01_{i:06d}.jpg', (1002, 1000), array(4),
                  Camera(array(2), array(2)), array(17, 2), array(17, 3), np.ones((17, 1), np.float32),
                  Fit(array(72), array(10), array(3), R=array(3, 3), t=array(3)), ann_id=i)


def as_dict(s):
    return {**vars(s), 'camera': vars(s.camera), 'fit': vars(s.fit)}


def size_of(value):
    """Bytes of a nested dictionary of arrays."""
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        size += sum(size_of(v) for v in value.values())
    return size


def test_packed_list_returns_equal_items():
    items = [sample(i) for i in range(20)] + ['text', None, {'a': [1, np.arange(5)]}]
    packed = PackedList(iter(items))
    assert len(packed) == 23
    for i in (0, 7, 19, -23):
        assert pickle.dumps(packed[i]) == pickle.dumps(items[i])
    assert packed[20] == 'text' and packed[-2] is None
    assert [s.ann_id for s in list(packed)[:20]] == list(range(20))
    for index in (23, -24):
        with pytest.raises(IndexError):
            packed[index]
    assert len(PackedList([])) == 0


def test_packed_list_hands_out_copies():
    packed = PackedList([sample(0)])
    packed[0].joint_img[:] = 7
    np.testing.assert_array_equal(packed[0].joint_img, sample(0).joint_img)


def test_packed_list_needs_less_than_a_third_of_the_memory():
    items = [sample(i) for i in range(1000)]
    assert PackedList(items).nbytes < sum(size_of(as_dict(s)) for s in items) / 3


def test_packed_list_survives_being_sent_to_another_process():
    packed = pickle.loads(pickle.dumps(PackedList([sample(0), sample(1)])))
    assert packed[1].ann_id == 1


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
