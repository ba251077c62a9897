"""Packed lists and mixtures of data sets."""
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from torch.utils.data import DataLoader

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


MEMORY = Path('/proc/self/smaps_rollup')


class PrivateMemory:
    """Item i reads the i-th tenth of a list and is the private memory, bytes, of the process that read it."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return 10

    def __getitem__(self, i):
        share = len(self.items) // 10
        for j in range(i * share, (i + 1) * share):
            self.items[j]
        return 1024 * sum(int(line.split()[1]) for line in MEMORY.read_text().splitlines() if line[:7] == 'Private')


@pytest.mark.skipif(not MEMORY.exists(), reason='the system does not tell how much memory is private')
def test_workers_share_a_packed_list():
    """Reading all of it copies none of it; a plain list is copied page by page, as its objects count references."""
    rng = np.random.default_rng(0)
    plain = [rng.bytes(5000) for _ in range(4000)]
    packed = PackedList(plain)

    def growth(items):
        sizes = [int(size) for size in DataLoader(PrivateMemory(items), batch_size=None, num_workers=1)]
        return (sizes[-1] - sizes[0]) / packed.nbytes

    assert growth(packed) < .1 < .5 < growth(plain)


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
