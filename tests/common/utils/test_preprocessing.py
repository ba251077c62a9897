"""Boxes, augmentation and the crop."""
import cv2
import numpy as np
import pytest
import torch

from common.errors import UserError
from common.files.images import read_image
from common.utils import preprocessing
from common.utils.preprocessing import AugParams, color_scale, crop_image, float_image, process_bbox
from tests.data_tools import dot_position, image_with_dot

SHAPE = (256, 256)


def crop(img, bbox, aug, shape):
    """crop_image, with the patch as the network sees it."""
    patch, img2bb, bb2img = crop_image(img, bbox, aug, shape)
    inputs = {'img': torch.from_numpy(patch), 'color_scale': torch.from_numpy(color_scale(aug))}
    return float_image(inputs).numpy(), img2bb, bb2img


def test_box_is_clipped_widened_and_enlarged():
    # clipped to 10..109 x 20..219: 99 x 199; square 199, times 1.25 about the centre (59.5, 119.5)
    np.testing.assert_allclose(process_bbox([10, 20, 100, 200], 640, 480), [-64.875, -4.875, 248.75, 248.75])
    # an input twice as wide as high
    box = process_bbox([10, 20, 100, 200], 640, 480, (128, 256))
    np.testing.assert_allclose(box[2:], [2 * 248.75, 248.75])
    # the size counts from the clipped corner: the published boxes
    np.testing.assert_allclose(process_bbox([-50, 0, 100, 100], 640, 480)[2:], [99 * 1.25, 99 * 1.25])


@pytest.mark.parametrize('box', [
    [10, 10, 0, 5], [10, 10, 5, 0], [10, 10, -5, 20], [np.nan, 0, 10, 10], [0, 0, np.inf, 10], [700, 10, 50, 50],
    [10, 500, 50, 50], [-60, 10, 50, 50], [10, -60, 50, 50], [5, 5, 1, 1]])
def test_unusable_boxes_are_refused(box):
    assert process_bbox(box, 640, 480) is None


def test_both_box_formats_give_the_same_box():
    np.testing.assert_array_equal(preprocessing.to_xywh([10, 20, 110, 220], 'xyxy'), [10, 20, 100, 200])
    np.testing.assert_array_equal(preprocessing.to_xywh([10, 20, 100, 200], 'xywh'), [10, 20, 100, 200])
    with pytest.raises(UserError, match='xywh or xyxy'):
        preprocessing.to_xywh([1, 2, 3, 4], 'cxcywh')
    assert preprocessing.looks_like_corners([400, 300, 600, 470], 640, 480)
    assert not preprocessing.looks_like_corners([400, 300, 200, 170], 640, 480)


def test_box_of_joints():
    joints = np.array([[0, 0], [10, 20], [500, 500]], float)
    np.testing.assert_allclose(preprocessing.get_bbox(joints, np.array([[1], [1], [0]])), [-1, -2, 12, 24])
    assert preprocessing.get_bbox(joints, np.zeros(3)) is None


def test_augmentation_stays_within_its_ranges_and_has_its_rates():
    augs = [AugParams.random(np.random.default_rng(i)) for i in range(4000)]
    scale, rot = np.array([a.scale for a in augs]), np.array([a.rot for a in augs])
    color, flip = np.array([a.color for a in augs]), np.array([a.flip for a in augs])
    assert scale.min() == .75 and scale.max() == 1.25 and abs(scale.mean() - 1) < .01
    assert rot.min() == -60 and rot.max() == 60 and abs((rot != 0).mean() - .6) < .03
    assert color.min() >= .8 and color.max() <= 1.2 and abs(color.mean() - 1) < .01
    assert abs(flip.mean() - .5) < .03
    assert not any(AugParams.random(np.random.default_rng(i), allow_flip=False).flip for i in range(20))
    assert AugParams.random(np.random.default_rng(3)) == AugParams.random(np.random.default_rng(3))


@pytest.mark.parametrize('seed', range(6))
def test_crop_moves_image_and_points_together(seed):
    rng = np.random.default_rng(seed)
    shape, bbox = (rng.integers(200, 400), rng.integers(200, 400)), np.array([30.3, 40.7, 150, 150])
    pixel = np.array([100., 110.]) + rng.uniform(-25, 25, 2)
    aug = AugParams(rng.uniform(.8, 1.25), rng.uniform(-60, 60), (1, 1, 1), bool(seed % 2))
    patch, img2bb, bb2img = crop(image_with_dot(shape, pixel), bbox, aug, SHAPE)
    seen = np.array([shape[1] - 1 - pixel[0], pixel[1]]) if aug.flip else pixel
    in_patch = img2bb @ [*seen, 1]
    np.testing.assert_allclose(dot_position(patch), in_patch, atol=.1)
    np.testing.assert_allclose(bb2img @ [*in_patch, 1], seen, atol=1e-2)


def test_crop_of_a_flipped_mirror_image_is_the_crop():
    rng = np.random.default_rng(0)
    img = cv2.resize(rng.integers(0, 256, (12, 10, 3), dtype=np.uint8), (300, 320))
    bbox = np.array([60.5, 70, 180, 180])
    mirrored_box = np.array([300 - 1 - (60.5 + 180), 70, 180, 180])
    for rot in (0, 25):
        plain, *_ = crop(img, bbox, AugParams(1.1, rot), SHAPE)
        twice, *_ = crop(img[:, ::-1].copy(), mirrored_box, AugParams(1.1, rot, flip=True), SHAPE)
        assert np.abs(plain - twice).max() < 2 / 255


def test_crop_beyond_the_image_is_black_and_colours_are_clipped():
    img = np.full((1000, 1000, 3), (100, 200, 250), np.uint8)
    patch, *_ = crop(img, np.array([-300., 84, 607, 607]), AugParams(color=(1.2, 1.2, 1.2)), SHAPE)
    assert patch.shape == (3, 256, 256) and patch.dtype == np.float32
    assert (patch[:, :, :120] == 0).all()
    np.testing.assert_allclose(patch[:, 128, 200], [120 / 255, 240 / 255, 1], atol=1e-6)
    patch, *_ = crop(img, np.array([-7., 84, 607, 607]), None, (128, 64))
    assert patch.shape == (3, 128, 64)


def test_a_patch_of_bytes_becomes_the_same_bits_on_its_own_and_in_a_batch():
    """Beside NumPy: each byte times (factor / 255), in float32, at most 1."""
    rng = np.random.default_rng(0)
    patches = rng.integers(0, 256, (5, 48, 32, 3), dtype=np.uint8)
    patches[0, :16, :16] = np.arange(256).reshape(16, 16, 1)
    augs = [AugParams(color=tuple(rng.uniform(.8, 1.2, 3).tolist())) for _ in range(4)] + [None]
    scales = np.stack([color_scale(aug) for aug in augs])
    images = float_image({'img': torch.from_numpy(patches), 'color_scale': torch.from_numpy(scales)})
    assert images.dtype == torch.float32 and images.is_contiguous(memory_format=torch.channels_last)
    for patch, aug, scale, image in zip(patches, augs, scales, images, strict=True):
        for channel, factor in enumerate(aug.color if aug else (1, 1, 1)):
            want = np.minimum(patch[..., channel] * np.float32(factor / 255), np.float32(1))
            np.testing.assert_array_equal(image[channel].numpy(), want)
        alone = float_image({'img': torch.from_numpy(patch), 'color_scale': torch.from_numpy(scale)})
        assert torch.equal(alone, image)
    assert float_image({'img': images}) is images
    assert images.max() == 1 and float_image({'img': images.double()}).dtype == torch.float64


def test_images_are_rgb_without_exif_rotation_and_errors_name_the_path(tmp_path):
    img = np.zeros((8, 12, 3), np.uint8)
    img[..., 0] = 200
    cv2.imwrite(str(tmp_path / 'a.png'), img[..., ::-1])
    np.testing.assert_array_equal(read_image(str(tmp_path / 'a.png')), img)
    (tmp_path / 'broken.jpg').write_bytes(b'no image')
    with pytest.raises(ValueError, match='broken.jpg'):
        read_image(str(tmp_path / 'broken.jpg'))
    with pytest.raises(FileNotFoundError, match='absent.jpg'):
        read_image(str(tmp_path / 'absent.jpg'))
