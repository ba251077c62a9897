"""The demo's inputs: images of every kind, boxes in every form, and the complaints about wrong ones."""
import base64
import json
import os
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from common.demo.inputs.box_file import read_box_file
from common.demo.inputs.box_table import BoxTable
from common.demo.inputs.boxes import check_box, person_shaped
from common.demo.inputs.find import find_inputs
from common.demo.inputs.images import frame_count, read_image
from common.demo.inputs.sources import BoxSource, InputImage, read_frames, read_images
from common.demo.inputs.video import Video
from common.demo.outputs.video_writer import VideoWriter
from common.errors import UserError
from common.files.avif import upright


def gradient(height, width):
    """An image whose red grows to the right and whose green grows downwards."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return np.stack([x, y, np.full_like(x, 90)], -1).astype(np.uint8)


def with_orientation(jpeg, value):
    """JPEG bytes with an EXIF block that states an orientation."""
    tiff = b'II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0' + bytes([value]) + b'\0\0\0\0\0\0\0'
    block = b'Exif\0\0' + tiff
    return jpeg[:2] + b'\xff\xe1' + (len(block) + 2).to_bytes(2, 'big') + block + jpeg[2:]


def test_kinds_of_images(tmp_path):
    rgb = gradient(40, 60)
    bgr = rgb[..., ::-1]
    alpha = np.full((40, 60, 1), 128, np.uint8)
    for name, stored in {'colour.png': bgr, 'rgba.png': np.concatenate([bgr, alpha], -1),
                         'sixteen.png': bgr.astype(np.uint16) * 257, 'ünï-名前.png': bgr}.items():
        (tmp_path / name).write_bytes(cv2.imencode('.png', stored)[1].tobytes())
        np.testing.assert_array_equal(read_image(tmp_path / name).image, rgb)
    cv2.imwrite(str(tmp_path / 'grey.png'), rgb[..., 0])
    np.testing.assert_array_equal(read_image(tmp_path / 'grey.png').image, np.repeat(rgb[..., :1], 3, -1))


def test_exif_orientation_is_applied(tmp_path):
    """Orientation 6: the stored image has to be turned clockwise to be upright."""
    upright = gradient(60, 40)
    stored = cv2.rotate(upright, cv2.ROTATE_90_COUNTERCLOCKWISE)
    data = cv2.imencode('.jpg', stored[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 100])[1].tobytes()
    (tmp_path / 'phone.jpg').write_bytes(with_orientation(data, 6))
    read = read_image(tmp_path / 'phone.jpg').image
    assert read.shape == (60, 40, 3)
    assert np.abs(read.astype(int) - upright).mean() < 3


# 12 x 8 pixels in four colours, as Pillow writes them for the EXIF orientation 5: turned by irot, mirrored by imir.
AVIF = base64.b64decode(
    'AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUEAAAD/bWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAAAAAAAO'
    'cGl0bQAAAAAAAQAAAB5pbG9jAAAAAEQAAAEAAQAAAAEAAAEnAAAAVgAAAChpaW5mAAAAAAABAAAAGmluZmUCAAAAAAEAAGF2MDFDb2xvcgAA'
    'AAB+aXBycAAAAF1pcGNvAAAAFGlzcGUAAAAAAAAADAAAAAgAAAAQcGl4aQAAAAADCAgIAAAADGF2MUOBIAAAAAAAE2NvbHJuY2x4AAEADQAG'
    'gAAAAAlpcm90AQAAAAlpbWlyAAAAABlpcG1hAAAAAAAAAAEAAQYBAoMEhYYAAABebWRhdBIACgg4DK+0gIaDSDJIF4JjBMJJJJMqqoAA/UX5'
    'Ohddid/vjDSGpLUk12zAR6zFfMYvtMcJM5p9ZMr4guSUTGjtCSud++CvwUAeeUZNeCRW8jggpdsO')


@pytest.mark.parametrize('turns, mirror, corners', [
    (0, None, 'rbkg'), (3, None, 'krgb'), (2, None, 'gkbr'), (1, None, 'bgrk'),
    (0, 1, 'brgk'), (0, 0, 'kgrb'), (1, 0, 'rkbg'), (3, 0, 'gbkr')])
def test_avif_orientation_is_applied(tmp_path, turns, mirror, corners):
    """Corners: colours at the top left, top right, bottom left and bottom right, as Pillow 12 shows the file."""
    data = AVIF.replace(b'irot\1', b'irot' + bytes([turns])).replace(b'imir\0', b'imir' + bytes([mirror or 0]))
    if mirror is None:
        data = data.replace(b'\x85\x86', b'\x85\0')  # the item has no such property
    (tmp_path / 'phone.avif').write_bytes(data)
    read = read_image(tmp_path / 'phone.avif').image
    assert read.shape == ((12, 8, 3) if turns % 2 else (8, 12, 3))
    colors = {'r': [255, 0, 0], 'g': [0, 255, 0], 'b': [0, 0, 255], 'k': [0, 0, 0]}
    for color, (row, column) in zip(corners, [(0, 0), (0, -1), (-1, 0), (-1, -1)], strict=True):
        np.testing.assert_allclose(read[row, column].astype(int), colors[color], atol=12)


@pytest.mark.parametrize('cut', [b'pitm', b'ipma', b'ipco', b'iprp'])
def test_avif_with_odd_boxes_is_read_as_it_is(cut):
    """Whatever stands in them, the orientation is left alone and nothing else happens."""
    image = np.zeros((8, 12, 3), np.uint8)
    assert upright(image, AVIF.replace(cut, b'none')).shape == (8, 12, 3)
    for end in range(len(AVIF)):
        assert upright(image, AVIF[:end]).size == image.size


def test_image_named_jfif(tmp_path):
    """As browsers on Windows name JPEG files."""
    (tmp_path / 'a.JFIF').write_bytes(cv2.imencode('.jpg', gradient(40, 60))[1].tobytes())
    assert [read_image(path).image.shape for path in find_inputs(tmp_path)] == [(40, 60, 3)]


def test_hidden_files_are_no_images(tmp_path):
    """macOS puts `._a.png` beside a.png when it copies a folder: no image, and no place in a list of boxes."""
    for name in ('a.png', 'b.png'):
        cv2.imwrite(str(tmp_path / name), gradient(50, 40))
        (tmp_path / f'._{name}').write_bytes(b'\0\5\x16\7\0\2\0\0Mac OS X')
    (tmp_path / '.trash.jpg').write_text('text')
    failed = []
    (tmp_path / 'list.json').write_text(json.dumps([[[1, 1, 20, 30]], [[2, 2, 20, 30]]]))
    found = list(read_images(find_inputs(tmp_path), BoxSource(table=read_box_file(tmp_path / 'list.json')), failed))
    assert [(image.path.name, image.boxes[0][0]) for image in found] == [('a.png', 1), ('b.png', 2)] and not failed


@pytest.mark.parametrize('content', [b'just a text', b'', b'\xff\xd8\xff\xe0broken'])
def test_no_image(tmp_path, content):
    (tmp_path / 'fake.jpg').write_bytes(content)
    with pytest.raises(UserError, match='fake.jpg'):
        read_image(tmp_path / 'fake.jpg')


def test_same_box_in_both_formats():
    np.testing.assert_array_equal(check_box(['10', '20', '30', '60'], 100, 100), [10, 20, 30, 60])
    np.testing.assert_array_equal(check_box([10, 20, 40, 80], 100, 100, 'xyxy'), [10, 20, 30, 60])
    np.testing.assert_array_equal(check_box('full', 640, 480), [0, 0, 640, 480])
    np.testing.assert_array_equal(check_box([-7, 84, 607, 607], 1000, 1000), [-7, 84, 607, 607])


@pytest.mark.parametrize('box, told', [
    ([10, 20, 0, 60], 'no area'), ([10, 20, -5, 60], 'no area'), ([10, 20, 1e-60, 60], 'no area'),
    ([200, 20, 30, 60], 'outside'), ([-50, 20, 30, 60], 'outside'), ([10, 20, 30], 'four numbers'),
    (['a', 1, 2, 3], 'four numbers'), ([10, 20, float('nan'), 60], 'four numbers'),
    ([0, 0, 1e30, 1e30], 'above 1,000,000 pixels'), ([10 ** 400, 0, 5, 5], 'four numbers'),
    ([10, 10, 0.5, 0.5], 'too little'), ([99.5, 10, 50, 50], 'too little'), ([-49.5, 10, 50, 50], 'too little'),
    ([50, 30, 90, 95], 'corners'), ('half', 'four numbers'), ('', 'not an empty text$')])
def test_wrong_boxes(box, told):
    with pytest.raises(UserError, match=told) as caught:
        check_box(box, 100, 100)
    assert '\n' not in str(caught.value)


def test_image_of_one_pixel_has_no_person():
    with pytest.raises(UserError, match='too little'):
        check_box('full', 1, 1)


def test_explicit_format_settles_the_doubt():
    np.testing.assert_array_equal(check_box([50, 30, 90, 95], 100, 100, 'xywh'), [50, 30, 90, 95])
    with pytest.raises(UserError, match='no area'):
        check_box([50, 30, 40, 95], 100, 100, 'xyxy')


def test_person_shaped():
    assert person_shaped([0, 0, 100, 300]) and person_shaped([0, 0, 240, 100])
    assert not person_shaped([0, 0, 400, 100])


def test_folder_reads_on_past_bad_images(tmp_path):
    for name in ('b.png', 'a.png', 'c.png'):
        cv2.imwrite(str(tmp_path / name), gradient(50, 40))
    (tmp_path / 'bad.jpg').write_text('text')
    (tmp_path / 'notes.txt').write_text('text')
    failed = []
    source = BoxSource(table=BoxTable(tmp_path, {'a.png': [[1, 2, 30, 40]], 'c': ['full'], 'bad.jpg': ['full']}))
    found = list(read_images(find_inputs(tmp_path), source, failed))
    assert [p.path.name for p in found] == ['a.png', 'c.png']
    assert [len(p.boxes) for p in found] == [1, 1]
    assert source.empty == ['b.png']
    assert len(failed) == 1 and 'bad.jpg' in failed[0]


def test_numbers_as_names_of_images(tmp_path):
    """In a folder "1" is the image 1.png, not the second one; a list goes by the order, a video by its frames."""
    for name in ('1.png', '2.png', '3.png'):
        cv2.imwrite(str(tmp_path / name), gradient(50, 40))
    boxes = {str(n): [[n, n, 20, 30]] for n in (1, 2, 3)}
    named = list(read_images(find_inputs(tmp_path), BoxSource(table=BoxTable(tmp_path, boxes)), []))
    assert [p.boxes[0][0] for p in named] == [1, 2, 3]
    (tmp_path / 'list.json').write_text(json.dumps([[[n, n, 20, 30]] for n in (7, 8, 9)]))
    listed = list(read_images(find_inputs(tmp_path), BoxSource(table=read_box_file(tmp_path / 'list.json')), []))
    assert [p.boxes[0][0] for p in listed] == [7, 8, 9]
    frames = BoxSource(table=BoxTable(tmp_path, {'2': [[2, 2, 20, 30]]}))
    assert [len(frames(Path('2.mp4'), number, gradient(50, 40))) for number in range(4)] == [0, 0, 1, 0]


def test_whole_wide_image_is_warned_about():
    source = BoxSource(fixed=['full'])
    for number in range(3):
        source(Path('wide.mp4'), number, gradient(40, 200))
    source(Path('high.jpg'), 0, gradient(200, 40))
    assert source.notes == ['wide.mp4: the whole image is not a box around one person; expect a poor mesh']


def test_links_to_nothing_and_unknown_kinds_are_told(tmp_path):
    (tmp_path / 'dead.JPG').symlink_to(tmp_path / 'gone.jpg')
    (tmp_path / 'phone.HEIC').write_bytes(b'\0\0\0\x18ftypheic')
    cv2.imwrite(str(tmp_path / 'fine.png'), gradient(50, 40))
    (tmp_path / 'folder.png').mkdir()
    failed = []
    assert len(list(read_images(find_inputs(tmp_path), BoxSource(fixed=['full']), failed))) == 1
    assert len(failed) == 2 and 'No such file' in failed[0] and 'give a JPEG or PNG' in failed[1]


def test_first_of_several_images_in_a_file(tmp_path):
    pages = [np.full((50, 40, 3), level, np.uint8) for level in (50, 100, 150)]
    cv2.imwritemulti(str(tmp_path / 'a ü.tif'), pages)
    cv2.imwrite(str(tmp_path / 'b.png'), pages[0])
    source = BoxSource(fixed=['full'])
    first, second = read_images(find_inputs(tmp_path), source, [])
    assert (first.image == 50).all() and (second.image == 50).all()
    assert source.notes == ['a ü.tif: only the first of its 3 images is used']
    assert frame_count(tmp_path / os.fsdecode(b'caf\xe9.tif')) == 1


def test_missing_input(tmp_path):
    with pytest.raises(UserError, match='no images'):
        find_inputs(tmp_path)
    with pytest.raises(UserError, match='no such file'):
        find_inputs(tmp_path / 'nothing.jpg')


@pytest.mark.skipif(sys.platform != 'linux', reason='other systems have no such names')
def test_video_whose_name_is_no_text(tmp_path):
    path = tmp_path / os.fsdecode(b'caf\xe9.avi')
    path.write_bytes(b'x')
    with pytest.raises(UserError, match='names in UTF-8'):
        Video(path)
    with pytest.raises(UserError, match='names in UTF-8'):
        VideoWriter(path, 'rendered_mesh_lixel', (48, 64), 25)


def test_video_frames_in_order(tmp_path):
    path = tmp_path / 'clip.avi'
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'MJPG'), 20, (64, 48))
    for level in range(0, 250, 25):
        writer.write(np.full((48, 64, 3), level, np.uint8))
    writer.release()
    video = Video(path)
    assert (video.frames, video.fps, video.size) == (10, 20, (48, 64))
    levels = [(number, image.mean()) for number, image in video]
    assert [n for n, _ in levels] == list(range(10))
    np.testing.assert_allclose([m for _, m in levels], range(0, 250, 25), atol=4)
    images = list(read_frames(video, BoxSource(table=BoxTable(tmp_path, {'2': [[0, 0, 20, 40]]}))))
    assert all(isinstance(p, InputImage) for p in images)
    assert [len(p.boxes) for p in images] == [0, 0, 1] + [0] * 7
    (tmp_path / 'fake.mp4').write_text('text')
    with pytest.raises(UserError, match='fake.mp4'):
        Video(tmp_path / 'fake.mp4')


@pytest.mark.parametrize('share', [.25, .6, .99])
def test_a_jpeg_that_is_cut_off_is_refused(tmp_path, share):
    """OpenCV decodes it, with grey in place of what is missing."""
    noise = np.random.default_rng(0).integers(0, 255, (64, 48, 3), np.uint8)
    data = cv2.imencode('.jpg', noise)[1].tobytes()
    path = tmp_path / 'half.jpg'
    path.write_bytes(data)
    assert read_image(path).image.shape == (64, 48, 3)
    path.write_bytes(data[:int(share * len(data))])
    with pytest.raises(UserError, match='half.jpg is cut off'):
        read_image(path)
