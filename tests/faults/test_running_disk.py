"""A disk that is full, failing or read-only while a program writes: nothing is lost, nothing half-written."""
import contextlib
import ctypes
import errno
import json
import os
import resource

import numpy as np
import pytest

from common import base
from common.errors import REMEDIES, UserError, run_main
from common.files.whole import whole_file, write_text
from common.snapshot import checkpoint
from common.train import saver
from common.train.logger import Appender, open_log
from data.evaluation.report import save_overlay
from data.sample import Camera
from data.Synthetic.store import open_store
from tests.faults.running_child import start, train
from tests.tiny import calling, tiny_config, use_random_data

SMALL = 100_000  # bytes: logs are smaller, snapshots larger


@contextlib.contextmanager
def file_limit(size=SMALL):
    """Files cannot grow beyond `size` bytes: the system refuses as it does on a full disk, with another number."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    """Makes a Trainer of the tiny network on noise: two epochs of four steps."""
    use_random_data(monkeypatch)
    return lambda *overrides: base.Trainer(tiny_config(tmp_path, *overrides))


def files(tmp_path):
    return sorted(path.name for path in (tmp_path / 'model_dump').iterdir())


def test_a_snapshot_that_finds_no_room_does_not_end_the_training(tmp_path, trainer, capsys):
    run = trainer()
    with file_limit() as lift, calling(lambda number: lift() if run.progress.epoch == 1 else None):
        assert run.train()
    assert files(tmp_path) == ['snapshot_1.pth.tar'] and len((tmp_path / 'log/metrics.jsonl').read_text().split()) > 8
    assert (f'warning: cannot write {tmp_path}/model_dump/snapshot_0.pth.tar: File too large; training goes on, make '
            'room before the next snapshot is due\n') in capsys.readouterr().err
    assert checkpoint.read(tmp_path / 'model_dump' / 'snapshot_1.pth.tar')['epoch'] == 1


def test_the_last_snapshot_waits_for_room(tmp_path, trainer, capsys, monkeypatch):
    run = trainer('lixel_epochs=1')
    with file_limit() as lift:
        monkeypatch.setattr(saver.time, 'sleep', lambda seconds: lift())
        assert run.train()
    assert 'make room: trying again every 10 s for 20 minutes' in capsys.readouterr().err
    assert files(tmp_path) == ['snapshot_0.pth.tar']


def test_the_last_snapshot_does_not_wait_for_ever(tmp_path, trainer, monkeypatch):
    trainer('lixel_epochs=1').train()
    before = (tmp_path / 'model_dump' / 'snapshot_0.pth.tar').read_bytes()
    monkeypatch.setattr(saver, 'PATIENCE', 0)
    with file_limit(), pytest.raises(UserError) as error:
        trainer('lixel_epochs=2', 'continue_train=true').train()
    assert str(error.value) == (f'cannot write {tmp_path}/model_dump/snapshot_1.pth.tar: File too large; this state of '
                                'the network is lost, earlier snapshots are unchanged')
    assert files(tmp_path) == ['snapshot_0.pth.tar']
    assert (tmp_path / 'model_dump' / 'snapshot_0.pth.tar').read_bytes() == before


def test_a_log_keeps_what_a_full_disk_refuses(tmp_path, capsys):
    path = tmp_path / 'metrics.jsonl'
    log, lines = Appender(path), [f'line {i} {"x" * 50}\n' for i in range(20)]
    with file_limit(500):
        for line in lines[:15]:
            log.write(line)
        assert path.stat().st_size == 500  # to the middle of a line
    for line in lines[15:]:
        log.write(line)
    assert path.read_text() == ''.join(lines)
    assert capsys.readouterr().err == (f'warning: cannot write {path}: File too large; its lines are kept until it '
                                       'works again\n')


def test_a_log_without_any_room_says_so_once(capsys):
    log = Appender('/dev/full')
    log.write('one\n')
    log.write('two\n')
    assert capsys.readouterr().err.count('cannot write /dev/full: No space left on device') == 1


def test_a_line_that_a_killed_run_left_open_is_closed(tmp_path):
    path = tmp_path / 'metrics.jsonl'
    path.write_text('{"epoch": 0}\n{"epo')
    Appender(path).write('{"epoch": 1}\n')
    assert path.read_text() == '{"epoch": 0}\n{"epo\n{"epoch": 1}\n'


def test_a_result_that_finds_no_room_leaves_the_old_one(tmp_path):
    path = tmp_path / 'result' / 'PW3D.json'
    write_text(path, '{"old": 1}')
    with file_limit(100), pytest.raises(OSError) as error:
        write_text(path, 'x' * 1000)
    assert error.value.errno == errno.EFBIG
    assert json.loads(path.read_text()) == {'old': 1} and [p.name for p in path.parent.iterdir()] == ['PW3D.json']
    with pytest.raises(ZeroDivisionError), whole_file(path) as file:
        file.write(b'new')
        raise ZeroDivisionError
    assert json.loads(path.read_text()) == {'old': 1} and [p.name for p in path.parent.iterdir()] == ['PW3D.json']


def test_a_image_cache_that_finds_no_room(tmp_path):
    def draw(i):
        return np.random.default_rng(i).integers(0, 255, (64, 64, 3), np.uint8), np.zeros(3)

    words = r'cannot keep images in .*File too large; free some space, or turn the cache off \(synthetic_cache=f'
    with file_limit(10_000), pytest.raises(UserError, match=words):
        open_store(tmp_path, {'count': 20}, draw)
    assert [path.suffix for path in tmp_path.iterdir() if path.is_dir()] == ['.making']  # taken up when there is room
    store = open_store(tmp_path, {'count': 20}, draw)
    whole = open_store(tmp_path / 'other', {'count': 20}, draw)
    assert (store.folder / 'images.bin').read_bytes() == (whole.folder / 'images.bin').read_bytes()


def without_privileges(function, *args):
    """Root may write anywhere: give that up, then call the function."""
    header, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    ctypes.CDLL(None, use_errno=True).capset(ctypes.byref(header), ctypes.byref(nothing))
    function(*args)


def test_an_output_folder_that_is_read_only(tmp_path):
    folder = tmp_path / 'output'
    folder.mkdir()
    folder.chmod(0o555)
    child = start(without_privileges, train, folder)
    assert child.end() == 2
    assert child.text() == (f'error: cannot write into the output folder {folder}: Permission denied; choose another '
                            'one with output_dir=FOLDER\n')


def test_an_output_folder_that_is_a_file(tmp_path):
    (tmp_path / 'output').write_text('')
    with pytest.raises(UserError, match='cannot write into the output folder .*output_dir=FOLDER'):
        base.Trainer(tiny_config(tmp_path / 'output'))
    with pytest.raises(UserError, match='cannot write into .*/output/log: .*output_dir=FOLDER'):
        open_log(tmp_path / 'output' / 'log', 'test_logs')


def test_an_overlay_that_finds_no_room(tmp_path):
    camera, triangle = Camera(np.full(2, 50.), np.full(2, 32.)), np.array([[-.1, 0, 1], [.1, 0, 1], [0, .1, 1.]])
    img = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    with file_limit(100), pytest.raises(UserError, match='cannot write .*a.jpg .File too large.: choose another place'):
        save_overlay(tmp_path / 'a.jpg', img, triangle.astype(np.float32), np.array([[0, 1, 2]]), camera)


@pytest.mark.parametrize('number', REMEDIES)
def test_what_the_machine_refuses_is_one_line(capsys, number):
    def main():
        raise OSError(number, os.strerror(number), 'some/file')

    with pytest.raises(SystemExit) as end:
        run_main(main)
    assert end.value.code == 2
    assert capsys.readouterr().err == f'error: some/file: {os.strerror(number)}: {REMEDIES[number]}\n'


def test_other_errors_of_the_system_keep_their_traceback():
    def main():
        raise FileNotFoundError(errno.ENOENT, 'No such file', 'some/file')

    with pytest.raises(FileNotFoundError):
        run_main(main)
