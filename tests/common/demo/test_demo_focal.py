"""The focal length: from EXIF, from the size of the image, or given; and what a size must not change."""
import json
import struct
from pathlib import Path

import cv2
import numpy as np
import pytest

from common.demo.inputs.exif import film_focal
from common.demo.inputs.images import read_image
from common.demo.people.placer import Placer, choose_camera, field_of_view, odd_view
from common.demo.people.prediction import Camera, Person
from common.demo.people.predictor import BoxPredictor
from main.config import Config
from main.demo import SAMPLES, SNAPSHOT, main
from main.predictor import load_predictor
from tests.demo_tools import blobs, write_snapshot

BOX = ['--bbox', '20', '30', '60', '120']


def exif_block(focal: int, order: str = '<', orientation: int = 1, kind: str = 'H') -> bytes:
    """An EXIF block with an orientation and a FocalLengthIn35mmFilm, stored as two or four bytes."""
    start = {'<': b'II*\0', '>': b'MM\0*'}[order] + struct.pack(f'{order}I', 8)
    first = struct.pack(f'{order}HHHIHH', 2, 0x112, 3, 1, orientation, 0)
    first += struct.pack(f'{order}HHIII', 0x8769, 4, 1, 38, 0)
    code = {'H': 3, 'I': 4}[kind]
    value = struct.pack(f'{order}{kind}', focal).ljust(4, b'\0')
    return start + first + struct.pack(f'{order}HHHI', 1, 0xa405, code, 1) + value + bytes(4)


def write_photo(path: Path, image: np.ndarray, block: bytes) -> Path:
    """Write an image (H, W, 3) with an EXIF block; returns its path."""
    blocks = [np.frombuffer(block, np.uint8)]
    path.write_bytes(cv2.imencodeWithMetadata(path.suffix, image, [cv2.IMAGE_METADATA_EXIF], blocks)[1].tobytes())
    return path


@pytest.mark.parametrize('order', ['<', '>'])
@pytest.mark.parametrize('kind', ['H', 'I'])
def test_exif_in_both_byte_orders(order: str, kind: str) -> None:
    assert film_focal(exif_block(26, order, kind=kind)) == 26


def test_exif_that_says_nothing() -> None:
    block = exif_block(26)
    assert film_focal(exif_block(0)) is None and film_focal(exif_block(65535)) is None
    assert film_focal(b'') is None and film_focal(b'no EXIF block at all') is None
    for length in range(len(block) - 8):
        assert film_focal(block[:length]) is None
    for position in range(len(block)):  # whatever is damaged, no error
        film_focal(block[:position] + b'\xff' + block[position + 1:])


@pytest.mark.parametrize('name', ['a.jpg', 'a.png', 'a.webp', 'a.avif'])
def test_files_of_all_kinds(tmp_path: Path, name: str) -> None:
    photo = read_image(write_photo(tmp_path / name, blobs(40, 60), exif_block(26, orientation=6)))
    assert photo.film_focal == 26 and photo.image.shape == (60, 40, 3)


def test_where_the_focal_length_comes_from() -> None:
    """26 mm on a film whose diagonal is 43.27 mm; an image of 4000 x 3000 pixels has a diagonal of 5000."""
    expected = {(None, None): (6000, 'default: 1.5 times the longer side of the image'),
                (None, 26.): (26 * 5000 / 43.2666, 'EXIF: 26 mm on 35 mm film'), ((1500., 1500.), 26.): (1500, 'given')}
    for (given, film), (pixels, source) in expected.items():
        for size in ((3000, 4000), (4000, 3000)):
            camera = choose_camera([], size, given, None, film)
            np.testing.assert_allclose(camera.focal, pixels, rtol=1e-5)
            assert camera.focal_source == source
    assert choose_camera([], (1000, 700)).focal.tolist() == [1500, 1500]  # the published value


@pytest.mark.parametrize('focal, degrees, noted', [
    (289., 119.9, False), (288., 120.1, True), (2835., 20.0, False), (2837., 19.99, True), (1500., 36.9, False)])
def test_fields_of_view_that_cameras_hardly_have(focal: float, degrees: float, noted: bool) -> None:
    camera = Camera(np.array([focal, focal]), np.array([350., 500.]), 'given')
    assert field_of_view(camera, (1000, 700)) == pytest.approx(degrees, abs=0.1)
    assert bool(odd_view(camera, (1000, 700))) == noted


@pytest.mark.parametrize('options, focal, source, warned', [
    ([], [867], 'EXIF: 125 mm', False), (['--focal', '1500'], [1500], 'given', True),
    (['--root_depth', '6'], [867], 'EXIF: 125 mm', False)])
def test_source_and_note_are_in_the_record(tmp_path: Path, capsys: pytest.CaptureFixture, options: list[str],
                                           focal: list[float], source: str, warned: bool) -> None:
    photo = write_photo(tmp_path / 'photo.jpg', blobs(240, 180), exif_block(125))
    snapshot = write_snapshot(tmp_path / 'tiny.pth.tar')
    assert main(['--gpu', 'cpu', '--snapshot', str(snapshot), '--output', str(tmp_path / 'out'), '--stage', 'lixel',
                 '--input', str(photo), *BOX, *options]) == 0
    record = json.loads((tmp_path / 'out' / 'photo' / 'result.json').read_text())
    camera = record['camera']
    assert np.round(camera['focal']).tolist() == focal * 2 and camera['focal_source'].startswith(source)
    note = 'field of view of 9 degrees'
    assert (note in ' '.join(record['warnings'])) == warned
    assert capsys.readouterr().out.count(note) == warned
    assert camera['field_of_view'] == pytest.approx(2 * np.degrees(np.arctan(120 / camera['focal'][0])), abs=0.06)


@pytest.fixture(scope='module')
def bundled() -> BoxPredictor:
    return load_predictor(Config(), SNAPSHOT)


def placed(predictor: BoxPredictor, image: np.ndarray, box: np.ndarray) -> Person:
    """The person in a box, with the default focal length."""
    _, people = Placer(2.)(predictor.predict(image, [np.float32(box)]), image.shape[:2])
    return people[0]


@pytest.mark.parametrize('number', [0, 1, 2])
def test_the_size_of_an_image_changes_nothing(bundled: BoxPredictor, number: int) -> None:
    """The same image, with grain, at 512 and 6000 pixels: depth and mesh within 1 % (of the depth, of its height)."""
    entry = json.loads((SAMPLES / 'samples.json').read_text())[number]
    sample = read_image(SAMPLES / entry['image']).image
    grain = np.random.default_rng(0).normal(0, 12, (500, 500, 3)).astype(np.int16)
    large = cv2.resize(sample, (6000, 6000), interpolation=cv2.INTER_CUBIC)
    for row in range(0, 6000, 500):
        for column in range(0, 6000, 500):
            tile = large[row:row + 500, column:column + 500]
            tile[:] = np.clip(tile + grain, 0, 255)
    small = cv2.resize(large, (512, 512), interpolation=cv2.INTER_AREA)
    box = np.array(entry['bbox'])
    one = placed(bundled, small, box)
    other = placed(bundled, large, box * 6000 / 512)
    assert other.root_depth == pytest.approx(one.root_depth, rel=0.01)
    for kind, mesh in one.meshes.items():
        distances = np.linalg.norm(mesh - other.meshes[kind] - [0, 0, one.root_depth - other.root_depth], axis=1)
        assert distances.mean() < 0.01 * np.ptp(mesh[:, 1]), kind


@pytest.mark.parametrize('shape', [(1, 1), (7, 7), (5, 500), (500, 4)])
@pytest.mark.parametrize('suffix', ['.png', '.bmp', '.webp', '.tif', '.jpg'])
def test_small_images_are_read(tmp_path, shape, suffix):
    path = tmp_path / f'small{suffix}'
    path.write_bytes(cv2.imencode(suffix, np.full((*shape, 3), 99, np.uint8))[1].tobytes())
    photo = read_image(path)
    assert photo.image.shape == (*shape, 3) and photo.film_focal is None
