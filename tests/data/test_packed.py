"""Packed samples: what goes in comes out, to the bit, and processes share it."""
import dataclasses
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from torch.utils.data import DataLoader

from common.errors import UserError
from data.packed import PackedSamples
from data.sample import Camera, Fit, Sample
from tests.data_tools import bits


def sample(i, size=()):
    rng = np.random.default_rng(i)

    def array(*shape):
        return rng.normal(size=shape).astype(np.float32)

    return Sample(f'data/Human36M/images/s_01_act_02/s_01_act_02_ca_01_{i:06d}.jpg', (1002, 1000), array(4),
                  Camera(array(2), array(2)), array(17, 2), array(17, 3), np.ones((17, 1), np.float32),
                  Fit(array(72), array(10), array(3), R=array(3, 3), t=array(3)), ann_id=i,
                  extra={'more': array(*size)} if size else {})


VARIANTS = [
    sample(0),
    dataclasses.replace(sample(1), fit=None, camera=None, joint_img=None, ann_id='a_1', root_depth=3.25),
    dataclasses.replace(sample(2), fit_camera=sample(3).camera, joint_valid=np.ones((17, 1)), img_shape=(10.5, 20)),
    dataclasses.replace(sample(4), fit=Fit(np.zeros(48), np.zeros(10, '>f4'), np.zeros(3), 'male')),
    dataclasses.replace(sample(5), joint_cam=np.asfortranarray(sample(5).joint_cam), ann_id=10 ** 30, joint_valid=None),
    dataclasses.replace(sample(6), extra={'big': [-10 ** 25], 'nan': float('nan'), 'deep': {'x': [1, 'y', None, True]},
                                          'array': np.arange(6).reshape(2, 3), 'number': 7}),
]


def test_what_goes_in_comes_out():
    packed = PackedSamples.pack(iter(VARIANTS))
    assert len(packed) == 6
    for index in (0, 1, 2, 3, 4, 5, -1, -6):
        assert bits(packed[index]) == bits(VARIANTS[index])
    assert isinstance(packed[0].img_shape, tuple)
    for index in (6, -7):
        with pytest.raises(IndexError):
            packed[index]
    assert len(PackedSamples.pack([])) == 0


def test_it_hands_out_copies():
    packed = PackedSamples.pack([sample(0)])
    packed[0].joint_img[:] = 7
    assert bits(packed[0]) == bits(sample(0))


@pytest.mark.parametrize('extra', [{'x': object()}, {'x': np.array([object()])}, {'x': lambda: 0}])
def test_what_cannot_be_stored_is_named(extra):
    with pytest.raises(UserError, match=r'000007\.jpg, id 7, has something that is neither a number'):
        PackedSamples.pack([dataclasses.replace(sample(7), extra=extra)])


def size_of(value):
    """Bytes of nested dictionaries of arrays."""
    if dataclasses.is_dataclass(value):
        value = vars(value)
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        size += sum(size_of(part) for part in value.values())
    return size


def test_it_needs_less_than_half_of_the_memory():
    items = [sample(i) for i in range(100)]
    assert PackedSamples.pack(items).nbytes < sum(map(size_of, items)) / 2


def test_it_survives_being_sent_to_another_process():
    packed = pickle.loads(pickle.dumps(PackedSamples.pack([sample(0), sample(1)])))
    assert bits(packed[1]) == bits(sample(1))


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
def test_loader_processes_share_it():
    """Reading all of it copies none of it; a plain list is copied page by page, as its objects count references."""
    packed = PackedSamples.pack(sample(i, (1000,)) for i in range(4000))
    plain = [np.random.default_rng(0).bytes(5000) for _ in range(4000)]

    def growth(items):
        sizes = [int(size) for size in DataLoader(PrivateMemory(items), batch_size=None, num_workers=1)]
        return (sizes[-1] - sizes[0]) / packed.nbytes

    assert growth(packed) < .1 < .5 < growth(plain)
