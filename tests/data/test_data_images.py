"""Images that are not what the annotations say, or not all there."""
import logging
import struct

import cv2
import numpy as np
import pytest
import torch

from common.errors import UserError
from common.files.images import read_image
from common.files.tiff import without_orientation
from common.utils.preprocessing import float_image
from tests.data_tools import copy_set

HEIGHT = 240
WIDTH = 320
PERSON = (20, 200, 60, 100)  # rows 200.., columns 20..: y, x, height, width
SETS = (('Human36M', 'train'), ('MuCo', 'train'), ('MSCOCO', 'train'), ('PW3D', 'train'), ('FreiHAND', 'train'))


def person_image():
    """(240, 320, 3) uint8: a white person on black."""
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    image[20:120, 200:260] = 255
    return image


def jpeg(image, orientation=1):
    """JPEG bytes with an EXIF orientation."""
    data = cv2.imencode('.jpg', image)[1].tobytes()
    block = b'Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0' + bytes([orientation]) + bytes(7)
    return data[:2] + b'\xff\xe1' + (len(block) + 2).to_bytes(2, 'big') + block + data[2:]


def stored_turned(image):
    """What a camera held upright stores: EXIF 6 says that a quarter turn clockwise shows it."""
    return jpeg(np.ascontiguousarray(np.rot90(image)), orientation=6)


def test_an_image_stored_turned_is_turned_where_only_that_fits(tmp_path):
    path = tmp_path / 'a.jpg'
    path.write_bytes(stored_turned(person_image()))
    turned = read_image(path, (HEIGHT, WIDTH))
    np.testing.assert_allclose(turned, person_image(), atol=40)
    assert read_image(path).shape == read_image(path, (WIDTH, HEIGHT)).shape == (WIDTH, HEIGHT, 3)
    square = person_image()[:, :HEIGHT]
    path.write_bytes(stored_turned(square))
    np.testing.assert_array_equal(read_image(path, square.shape[:2]), read_image(path))


def tiff(image, orientation, order):
    """Uncompressed TIFF bytes (RGB) with an orientation; order: '<' or '>', of its bytes."""
    height, width, _ = image.shape
    bits = 10 + 12 * 9 + 4  # where they are: after the header and the directory
    short, long = 3, 4
    entries = [(256, short, 1, width), (257, short, 1, height), (258, short, 3, bits), (259, short, 1, 1),
               (262, short, 1, 2), (273, long, 1, bits + 6), (274, short, 1, orientation), (277, short, 1, 3),
               (279, long, 1, image.size)]
    data = struct.pack(f'{order}2sHIH', b'II' if order == '<' else b'MM', 42, 8, len(entries))
    for tag, kind, count, value in entries:
        data += struct.pack(f'{order}HHI', tag, kind, count)
        data += struct.pack(f'{order}HH', value, 0) if kind == short and count == 1 else struct.pack(f'{order}I', value)
    return data + struct.pack(f'{order}IHHH', 0, 8, 8, 8) + image.tobytes()


@pytest.mark.parametrize('order', '<>')
@pytest.mark.parametrize('orientation', range(1, 9))
def test_a_tiff_is_read_as_it_is_stored(orientation, order, tmp_path):
    """OpenCV turns it whatever it is asked for; where only the turned size fits, it is turned here too."""
    image = np.ascontiguousarray(person_image()[..., ::-1])
    image[0, 0] = (255, 0, 0)
    path = tmp_path / 'a.tif'
    path.write_bytes(tiff(image, orientation, order))
    np.testing.assert_array_equal(read_image(path), image)
    np.testing.assert_array_equal(read_image(path, (HEIGHT, WIDTH)), image)
    if orientation >= 5:
        turned = read_image(path, (WIDTH, HEIGHT))
        corner = {5: (0, 0), 6: (0, -1), 7: (-1, -1), 8: (-1, 0)}[orientation]
        assert turned.shape == (WIDTH, HEIGHT, 3) and tuple(turned[corner]) == (255, 0, 0)


def test_a_damaged_tiff_is_left_as_it_is():
    whole = tiff(np.zeros((4, 4, 3), np.uint8), 6, '<')
    for data in (whole[:7], whole[:9], whole[:30], b'', whole[:4] + b'\xff' * 4 + whole[8:]):
        assert without_orientation(data) == data


@pytest.mark.parametrize('data', [jpeg(person_image()[::2, ::2]), jpeg(np.ascontiguousarray(np.rot90(person_image())))])
def test_an_image_of_another_size_is_named(data, tmp_path):
    path = tmp_path / 'a.jpg'
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r'a\.jpg is \d+ x \d+ pixels large, the annotations say 320 x 240'):
        read_image(path, (HEIGHT, WIDTH))


@pytest.mark.parametrize('name, split', SETS)
def test_every_loader_compares_the_size_of_the_image(name, split, open_set, tiny_datasets, tmp_path, caplog):
    """Turned by EXIF the crop is the same; at half size another sample stands in, and a setting makes it an error."""
    data_dir = copy_set(tiny_datasets, tmp_path, *{name, 'Human36M'})
    data = open_set(name, split, data_dir=data_dir)
    sample = data.samples[0]
    image = np.ascontiguousarray(read_image(sample.img_path)[..., ::-1])
    expected = data.get_item(0, None)[0]['img']
    with open(sample.img_path, 'wb') as file:
        file.write(stored_turned(image))
    if image.shape[0] != image.shape[1]:
        assert np.abs(data.get_item(0, None)[0]['img'] - expected).mean() < 0.05
    with open(sample.img_path, 'wb') as file:
        file.write(jpeg(image[::2, ::2]))
    with pytest.raises(ValueError, match='pixels large, the annotations say'):
        data.get_item(0, None)
    with caplog.at_level(logging.WARNING):
        data.get(0, np.random.default_rng(0))
    assert f'sample 0 cannot be used and is replaced: {sample.img_path} is' in caplog.text
    with pytest.raises(UserError, match=sample.img_path):
        open_set(name, split, 'missing_image=error', data_dir=data_dir)[0]


def test_an_image_that_a_loader_makes_is_compared_too(open_set, monkeypatch):
    data = open_set('MSCOCO', 'train')
    monkeypatch.setattr(data, 'load_image', lambda sample: np.zeros((10, 10, 3), np.uint8))
    with pytest.raises(ValueError, match='is 10 x 10 pixels large'):
        data.get_item(0, None)


def test_a_jpeg_without_its_end_is_refused(tmp_path):
    thumbnail = jpeg(person_image()[::8, ::8])
    block = b'Exif\0\0' + thumbnail
    whole = jpeg(person_image())
    whole = whole[:2] + b'\xff\xe1' + (len(block) + 2).to_bytes(2, 'big') + block + whole[2:]
    path = tmp_path / 'a.jpg'
    for data in (whole, whole + b'\0' * 50, whole + thumbnail):  # some cameras put more after the end
        path.write_bytes(data)
        assert read_image(path, (HEIGHT, WIDTH))[50, 230].min() > 200
    for length in (len(whole) * 3 // 4, len(whole) - 200, len(whole) - 2):
        for rest in (b'', bytes(len(whole) - length)):  # a download that took the room at its start
            path.write_bytes(whole[:length] + rest)
            with pytest.raises(ValueError, match=r'a\.jpg is cut off'):
                read_image(path)


@pytest.mark.parametrize('ending', ('.png', '.bmp', '.webp', '.tif', '.gif', '.jp2', '.ppm'))
def test_other_formats_cut_off_are_refused(ending, tmp_path):
    data = cv2.imencode(ending, person_image())[1].tobytes()
    path = tmp_path / f'a{ending}'
    path.write_bytes(data[:len(data) // 2])
    with pytest.raises(ValueError, match=rf'a\{ending}'):
        read_image(path)


def test_a_missing_image_is_told_once_and_by_us(tmp_path, capfd):
    with pytest.raises(FileNotFoundError, match=r'absent\.jpg'):
        read_image(tmp_path / 'absent.jpg')
    assert capfd.readouterr() == ('', '')


@pytest.mark.parametrize('name, split', SETS)
def test_what_is_sent_to_the_device_is_the_sample_in_bytes(name, split, open_set):
    """The same bits, in a third of the bytes."""
    data = open_set(name, split)
    data.set_epoch(3)
    compact = data.compact(0)
    item = data[0]
    inputs = {key: torch.from_numpy(value) for key, value in compact[0].items()}
    np.testing.assert_array_equal(float_image(inputs).numpy(), item[0]['img'])
    assert inputs['img'].dtype == torch.uint8
    for sent, known in zip(compact[1:], item[1:], strict=True):
        assert sent.keys() == known.keys()
        for key, value in sent.items():
            np.testing.assert_array_equal(value, known[key])

    def size(parts):
        return sum(value.nbytes for part in parts for value in part.values())

    assert size(compact) < 0.4 * size(item)
