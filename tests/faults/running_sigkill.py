"""A training of the tiny network is killed at random moments, most of them while it saves. Slow, run by hand:

    python tests/faults/running_sigkill.py 200

After each kill: the newest snapshot must load, and the next start must resume from it; at the end every step that was
trained more than once must have had the same loss each time. Exit code 1 if not.
"""
import random
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

if __name__ == '__main__':
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from common.snapshot import checkpoint
from common.train import saver
from tests.faults.running_child import read_losses, start, train

SAVES = 0.7  # share of the kills that are aimed at a save
SAVE_TIME = 0.1  # seconds that one lasts here, at most


@dataclass
class Result:
    kills: int = 0
    in_saves: int = 0  # kills that left a half-written file
    resumed: int = 0  # starts from a snapshot; the others came before the first one
    unreadable: int = 0  # starts that found a snapshot they could not read, or none where there was one before
    steps: int = 0  # different steps trained
    repeated: int = 0  # rows of steps that were trained again
    different: int = 0  # of which with another loss


def announce_saves(folder, *overrides):
    """Train, with a line before each save."""
    plain = checkpoint.write

    def write(path, content):
        print('saving', flush=True)
        plain(path, content)

    saver.checkpoint.write = write
    train(folder, *overrides)


def campaign(folder, kills, seed):
    """Kill a training in `folder` that many times. Returns a Result."""
    rng, result, folder = random.Random(seed), Result(), Path(folder)
    while result.kills < kills:
        before = checkpoint.find_snapshots(folder / 'model_dump')
        options = ['continue_train=true'] if before else []
        child = start(announce_saves, folder, 'lixel_epochs=100000', 'keep_snapshots=2', *options)
        if rng.random() < SAVES:
            child.wait_for('saving')
            time.sleep(rng.random() * SAVE_TIME)
        else:
            child.wait_for('training samples')
            time.sleep(rng.random())
        child.kill()
        child.end()
        result.kills += 1
        result.in_saves += bool(list((folder / 'model_dump').glob('*.tmp')))
        text, resumed = child.text(), re.search(r'resuming .*snapshot_(\d+)\.pth\.tar', child.text())
        result.resumed += resumed is not None
        result.unreadable += 'not a checkpoint' in text or bool(before) and (
            resumed is None or int(resumed[1]) != before[-1][0])
        child.out.unlink()
    for _, path in checkpoint.find_snapshots(folder / 'model_dump'):
        checkpoint.read(path)
    rows = read_losses(folder)
    losses = {}
    for epoch, step, loss in rows:
        losses.setdefault((epoch, step), set()).add(loss)
    result.steps, result.repeated = len(losses), len(rows) - len(losses)
    result.different = sum(len(values) - 1 for values in losses.values())
    return result


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as temporary:
        begin = time.monotonic()
        outcome = campaign(temporary, int(sys.argv[1]), seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
        print(outcome, f'{(time.monotonic() - begin) / outcome.kills:.2f} s per kill')
        sys.exit(bool(outcome.unreadable or outcome.different))
