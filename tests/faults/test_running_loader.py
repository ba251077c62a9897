"""Loader processes that are killed, and data that vanishes or changes while a training reads it."""
import multiprocessing
import os
import resource
import signal

import pytest
from torch.utils.data import Dataset

from common.errors import UserError
from common.train.loader import EpochView, Reader, TrainBatches, make_loader, shard
from tests.data_tools import copy_set
from tests.faults.running_child import ranks, read_losses, start, train

KILLED = ('a loader process was killed, most often because memory ran short: lower num_thread or the batch size; a '
          'training goes on with --continue')


class Deadly(Dataset):
    """Numbers; number 5 kills the process that reads it."""

    def __len__(self):
        return 9

    def __getitem__(self, i):
        if i == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return i


def test_a_killed_loader_process_is_one_line():
    loader = make_loader(Deadly(), shard(9, 2), workers=1, pin_memory=False)
    got = []
    with pytest.raises(UserError, match=f'^{KILLED}$'):
        for batch in Reader(loader):
            got.append(batch.tolist())
    assert got == [[0, 1], [2, 3]][:len(got)]
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL  # nothing is raised in the middle of a step


def bus_error():
    """What the system does to a process that writes where the shared memory is full."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no file of a gigabyte
    os.kill(os.getpid(), signal.SIGBUS)


def no_shared_memory():
    """What PyTorch says where it finds out itself."""
    raise RuntimeError('unable to allocate shared memory(shm) for file </torch_7>: No space left on device (28)')


@pytest.mark.parametrize('fault', [bus_error, no_shared_memory])
def test_too_little_shared_memory_names_the_option_of_docker(fault):
    class Full(Deadly):
        def __getitem__(self, i):
            return fault()

    with pytest.raises(UserError, match=r'^the loader processes ran out of shared memory .*--shm-size=16g'):
        next(Reader(make_loader(Full(), shard(9, 2), workers=1, pin_memory=False)))


@pytest.mark.parametrize('error', [ConnectionResetError(104, 'reset'), FileNotFoundError(2, 'no socket'), EOFError(),
                                   RuntimeError('DataLoader worker (pid 7) is killed by signal: Killed.')])
def test_whatever_the_transport_says_about_it(error):
    class Loader(list):
        num_workers = 1

        def __iter__(self):
            raise error
            yield

    with pytest.raises(UserError, match=KILLED):
        next(Reader(Loader()))
    Loader.num_workers = 0
    with pytest.raises(type(error)):
        next(Reader(Loader()))


def test_errors_of_the_data_set_stay_what_they_are():
    class Broken(Deadly):
        def __getitem__(self, i):
            raise FileNotFoundError(2, 'No such file', 'a.jpg')

    for workers in (0, 1):
        with pytest.raises(FileNotFoundError, match='a.jpg'):
            next(Reader(make_loader(Broken(), shard(9, 2), workers, pin_memory=False)))


def kill_a_loader_process(at):
    """For train(): kill one before the step number `at`."""
    def before_step(number):
        if number == at:
            victim = multiprocessing.active_children()[0]
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
    return before_step


def train_and_lose_a_loader(folder, *overrides, **options):
    """Train; the second process, or the only one, loses a loader process."""
    before_step = None if os.environ.get('RANK') == '0' else kill_a_loader_process(at=2)
    train(folder, *overrides, before_step=before_step, **options)


def test_a_training_whose_loader_is_killed_keeps_every_whole_step(tmp_path):
    settings = 'num_thread=2', 'lixel_epochs=1'
    whole = start(train, tmp_path / 'whole', *settings, length=31)
    child = start(train_and_lose_a_loader, tmp_path / 'parts', *settings, length=31)
    assert child.end() == 2
    assert child.text().splitlines()[-1] == f'error: {KILLED}'
    done = len(read_losses(tmp_path / 'parts'))
    assert 2 <= done < 15 and f'wrote {tmp_path}/parts/model_dump/snapshot_0.pth.tar' in child.text()
    again = start(train, tmp_path / 'parts', *settings, 'continue_train=true', length=31)
    assert again.end() == whole.end() == 0
    assert f'snapshot_0.pth.tar at epoch 0 step {done}\n' in again.text()
    assert read_losses(tmp_path / 'parts') == read_losses(tmp_path / 'whole')


def test_one_process_of_two_loses_its_loader(tmp_path):
    settings = 'num_thread=2', 'lixel_epochs=1'
    children = ranks(train_and_lose_a_loader, tmp_path, *settings, length=63)
    assert [child.end() for child in children] == [0, 2]  # torchrun then says which one failed
    assert children[1].text().endswith(f'error: {KILLED}\n') and children[0].text().splitlines()[-1] == 'stopped'
    done = len(read_losses(tmp_path))
    assert 2 <= done < 15
    again = ranks(train, tmp_path, *settings, 'continue_train=true', length=63)
    assert [child.end() for child in again] == [0, 0]
    assert [row[:2] for row in read_losses(tmp_path)] == [(0, step) for step in range(15)]


@pytest.mark.parametrize('fault', ['deleted', 'emptied', 'cut short', 'replaced by a web page'])
def test_a_image_that_changes_while_it_is_in_use(open_set, tiny_datasets, tmp_path, fault):
    copy_set(tiny_datasets, tmp_path, 'Human36M')
    data = open_set('Human36M', 'train', data_dir=tmp_path)
    batches = TrainBatches(len(data), 2, seed=0)
    loader = make_loader(EpochView(data), batches, workers=1, pin_memory=False)
    victim = data.samples[0].img_path
    reading = Reader(loader)
    seen = [next(reading)]
    content = open(victim, 'rb').read()
    if fault == 'deleted':
        os.unlink(victim)
    else:
        with open(victim, 'wb') as file:
            file.write({'emptied': b'', 'cut short': content[:200], 'replaced by a web page': b'<html>'}[fault])
    seen += reading
    batches.set_position(1)
    seen += Reader(loader)  # another epoch, all of it after the change
    assert len(seen) == 2 * batches.steps
    for inputs, targets, _ in seen:
        assert inputs['img'].shape[0] == 2
        assert all(value.isfinite().all() for value in (inputs['img'], *targets.values()))
    with pytest.raises((OSError, ValueError), match='(?i)' + os.path.basename(victim)):
        data.get_item(0, None)
