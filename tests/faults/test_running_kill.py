"""Trainings that are killed: at any moment the newest snapshot loads, and the next start goes on from it."""
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from common.errors import UserError
from common.files import whole
from common.snapshot import checkpoint
from data.Synthetic import store
from data.Synthetic.store import ImageStore, open_store
from tests.faults.running_child import read_losses, start, train
from tests.faults.running_sigkill import campaign


def die_in_the_second_save(folder, moment):
    """Train, and be killed at a moment of writing snapshot_1: 'begin', 'middle', 'synced', 'renamed'."""
    plain_save, plain_replace, saves = torch.save, os.replace, []

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def save(content, file):
        saves.append(1)
        second = len(saves) == 2
        if second and moment == 'begin':
            die()
        if second and moment == 'middle':
            file.write(b'PK' * 5000)
            file.flush()
            die()
        plain_save(content, file)

    def replace(old, new):
        last = 'snapshot_1' in str(new)
        if last and moment == 'synced':
            die()
        plain_replace(old, new)
        if last and moment == 'renamed':
            die()

    torch.save, whole.os.replace = save, replace
    train(folder, 'lixel_epochs=3')


@pytest.mark.parametrize('moment', ['begin', 'middle', 'synced', 'renamed'])
def test_a_kill_at_any_moment_of_a_save_loses_no_snapshot(tmp_path, moment):
    assert start(die_in_the_second_save, tmp_path, moment).end() == -signal.SIGKILL
    newest = 1 if moment == 'renamed' else 0
    assert [epoch for epoch, _ in checkpoint.find_snapshots(tmp_path / 'model_dump')] == list(range(newest + 1))
    left = list((tmp_path / 'model_dump').glob('*.tmp'))
    assert len(left) == (moment != 'renamed')

    child = start(train, tmp_path, 'lixel_epochs=3', 'continue_train=true')
    assert child.end() == 0, child.text()
    assert f'resuming {tmp_path}/model_dump/snapshot_{newest}.pth.tar at epoch {newest + 1} step 0' in child.text()
    removed = [line for line in child.text().splitlines() if line.startswith('removed ')]
    assert removed == [f'removed {path}, left behind by a run that was killed while writing it' for path in left]
    assert not list((tmp_path / 'model_dump').glob('*.tmp'))
    again = read_losses(tmp_path)
    assert len(again) == (12 if newest else 16) and len(set(again)) == 12  # what was trained twice came out the same


def test_random_kills(tmp_path):
    result = campaign(tmp_path, kills=5, seed=1)
    assert (result.kills, result.unreadable, result.different) == (5, 0, 0)


def test_the_loader_processes_of_a_killed_training_end_too(tmp_path):
    with start(train, tmp_path, 'num_thread=2', 'lixel_epochs=1000') as child:
        child.wait_for('Epoch 1/')
        workers = [int(path.parent.name) for path in Path('/proc').glob('[0-9]*/stat')
                   if path.read_text().rpartition(')')[2].split()[1] == str(child.pid)]
        assert len(workers) == 2
        child.kill()
        child.end()
        child.wait_until(lambda: not any(Path(f'/proc/{pid}').exists() for pid in workers))


def draw(i):
    return np.full((8, 8, 3), i, np.uint8), np.array([i], np.float32)


def make_store_and_die(folder, key, at, chunk=2, pause=100):
    def draw_until(i):
        if i == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return draw(i)

    store.CHUNK, store.PAUSE = chunk, pause
    open_store(folder, key, draw_until)


@pytest.mark.parametrize(('at', 'tail'), [(1, b''), (5, b''), (5, b'half a row')])
def test_a_image_cache_that_was_not_finished_is_taken_up_where_it_stopped(tmp_path, at, tail):
    key = {'count': 7}
    drawn = []

    def counting_draw(i):
        drawn.append(i)
        return draw(i)

    assert start(make_store_and_die, tmp_path, key, at).end() == -signal.SIGKILL
    folder, = (path for path in tmp_path.iterdir() if path.is_dir())
    for name in ('images.bin', 'rows.bin'):
        with open(folder / name, 'ab') as file:
            file.write(tail)
    taken_up = open_store(tmp_path, key, counting_draw)
    assert drawn == [0, *range(at // 2 * 2, 7)]  # the first one tells how long it takes
    assert [int(taken_up[i][0].mean()) for i in range(7)] == list(range(7))
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == [taken_up.folder]
    whole = open_store(tmp_path / 'whole', key, draw)
    assert {path.name: path.read_bytes() for path in whole.folder.iterdir()} == {
        path.name: path.read_bytes() for path in taken_up.folder.iterdir()}


def test_slow_drawing_is_kept_too(tmp_path):
    """Not after CHUNK images alone: a second of drawing is the most that is lost."""
    assert start(make_store_and_die, tmp_path, {'count': 7}, 3, chunk=200, pause=0).end() == -signal.SIGKILL
    drawn = []
    open_store(tmp_path, {'count': 7}, lambda i: drawn.append(i) or draw(i))
    assert drawn == [0, *range(3, 7)]


def test_a_killed_process_that_draws_images_is_told(tmp_path):
    def draw_until(i):
        if i == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return draw(i)

    with pytest.raises(UserError, match='a process that draws images was killed, .*: lower num_thread, and start'):
        open_store(tmp_path, {'count': 4}, draw_until, processes=1)


@pytest.mark.parametrize('fault', ['cut short', 'emptied', 'garbage', 'deleted'])
def test_a_image_cache_that_changes_in_use(tmp_path, fault):
    opened = open_store(tmp_path, {'count': 4}, draw)
    assert isinstance(opened, ImageStore)
    path = opened.folder / 'images.bin'
    size = path.stat().st_size
    if fault == 'deleted':
        path.unlink()
        assert [int(opened[i][0].mean()) for i in range(4)] == [0, 1, 2, 3]
        return
    with open(path, 'r+b') as file:
        if fault == 'garbage':
            file.write(bytes(size))
        else:
            file.truncate(size // 2 if fault == 'cut short' else 0)
    with pytest.raises(ValueError, match='image 3 of .* is damaged: delete the folder, it is made again'):
        opened[3]
