"""Several processes of one training: one is asked to stop, fails or is killed. All end, with a message; none hangs."""
import signal
import time

import pytest

from common.snapshot import checkpoint
from common.train import saver
from tests.faults.running_child import ranks, read_losses, slow, train

LONG = 'lixel_epochs=2'


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """The losses of two processes that nobody disturbed."""
    folder = tmp_path_factory.mktemp('whole')
    assert [child.end() for child in ranks(train, folder, LONG, 'pose_epochs=1', length=25)] == [0, 0]
    return read_losses(folder)


def train_and_save_slowly(*args, **options):
    """Train; a save says that it begins, and takes a while."""
    plain = checkpoint.write

    def write(path, content):
        print('saving', flush=True)
        time.sleep(0.5)
        plain(path, content)

    saver.checkpoint.write = write
    train(*args, **options)


@pytest.mark.parametrize(('kind', 'asked'), [
    (signal.SIGTERM, [0]), (signal.SIGINT, [1]), (signal.SIGTERM, [0, 1, 1, 0])])
def test_a_request_to_any_process_stops_all_of_them(tmp_path, whole, kind, asked):
    """As often as it comes: from a terminal or a batch system to each of them, and from torchrun once more."""
    children = ranks(train, tmp_path, LONG, 'pose_epochs=1', length=25, before_step=slow)
    children[0].wait_for('itr 2/6')
    for rank in asked:
        children[rank].kill(kind)
    assert [child.end() for child in children] == [0, 0], children[0].text()
    assert children[0].text().endswith('stopped\n') and 3 <= len(read_losses(tmp_path)) < 12
    again = ranks(train, tmp_path, LONG, 'pose_epochs=1', 'continue_train=true', length=25)
    assert [child.end() for child in again] == [0, 0], again[0].text()
    assert read_losses(tmp_path) == whole


@pytest.mark.parametrize('victim', [0, 1])
def test_a_killed_process_ends_the_others(tmp_path, whole, victim):
    children = ranks(train_and_save_slowly, tmp_path, LONG, 'pose_epochs=1', length=25, before_step=slow)
    children[0].wait_for('Epoch 1/2 itr 2/6')
    children[victim].kill()
    if victim == 1:  # what torchrun does when it has noticed
        children[0].wait_until(lambda: children[0].text().count('saving') == 2)
        children[0].kill(signal.SIGTERM)
    codes = [child.end() for child in children]
    assert codes[victim] == -signal.SIGKILL and codes[1 - victim] == 2
    last = children[1 - victim].text().splitlines()[-1]
    assert last.startswith('error: another process exited (see its error above; if none, it was killed). Resume with '
                           '--continue')
    newest, path = checkpoint.find_snapshots(tmp_path / 'model_dump')[-1]
    step = checkpoint.read(path)['state']['step']
    assert (newest, step > 2) == ((1, True) if victim == 1 else (0, False))  # the first process is the one that saves
    again = ranks(train, tmp_path, LONG, 'pose_epochs=1', 'continue_train=true', length=25)
    assert [child.end() for child in again] == [0, 0]
    assert f'at epoch 1 step {step}\n' in again[0].text()
    assert {row[:2] for row in read_losses(tmp_path)} == {row[:2] for row in whole}
