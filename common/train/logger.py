"""What a run leaves behind: lines on the screen and in a text file, and one JSON row per training step."""
import itertools
import json
import os
import sys
import time
import weakref
from pathlib import Path

from tqdm import tqdm

from common.errors import UserError, optional_import
from common.files.whole import write_text

MAX_WAITING = 1 << 24  # bytes of a log kept in memory while the disk takes none


class Appender:
    """Adds lines to a file. What a full disk refuses waits in memory for the next line that finds room.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path):
        self.path, self.failing, self.waiting = path, False, b''
        self.file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        weakref.finalize(self, os.close, self.file)
        size = os.fstat(self.file).st_size
        if size and os.pread(self.file, 1, size - 1) != b'\n':
            self.waiting = b'\n'  # a run was killed in the middle of a line

    def write(self, text):
        """Add text, which ends with a line's end. Never fails."""
        self.waiting = (self.waiting + text.encode('utf-8', 'replace'))[-MAX_WAITING:]
        try:
            while self.waiting:
                self.waiting = self.waiting[os.write(self.file, self.waiting):]
            self.failing = False
        except OSError as error:
            if not self.failing:
                print(f'warning: cannot write {self.path}: {error.strerror}; its lines are kept until it works again',
                      file=sys.stderr)
            self.failing = True


class Logger:
    """Writes to `log_dir`/`name`.txt, the screen (around a progress bar) and `log_dir`/metrics.jsonl.

    `tensorboard`: also as TensorBoard events. With `enabled=False` (every process but the first of a distributed run)
    all methods do nothing. UserError: the folder cannot be written.
    """

    def __init__(self, log_dir, name, enabled=True, tensorboard=False):
        self.enabled, self.tensorboard, self.rows = enabled, None, None
        if enabled:
            self.dir = Path(log_dir)
            try:
                self.dir.mkdir(parents=True, exist_ok=True)
                self.text = Appender(self.dir / f'{name}.txt')
            except OSError as error:
                raise UserError(f'cannot write into {log_dir}: {error.strerror}; choose another folder with '
                                'output_dir=FOLDER') from error
            if tensorboard:
                optional_import('tensorboard', 'tensorboard=true')
                from torch.utils.tensorboard import SummaryWriter
                self.tensorboard = SummaryWriter(log_dir)

    def info(self, message):
        """One or more lines, with the time in the file."""
        if self.enabled:
            tqdm.write(message)
            stamp = time.strftime('%m-%d %H:%M:%S')
            self.text.write(''.join(f'{stamp} {line}\n' for line in message.splitlines()))

    def new_run(self):
        """The rows that follow are of another run: those of an earlier one are set aside as metrics.<n>.jsonl."""
        if self.enabled and (self.dir / 'metrics.jsonl').exists():
            free = next(n for n in itertools.count(1) if not (self.dir / f'metrics.{n}.jsonl').exists())
            (self.dir / 'metrics.jsonl').rename(self.dir / f'metrics.{free}.jsonl')

    def row(self, values):
        """One row {name: number} of metrics.jsonl, which must hold `epoch`, `step` and `global_step`."""
        if not self.enabled:
            return
        if self.rows is None:
            self.rows = Appender(self.dir / 'metrics.jsonl')
        self.rows.write(json.dumps(values) + '\n')
        if self.tensorboard:
            for name, value in values.items():
                if name not in ('epoch', 'step', 'global_step'):
                    self.tensorboard.add_scalar(name, value, values['global_step'])

    def write_json(self, name, values):
        if self.enabled:
            write_text(self.dir / name, json.dumps(values, indent=2) + '\n')


def format_losses(losses):
    """{'joint_fit': 0.4567} -> 'loss_joint_fit: 0.4567'."""
    return ' '.join(f'loss_{name}: {value:.4f}' for name, value in losses.items())


def train_line(position, lr, speed, hours, losses, extra=''):
    """The log line of a training step.

    Args:
        position: (epoch, end epoch, iteration, iterations per epoch).
        lr: learning rate.
        speed: seconds per iteration: (total, of which computing, of which waiting for data).
        hours: of one epoch at this speed.
        losses: {name: value}.
        extra: what else to show, such as the load of the GPUs.
    """
    epoch, end_epoch, itr, itrs = position
    total, compute, read = speed
    return (f'Epoch {epoch}/{end_epoch} itr {itr}/{itrs}: lr: {lr:.4g} '
            f'speed: {total:.2f}({compute:.2f}s r{read:.2f})s/itr {hours:.2f}h/epoch {format_losses(losses)}'
            + (f' {extra}' if extra else ''))
