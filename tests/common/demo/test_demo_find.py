"""Several inputs: folders with sub-folders, patterns, images without a person, and settings that would do nothing."""
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from common.demo.inputs.box_file import read_box_file
from common.demo.inputs.find import find_inputs
from common.errors import UserError
from main.demo import main
from tests.demo_tools import write_image, write_snapshot, write_video

Demo = Callable[..., int]


@pytest.fixture(scope='module')
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_snapshot(tmp_path_factory.mktemp('snapshot') / 'tiny.pth.tar')


@pytest.fixture
def demo(snapshot: Path, tmp_path: Path) -> Demo:
    def run(*words: object) -> int:
        return main(['--gpu', 'cpu', '--snapshot', str(snapshot), '--output', str(tmp_path / 'out'), '--stage', 'lixel',
                     *map(str, words)])

    return run


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder: 1.png, 2.png, a/1.png, a/b/3.png; results of an earlier run, a hidden folder and a text."""
    folder = tmp_path / 'photos'
    for name in ('1.png', '2.png', 'a/1.png', 'a/b/3.png', 'out/9/overview.jpg', 'out/9/person_0/x.jpg', '.h/4.png'):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_image(folder / name, 60, 40)
    (folder / 'out' / '9' / 'result.json').write_text('{}')
    (folder / 'notes.txt').write_text('text')
    return folder


def results(tmp_path: Path) -> dict[str, str]:
    """{name of a result folder: its source, below tmp_path}."""
    found = {}
    for path in sorted((tmp_path / 'out').glob('*/result.json')):
        source = json.loads(path.read_text())['source']
        found[path.parent.name] = os.path.relpath(source, tmp_path)
    return found


def names(*words: object) -> list[str]:
    return list(find_inputs(*map(str, words)).values())


def test_what_words_name(photos: Path, tmp_path: Path) -> None:
    assert names(photos) == ['1', '2', 'a_1', 'a_b_3']
    assert names(photos / '2.png', photos, photos / '1.png') == ['2', '1', 'a_1', 'a_b_3']  # each once
    assert names(photos / '[12].*') == ['1', '2'] and names(photos / '*') == ['1', '2', '1']  # not the text
    assert names(photos / '**' / '*3*') == ['3'] and len(find_inputs(photos / 'a' / '**')) == 2
    odd = write_image(tmp_path / 'odd[1].png', 60, 40)  # a file of that name counts first
    assert list(find_inputs(odd)) == [odd]


def test_the_same_file_by_two_paths_is_one_input(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(photos)
    assert list(find_inputs('1.png', photos / '1.png', 'a/../1.png')) == [Path('1.png')]


def test_videos_of_a_folder_are_left_out_with_a_word(photos: Path, caplog: pytest.LogCaptureFixture) -> None:
    (photos / 'a' / 'clip.mp4').touch()
    assert names(photos) == ['1', '2', 'a_1', 'a_b_3']
    assert f'not its 1 videos; name them, such as {photos}/a/clip.mp4' in caplog.text


def test_words_that_name_nothing(photos: Path) -> None:
    (photos / 'empty').mkdir()
    for word, told in (('none.jpg', 'no such file or folder'), ('*.jpg', 'no image or video fits'),
                       ('notes.*', 'no image or video fits'), ('out/9', None),
                       ('out', 'its 2 images are results of an earlier run'), ('empty', 'no images in this folder')):
        if told is None:
            assert len(find_inputs(photos / word)) == 2  # asked for by its own name
            continue
        with pytest.raises(UserError, match=told):
            find_inputs(photos / '1.png', photos / word)


def test_sub_folders_and_single_files(demo: Demo, photos: Path, tmp_path: Path) -> None:
    one = write_image(tmp_path / '1.png', 60, 40)
    assert demo('--input', one, photos, 'test_batch_size=2', '--bbox', 'full') == 0
    assert results(tmp_path) == {'1': '1.png', '1_2': 'photos/1.png', '2': 'photos/2.png', 'a_1': 'photos/a/1.png',
                                 'a_b_3': 'photos/a/b/3.png'}


def test_images_and_videos_together(demo: Demo, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    clips = [write_video(tmp_path / f'{name}.avi', 2) for name in ('a', 'b')]
    assert demo('--input', photos / '1.png', tmp_path / '*.avi', '--bbox', 'full', '--smooth') == 0
    assert results(tmp_path) == {'1': 'photos/1.png', 'a': 'a.avi', 'b': 'b.avi'}
    out = capsys.readouterr().out
    assert out.count('a.avi: the whole image') <= 1 and out.count('b.avi: the whole image') <= 1
    clips[0].write_text('no video')
    with pytest.raises(UserError, match='a.avi: not a video'):
        demo('--input', *clips, photos / '2.png', '--bbox', 'full')
    assert set(results(tmp_path)) == {'1', '2', 'a', 'b'}  # the others are done
    (tmp_path / 'boxes.json').write_text('{"0": ["full"]}')
    with pytest.raises(UserError, match='goes with images, or with one video'):
        demo('--input', *clips, '--bbox_file', tmp_path / 'boxes.json')


def test_images_without_a_box_are_counted(demo: Demo, photos: Path, tmp_path: Path,
                                          capsys: pytest.CaptureFixture) -> None:
    boxes = {'2.png': ['full'], 'a/1.png': ['full'], 'gone.png': ['full'], 'a/gone.png': ['full']}
    (tmp_path / 'boxes.json').write_text(json.dumps(boxes))
    assert demo('--input', photos, '--bbox_file', tmp_path / 'boxes.json') == 0
    out = capsys.readouterr().out
    assert '2 of 4 images have no person in them, by the boxes given or found: 1.png, 3.png\n' in out
    assert '2 of its names fit no image: gone.png, a/gone.png\n' in out
    assert set(results(tmp_path)) == {'2', 'a_1'}
    (tmp_path / 'boxes.json').write_text('{"gone.png": ["full"]}')
    with pytest.raises(UserError, match='4 of 4 images have no person'):
        demo('--input', photos, '--bbox_file', tmp_path / 'boxes.json')


def test_broken_images_among_those_without_a_box(demo: Demo, photos: Path, tmp_path: Path,
                                                 capsys: pytest.CaptureFixture) -> None:
    (photos / '1.png').write_text('no image')
    (tmp_path / 'boxes.json').write_text('{"2.png": ["full"]}')
    with pytest.raises(UserError, match='1 of 4 images could not be used: .*1.png is not an image'):
        demo('--input', photos, '--bbox_file', tmp_path / 'boxes.json')
    assert '2 of 4 images have no person' in capsys.readouterr().out
    assert set(results(tmp_path)) == {'2'}


def test_a_box_of_one_sub_folder_is_not_that_of_another(tmp_path: Path) -> None:
    """A name may also mean the same file in another place, but not where the file itself is there."""
    (tmp_path / 'boxes.json').write_text('{"a/1.png": [[1, 2, 30, 40]]}')
    table = read_box_file(tmp_path / 'boxes.json')
    inputs = [Path('photos/a/1.png'), Path('photos/b/1.png')]
    table.check_images(inputs)
    assert [len(table.of_image(path, number)) for number, path in enumerate(inputs)] == [1, 0]
    table = read_box_file(tmp_path / 'boxes.json')
    table.check_images(inputs[1:])
    assert len(table.of_image(inputs[1], 0)) == 1


@pytest.mark.parametrize('word', ['lr=1e-3', 'train_batch_size=4', 'seed=3', 'compile=true', 'trainset_3d=[Synthetic]'])
def test_settings_that_would_do_nothing(photos: Path, word: str) -> None:
    with pytest.raises(UserError, match=f'{word.split("=")[0]}=... has no effect on the demo: .*test_batch_size'):
        main(['--gpu', 'cpu', '--input', str(photos / '1.png'), word, '--bbox', 'full'])
