"""The lixel codec: known values, and encode and decode as each other's inverse."""
import numpy as np
import pytest
import torch

from common.utils.preprocessing import crop_affine
from data.codec import LixelCodec

SIZES = [((256, 256), (64, 64, 64), 2.), ((128, 128), (32, 32, 32), .3), ((256, 128), (16, 64, 32), 2.)]


def case(seed, input_shape, batch=()):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(*batch, 11, 3)) * (80, 80, .4) + (120, 130, 4)
    depth = rng.normal(size=batch) * .2 + 4
    trans = np.stack([crop_affine(rng.uniform(50, 300, 4), rng.uniform(.8, 1.2), rng.uniform(-60, 60), input_shape)
                      for _ in range(int(np.prod(batch)))]).reshape(*batch, 2, 3)
    return points, depth if batch else float(depth), trans


def inverse(trans):
    full = np.concatenate([trans, np.broadcast_to([0., 0, 1], (*trans.shape[:-2], 1, 3))], -2)
    return np.linalg.inv(full)[..., :2, :]


def test_known_values():
    codec = LixelCodec((256, 256), (64, 64, 64), 2.)
    coord = codec.encode(np.array([[128., 64, 5.], [0, 256, 5.5]]), 5., np.eye(2, 3))
    np.testing.assert_allclose(coord, [[32, 16, 32], [0, 64, 48]])
    np.testing.assert_array_equal(codec.inside(coord), [[True], [False]])
    np.testing.assert_array_equal(codec.inside(np.array([[0., 0, -1], [63.99, 0, 64]]), dims=2), [[True], [True]])


@pytest.mark.parametrize('sizes', SIZES)
@pytest.mark.parametrize('batch', [(), (3,), (2, 2)])
def test_decode_is_the_inverse_of_encode(sizes, batch):
    codec = LixelCodec(*sizes)
    points, depth, trans = case(0, sizes[0], batch)
    coord = codec.encode(points, depth, trans)
    np.testing.assert_allclose(codec.decode(coord, depth, inverse(trans)), points, atol=1e-8)
    np.testing.assert_allclose(codec.encode(codec.decode(coord, depth, inverse(trans)), depth, trans), coord, atol=1e-8)


def test_torch_gives_the_same():
    codec = LixelCodec(*SIZES[0])
    points, depth, trans = case(1, SIZES[0][0], (4,))
    tensors = [torch.from_numpy(v) for v in (points, depth, trans)]
    coord = codec.encode(*tensors)
    np.testing.assert_allclose(coord, codec.encode(points, depth, trans), atol=1e-9)
    np.testing.assert_allclose(codec.decode(coord, tensors[1], torch.from_numpy(inverse(trans))), points, atol=1e-8)
    np.testing.assert_array_equal(codec.inside(coord), codec.inside(coord.numpy()))
