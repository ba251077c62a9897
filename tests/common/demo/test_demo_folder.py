"""Result folders of the demo: whole or absent, never on top of another image's."""
import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from common.demo.outputs.folder import clear_leftovers, free_name, whole_folder
from common.errors import UserError
from main.config import ROOT


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
    assert free_name(tmp_path, 'photo', '/a/photo.jpg') == 'photo'  # a second run of the same image
    assert free_name(tmp_path, 'photo', '/b/photo.jpg') == 'photo_2'
    assert free_name(tmp_path, 'photo', '/a/photo.jpg', taken=['photo']) == 'photo_2'
    write(tmp_path, 'photo_2', '/b/photo.jpg')
    assert free_name(tmp_path, 'photo', '/c/photo.jpg') == 'photo_3'
    (tmp_path / 'mine').mkdir()
    assert free_name(tmp_path, 'mine', '/a/mine.jpg') == 'mine_2'  # no results of ours: left alone
    for name, clean in (('.', 'image'), ('..', 'image'), ('.hidden', 'hidden'), ('a.b', 'a.b')):
        assert free_name(tmp_path, name, '/a/x.jpg') == clean
    write(tmp_path, 'photo', '/a/photo.jpg', 'again')
    assert json.loads((tmp_path / 'photo' / 'result.json').read_text())['text'] == 'again'


def test_unwritable_place(tmp_path):
    (tmp_path / 'file').write_text('x')
    with pytest.raises(UserError, match='cannot write'), whole_folder(tmp_path / 'file', 'photo'):
        pass


ENDLESS = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup has switched off, if the tests run under it
from pathlib import Path
from common.demo.outputs.folder import whole_folder
with whole_folder(Path(sys.argv[1]), 'photo') as folder:
    (folder / 'half').write_text('x')
    print('writing', flush=True)
    time.sleep(100)
"""


@contextlib.contextmanager
def writer(parent):
    """A process in the middle of writing a result folder."""
    with subprocess.Popen([sys.executable, '-c', ENDLESS, str(parent)], cwd=ROOT, stdout=subprocess.PIPE,
                          text=True) as process:
        try:
            assert process.stdout.readline() == 'writing\n'
            assert [p.name for p in parent.glob('.writing-*/new/*')] == ['half']
            yield process
        finally:
            process.kill()


@pytest.mark.timeout(120)
@pytest.mark.parametrize('kind', [signal.SIGTERM, signal.SIGHUP])
def test_ended_from_outside_leaves_nothing(tmp_path, kind):
    write(tmp_path, 'photo', '/a/photo.jpg', 'first')
    with writer(tmp_path) as process:
        process.send_signal(kind)
        assert process.wait(60) == 128 + kind
    assert [p.name for p in tmp_path.iterdir()] == ['photo']
    assert json.loads((tmp_path / 'photo' / 'result.json').read_text())['text'] == 'first'


@pytest.mark.timeout(120)
def test_the_next_run_clears_what_a_killed_one_left(tmp_path):
    """And nothing of one that still runs, or of what has another owner."""
    (tmp_path / '.writing-young').mkdir()
    (tmp_path / '.writing-link').symlink_to(tmp_path)
    (tmp_path / '.writing-file').write_text('x')
    with writer(tmp_path) as process:
        clear_leftovers(tmp_path)
        assert len(list(tmp_path.glob('.writing-*/new/half'))) == 1
        process.kill()
        process.wait(60)
    clear_leftovers(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {'.writing-young', '.writing-link', '.writing-file'}


def test_results_that_were_to_be_replaced_come_back(tmp_path, monkeypatch):
    """When the run ends between taking the old ones away and putting the new ones in their place."""
    write(tmp_path, 'photo', '/a/photo.jpg', 'first')
    rename = Path.rename

    def killed(self, target):
        if self.name == 'new':
            raise SystemExit(143)
        return rename(self, target)

    monkeypatch.setattr(Path, 'rename', killed)
    with pytest.raises(SystemExit):
        write(tmp_path, 'photo', '/a/photo.jpg', 'second')
    assert [p.name for p in tmp_path.iterdir()] == ['photo']
    assert json.loads((tmp_path / 'photo' / 'result.json').read_text())['text'] == 'first'


def test_handlers_of_others_stay(tmp_path):
    """Signals that somebody handles, or has switched off, are left alone; afterwards all is as before."""
    before, terminating = signal.signal(signal.SIGHUP, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)
    try:
        with whole_folder(tmp_path, 'photo'):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert callable(signal.getsignal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.getsignal(signal.SIGTERM) is terminating
