"""Box files: each box goes to the image that its entry names, or the run stops."""
import json
from pathlib import Path
from typing import Any

import pytest

from common.demo.inputs.box_file import read_box_file
from common.demo.inputs.box_table import BoxTable
from common.errors import UserError
from main.demo import main
from tests.demo_tools import write_image, write_snapshot, write_video

A = [1, 2, 30, 40]
B = [5, 6, 70, 80]
PHOTOS = [Path('photos/a.jpg'), Path('photos/b.jpg'), Path('photos/c.jpg')]


def table_of(folder: Path, content: Any, lowest_score: float | None = None) -> BoxTable:
    path = folder / 'boxes.json'
    path.write_text(json.dumps(content))
    return read_box_file(path, lowest_score)


def by_image(table: BoxTable, paths: list[Path] = PHOTOS) -> list[list]:
    table.check_images(paths)
    return [table.of_image(path, number) for number, path in enumerate(paths)]


def by_frame(table: BoxTable, count: int) -> list[list]:
    table.check_frames(Path('clip.mp4'), count)
    return [table.of_frame(Path('clip.mp4'), number) for number in range(count)]


@pytest.mark.parametrize('content, expected', [
    ({'a.jpg': [A, B], 'b.jpg': A}, [[A, B], [A], []]),
    ({'a.jpg': {'bbox': A, 'note': 'x'}, 'b': 'full', 'photos/c.jpg': {'box': B}}, [[A], ['full'], [B]]),
    ([[A], None, [B, A]], [[A], [], [B, A]]),
    ([{'bbox': A, 'score': 0.5}, {'box': B}, []], [[A], [B], []])])
def test_layouts(tmp_path: Path, content: Any, expected: list[list]) -> None:
    assert by_image(table_of(tmp_path, content)) == expected


@pytest.mark.parametrize('box_key', ['bbox', 'box'])
@pytest.mark.parametrize('key', ['image_id', 'file_name', 'image_name', 'image'])
@pytest.mark.parametrize('names', [('b.jpg', 'a.jpg'), ('b', 'a'), ('photos/b.jpg', 'photos/a.jpg'),
                                   ('/elsewhere/b.jpg', '/elsewhere/a.jpg'), ('D:\\x\\b.jpg', 'D:\\x\\a.jpg')])
def test_entries_in_any_order(tmp_path: Path, key: str, box_key: str, names: tuple[str, str]) -> None:
    """Two people on b; nobody on c."""
    entries = [{key: names[0], box_key: B}, {key: names[1], box_key: A}, {key: names[0], box_key: A}]
    assert by_image(table_of(tmp_path, entries)) == [[A], [B, A], []]


@pytest.mark.parametrize('paths', [['photos/b.jpg', 'photos/a.jpg'], ['a.jpg', 'photos/b.jpg']])
def test_a_list_without_names_is_for_one_folder_in_the_order_of_names(tmp_path: Path, paths: list[str]) -> None:
    with pytest.raises(UserError, match='a list without names is for the images of one folder'):
        by_image(table_of(tmp_path, [A, B]), [Path(path) for path in paths])


def test_of_coco_only_persons_and_no_crowds(tmp_path: Path) -> None:
    annotations = [{'image_id': 1, 'category_id': 1, 'bbox': A}, {'image_id': 1, 'category_id': 18, 'bbox': B},
                   {'image_id': 1, 'category_id': 1, 'iscrowd': 1, 'bbox': B}]
    content = {'images': [{'id': 1, 'file_name': 'a.jpg'}], 'annotations': annotations,
               'categories': [{'id': 18, 'name': 'dog'}, {'id': 1, 'name': 'person'}]}
    assert by_image(table_of(tmp_path, content)) == [[A], [], []]
    del content['categories']
    assert by_image(table_of(tmp_path, content)) == [[A, B], [], []]


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'boxes.json'
    path.write_text('{"a.jpg": [[1, 2, 30, 40]], "a.jpg": [[5, 6, 70, 80]]}')
    with pytest.raises(UserError, match='"a.jpg" is there twice: write all its boxes into one list'):
        read_box_file(path)


@pytest.mark.parametrize('key', ['image_id', 'frame', 'image'])
def test_numbers_as_ids(tmp_path: Path, key: str) -> None:
    """Never places in the list: 2 is 2.jpg, COCO's 000000000002.jpg, or frame 2 of a video."""
    table = table_of(tmp_path, [{key: 2, 'bbox': B}, {key: 1, 'bbox': A}, {key: 2.0, 'bbox': A}])
    assert by_image(table, [Path('1.jpg'), Path('2.jpg')]) == [[A], [B, A]]
    assert by_image(table, [Path('000000000001.jpg'), Path('000000000002.jpg')]) == [[A], [B, A]]
    assert by_frame(table, 4) == [[], [A], [B, A], []]


def test_frames_named_like_images(tmp_path: Path) -> None:
    """As AlphaPose names them, in any order."""
    table = table_of(tmp_path, [{'image_id': '2.jpg', 'box': B}, {'image_id': '0.jpg', 'box': A}])
    assert by_frame(table, 3) == [[A], [], [B]]


def test_boxes_for_every_frame(tmp_path: Path) -> None:
    assert by_frame(table_of(tmp_path, {'clip.mp4': [A]}), 2) == [[A], [A]]


def test_coco(tmp_path: Path) -> None:
    """Its ids are not places, and mean nothing without its list of images."""
    images = [{'id': 11, 'file_name': 'sub/b.jpg'}, {'id': 0, 'file_name': 'a.jpg'}]
    content = {'images': images, 'annotations': [
        {'image_id': 11, 'bbox': B}, {'image_id': 0, 'bbox': A}, {'image_id': 11, 'bbox': A}]}
    assert by_image(table_of(tmp_path, content)) == [[A], [B, A], []]
    content['annotations'][0]['image_id'] = 1
    with pytest.raises(UserError, match='annotation 0: no image has the id 1'):
        table_of(tmp_path, content)


def test_two_images_of_one_id(tmp_path: Path) -> None:
    """The same again does no harm."""
    images = [{'id': 1, 'file_name': 'a.jpg'}, {'id': 1, 'file_name': 'a.jpg'}]
    content = {'images': images, 'annotations': [{'image_id': 1, 'bbox': A}]}
    assert by_image(table_of(tmp_path, content)) == [[A], [], []]
    images[1] = {'id': '1', 'file_name': 'b.jpg'}
    with pytest.raises(UserError, match='two images have the id 1'):
        table_of(tmp_path, content)


def test_folders_tell_images_of_one_name_apart(tmp_path: Path) -> None:
    table = table_of(tmp_path, [{'image_id': 'x/a.jpg', 'bbox': B}, {'image_id': 'y/a.jpg', 'bbox': A}])
    assert by_image(table, [Path('y/a.jpg'), Path('x/a.jpg')]) == [[A], [B]]
    with pytest.raises(UserError, match='2 of its names fit no image: x/a.jpg, y/a.jpg'):
        by_image(table, [Path('z/a.jpg')])


def test_scores(tmp_path: Path) -> None:
    entries = [{'image_id': 'a', 'bbox': A, 'score': 0.4}, {'image_id': 'a', 'bbox': B, 'score': 2.9},
               {'image_id': 'c', 'bbox': B, 'score': 0.1}]
    assert by_image(table_of(tmp_path, entries)) == [[A, B], [], [B]]
    assert by_image(table_of(tmp_path, entries, 0.5)) == [[B], [], []]
    with pytest.raises(UserError, match='"score" is a number, not high'):
        table_of(tmp_path, [{'image_id': 'a', 'bbox': A, 'score': 'high'}], 0.5)


@pytest.mark.parametrize('ids', [['a.jpg', 'x.jpg'], ['a.jpg', 3], ['a.jpg', 'photos2/x/d.jpg']])
def test_ids_that_fit_no_image(tmp_path: Path, ids: list) -> None:
    table = table_of(tmp_path, [{'image_id': name, 'bbox': A} for name in ids])
    with pytest.raises(UserError, match=f'boxes.json: 1 of its names fit no image: {ids[1]}$'):
        table.check_images(PHOTOS)


def test_ids_that_fit_no_frame(tmp_path: Path) -> None:
    table = table_of(tmp_path, [{'image_id': 'photo.jpg', 'bbox': A}])
    with pytest.raises(UserError, match='fit no frame .*: photo.jpg'):
        table.check_frames(Path('clip.mp4'))
    late = table_of(tmp_path, [{'frame': 12, 'bbox': A}])
    assert late.check_frames(Path('clip.mp4')) == ''  # as long as the frames are not counted
    with pytest.raises(UserError, match='fit no frame .*: 12'):
        late.check_frames(Path('clip.mp4'), 12)


def test_names_of_an_object_and_places_are_noted(tmp_path: Path) -> None:
    """A file for more images than are read is fine, but not without a word."""
    assert 'fit no image: d.jpg' in table_of(tmp_path, {'a.jpg': A, 'd.jpg': B}).check_images(PHOTOS)
    assert table_of(tmp_path, {'a.jpg': A, 'd.jpg': B}).check_images(PHOTOS, [Path('photos/d.jpg')]) == ''
    assert 'its last 1 entries fit no image' in table_of(tmp_path, [[A], [A], [A], [B]]).check_images(PHOTOS)


@pytest.mark.parametrize('content, told', [
    ([{'image_id': 'a.jpg', 'bbox': A}, {'bbox': B}], 'entry 1: some entries name their image and some do not'),
    ([{'bbox': B}, {'image_id': 'a.jpg', 'bbox': A}], 'entry 1: some entries name their image and some do not'),
    ([{'img': 'a.jpg', 'bbox': A}], '"img" seems to name its image; call that "image_id"'),
    ([{'image_id': None, 'bbox': A}], '"image_id" is the name or number of an image, not None'),
    ([{'image_id': '', 'bbox': A}], 'not an empty text'), ([{'image_id': -1, 'bbox': A}], 'not -1'),
    ([{'frame': 'x', 'bbox': 'full'}], '"frame" is a number counted from 0, not x'),
    ([{'image_id': 'a.jpg', 'keypoints': A}], 'entry 0: no "bbox" in it'),
    ({'images': [{'id': 1}], 'annotations': []}, 'image 0: no "id" or "file_name"'),
    ({'images': [], 'annotations': [{'bbox': A}]}, 'annotation 0: no "image_id"'),
    (3, 'expected an object'), ({'a.jpg': 5}, 'not a list of boxes'), ({'a.jpg': {'region': A}}, 'no "bbox" in it')])
def test_wrong_files(tmp_path: Path, content: Any, told: str) -> None:
    with pytest.raises(UserError, match='boxes.json') as caught:
        table_of(tmp_path, content)
    assert told in str(caught.value) and '\n' not in str(caught.value)


@pytest.mark.parametrize('text', ['no json', '[' * 100000])
def test_no_json(tmp_path: Path, text: str) -> None:
    (tmp_path / 'boxes.json').write_text(text)
    with pytest.raises(UserError, match='boxes.json'):
        read_box_file(tmp_path / 'boxes.json')


def test_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / 'boxes.json').write_text('\ufeff{"a.jpg": [1, 2, 30, 40]}', encoding='utf-8')
    assert by_image(read_box_file(tmp_path / 'boxes.json'))[0] == [A]


def run(folder: Path, boxes: list[dict], *more: str) -> None:
    (folder / 'boxes.json').write_text(json.dumps(boxes))
    snapshot = write_snapshot(folder / 'tiny.pth.tar')
    assert main(['--gpu', 'cpu', '--stage', 'lixel', '--snapshot', str(snapshot), '--output', str(folder / 'out'),
                 '--bbox_file', str(folder / 'boxes.json'), *more]) == 0


def boxes_of(folder: Path) -> list[list[float]]:
    return [person['bbox'] for person in json.loads((folder / 'result.json').read_text())['people']]


def test_images_get_their_own_boxes(tmp_path: Path) -> None:
    """The whole way from the file to the results."""
    (tmp_path / 'in').mkdir()
    for name in ('a.png', 'b.png'):
        write_image(tmp_path / 'in' / name)
    entries = [{'image_id': 'b.png', 'bbox': [20, 20, 60, 90], 'score': 0.9},
               {'image_id': 'a.png', 'bbox': [10, 10, 50, 80], 'score': 0.8},
               {'image_id': 'b.png', 'bbox': [30, 30, 60, 90], 'score': 0.3}]
    run(tmp_path, entries, '--input', str(tmp_path / 'in'))
    assert boxes_of(tmp_path / 'out' / 'a') == [[10, 10, 50, 80]]
    assert boxes_of(tmp_path / 'out' / 'b') == [[20, 20, 60, 90], [30, 30, 60, 90]]
    run(tmp_path, entries, '--input', str(tmp_path / 'in'), '--detector_threshold', '0.5')
    assert boxes_of(tmp_path / 'out' / 'b') == [[20, 20, 60, 90]]
    run(tmp_path, entries, '--input', str(tmp_path / 'in' / 'a.png'))  # b.png lies beside it
    with pytest.raises(UserError, match='fit no image: x.png'):
        run(tmp_path, [*entries, {'image_id': 'x.png', 'bbox': A}], '--input', str(tmp_path / 'in'))


def test_a_frame_that_is_not_there(tmp_path: Path) -> None:
    path = write_video(tmp_path / 'clip.avi', 3)
    with pytest.raises(UserError, match='fit no frame .*: 3$'):
        run(tmp_path, [{'frame': 1, 'bbox': [5, 4, 20, 40]}, {'frame': 3, 'bbox': [5, 4, 20, 40]}],
            '--input', str(path))
    assert not list((tmp_path / 'out').iterdir())


@pytest.mark.parametrize('wrap', [list, lambda entries: {'annotations': entries, 'categories': [{'id': 1}]}])
def test_numbers_without_a_list_of_images(tmp_path: Path, wrap: Any) -> None:
    """As in COCO's files of results: good for images that are named by their numbers; others need the list."""
    entries = [{'image_id': 139, 'bbox': B, 'category_id': 1}]
    assert by_image(table_of(tmp_path, wrap(entries)), [Path('000000000139.jpg')]) == [[B]]
    with pytest.raises(UserError, match='fit no image: 139. .*needs the list "images" of COCO, with "id" and "file_'):
        by_image(table_of(tmp_path, wrap(entries)))
