"""Result folders of the demo: whole or absent, never on top of another picture's."""
import json

import pytest

from common.demo.folder import free_name, whole_folder
from common.errors import UserError


def write(parent, name, source, text='x'):
    with whole_folder(parent, name) as folder:
        (folder / 'result.json').write_text(json.dumps({'source': source, 'text': text}))


def test_folder_appears_whole(tmp_path):
    with whole_folder(tmp_path / 'deep' / 'demo', 'photo') as folder:
        (folder / 'a.txt').write_text('a')
        assert not (tmp_path / 'deep' / 'demo' / 'photo').exists()
    assert [p.name for p in (tmp_path / 'deep' / 'demo').iterdir()] == ['photo']
    assert (tmp_path / 'deep' / 'demo' / 'photo' / 'a.txt').read_text() == 'a'


def test_nothing_is_left_after_a_failure(tmp_path):
    write(tmp_path, 'photo', '/a/photo.jpg', 'first')
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path, 'photo') as folder:
        (folder / 'result.json').write_text('half')
        raise ZeroDivisionError
    assert [p.name for p in tmp_path.iterdir()] == ['photo']
    assert json.loads((tmp_path / 'photo' / 'result.json').read_text())['text'] == 'first'


def test_names(tmp_path):
    assert free_name(tmp_path, 'photo', '/a/photo.jpg') == 'photo'
    write(tmp_path, 'photo', '/a/photo.jpg')
    assert free_name(tmp_path, 'photo', '/a/photo.jpg') == 'photo'  # a second run of the same picture
    assert free_name(tmp_path, 'photo', '/b/photo.jpg') == 'photo_2'
    assert free_name(tmp_path, 'photo', '/a/photo.jpg', taken=['photo']) == 'photo_2'
    write(tmp_path, 'photo_2', '/b/photo.jpg')
    assert free_name(tmp_path, 'photo', '/c/photo.jpg') == 'photo_3'
    (tmp_path / 'mine').mkdir()
    assert free_name(tmp_path, 'mine', '/a/mine.jpg') == 'mine_2'  # no results of ours: left alone
    for name, clean in (('.', 'picture'), ('..', 'picture'), ('.hidden', 'hidden'), ('a.b', 'a.b')):
        assert free_name(tmp_path, name, '/a/x.jpg') == clean
    write(tmp_path, 'photo', '/a/photo.jpg', 'again')
    assert json.loads((tmp_path / 'photo' / 'result.json').read_text())['text'] == 'again'


def test_unwritable_place(tmp_path):
    (tmp_path / 'file').write_text('x')
    with pytest.raises(UserError, match='cannot write'), whole_folder(tmp_path / 'file', 'photo'):
        pass
