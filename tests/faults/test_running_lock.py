"""Two trainings in one output folder: the second one is refused, and nothing has to be cleaned up by hand."""
import errno
import fcntl
import os
import re
import signal
import socket

import pytest

from common import base
from common.errors import UserError
from common.files.lock import FolderLock
from tests.faults.running_child import ranks, slow, start, train
from tests.tiny import tiny_config, use_random_data


def test_one_training_per_folder(tmp_path, monkeypatch):
    use_random_data(monkeypatch)
    with start(train, tmp_path, 'lixel_epochs=100000', 'num_thread=1', before_step=slow) as first:
        first.wait_for('wrote ')
        second = start(train, tmp_path)
        assert second.end() == 2
        assert re.fullmatch(
            f'error: {tmp_path} is in use by another training: process {first.pid} on {re.escape(socket.gethostname())}'
            r', started \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, .*; wait for its end, stop it, or choose another folder with '
            r'output_dir=FOLDER\n', second.text())
        both = ranks(train, tmp_path, 'continue_train=true')
        assert both[0].end() == 2 and 'is in use by another training' in both[0].text()
        both[1].kill()
        assert first.process.is_alive()
        # a test may run beside it
        assert base.Tester(tiny_config(tmp_path), tmp_path / 'model_dump' / 'snapshot_0.pth.tar').test() == {'row': 4.0}
        first.kill(signal.SIGKILL)
        first.end()
        # at once, its loader process may not have ended yet
        third = start(train, tmp_path, 'lixel_epochs=1', 'continue_train=true')
        assert third.end() == 0, third.text()


def test_a_lock_that_was_released_can_be_had(tmp_path):
    lock = FolderLock(tmp_path)
    assert lock.held and (tmp_path / 'train.lock').read_text().startswith(f'process {os.getpid()} on ')
    lock.release()
    assert FolderLock(tmp_path).held


def test_a_drive_without_locks_is_used_without(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOLCK, 'No locks available')

    monkeypatch.setattr(fcntl, 'flock', refuse)
    use_random_data(monkeypatch)
    (tmp_path / 'model_dump').mkdir()
    (tmp_path / 'model_dump' / 'snapshot_0.pth.tar.1.tmp').touch()
    run = base.Trainer(tiny_config(tmp_path))
    assert not run.lock.held
    assert (tmp_path / 'model_dump' / 'snapshot_0.pth.tar.1.tmp').exists()  # it may be someone's who is still writing


def test_any_other_refusal_counts_as_taken(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.EACCES, 'Permission denied')  # what some systems say for "taken"

    monkeypatch.setattr(fcntl, 'flock', refuse)
    with pytest.raises(UserError, match='is in use by another training: it does not say which; wait'):
        FolderLock(tmp_path)
