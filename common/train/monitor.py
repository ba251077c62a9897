"""Follows a training: speed, losses, the log line, metrics.jsonl; ends it when a loss is not finite."""
import logging
import math
import time
from dataclasses import dataclass

import torch
from tqdm import tqdm

from common.devices import processes
from common.devices.gpus import load_report
from common.errors import UserError
from common.train.metrics_file import MetricsFile
from common.train.pace import Pace
from common.train.zero_losses import ZeroLosses

log = logging.getLogger(__name__)


class Timer:
    """Sums the seconds between `tic()` and `toc()`."""

    def __init__(self) -> None:
        self.total = 0.0
        self.calls = 0

    def tic(self) -> None:
        """Start."""
        self.start = time.perf_counter()

    def toc(self) -> None:
        """Stop, and add the time since `tic()`."""
        self.total += time.perf_counter() - self.start
        self.calls += 1


@dataclass
class Step:
    """A step whose losses are still on the device: {name: 0-d tensor}."""
    number: int
    lr: float
    losses: dict[str, torch.Tensor]


class Monitor:
    """Follows one epoch. Use as a context: it owns the progress bar.

    Losses stay on the device and are fetched once per `every` steps, so that a GPU never waits for the log.

    Args:
        metrics: takes a row per step.
        epoch: number of the epoch. end_epoch: where the stage ends.
        first_step: where the epoch is resumed. steps: of a whole epoch.
        every: steps between two lines of the log.
        zero_losses, pace: of the whole run.
    """

    def __init__(self, metrics: MetricsFile, epoch: int, end_epoch: int, first_step: int,
                 steps: int, every: int, zero_losses: ZeroLosses | None = None,
                 pace: Pace | None = None) -> None:
        self.metrics = metrics
        self.zero_losses = zero_losses or ZeroLosses()
        self.pace = pace
        self.epoch = epoch
        self.end_epoch = end_epoch
        self.steps = steps
        self.every = every
        self.pending: list[Step] = []
        self.total = Timer()
        self.read = Timer()
        self.paced = (0., 0.)  # seconds that `pace` knows of: in all, and of which waiting for data
        hidden = None if processes.is_main() else True  # None: shown on a terminal only
        self.bar = tqdm(total=steps, initial=first_step, desc=f'epoch {epoch}/{end_epoch}',
                        unit='itr', dynamic_ncols=True, disable=hidden)

    def __enter__(self) -> 'Monitor':
        self.total.tic()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def step_done(self, step: int, lr: float, losses: dict[str, torch.Tensor]) -> None:
        """Note the losses {name: 0-d tensor} of a step.

        Raises:
            UserError: a loss is not finite, in any of the processes; raised in all of them.
        """
        self.pending.append(Step(step, lr, losses))
        self.total.toc()
        self.total.tic()
        self.bar.update()
        if step % self.every == 0 or step == self.steps - 1:
            self.flush()

    def flush(self) -> None:
        """Fetch what is pending: a row each for metrics.jsonl, and the last step's line for the log."""
        if not self.pending:
            return
        table = torch.stack([torch.stack(list(step.losses.values())) for step in self.pending])
        means = processes.mean(table.double().cpu()).tolist()
        for step, values in zip(self.pending, means, strict=True):
            losses = dict(zip(step.losses, values, strict=True))
            self.write_row(step, losses)
        if self.pace is not None:
            seconds = self.total.total - self.paced[0]
            self.pace.add(len(self.pending), seconds, self.read.total - self.paced[1])
            self.paced = (self.total.total, self.read.total)
        self.pending = []
        self.bar.set_postfix(loss=f'{sum(losses.values()):.4f}')
        loads = processes.gather_objects(load_report()) or []
        position = (self.epoch, self.end_epoch, step.number, self.steps)
        log.info(train_line(position, step.lr, self.speed(), losses, ' '.join(filter(None, loads))))

    def write_row(self, step: Step, losses: dict[str, float]) -> None:
        """Write one step to metrics.jsonl. UserError: a loss is not finite, or all of them are always zero."""
        if not all(math.isfinite(value) for value in losses.values()):
            raise UserError(f'the loss is not finite at epoch {self.epoch} itr {step.number}: '
                            f'{format_losses(losses)}; try a lower lr, warmup_iters, clip_grad or amp=none, '
                            'from the last snapshot')
        self.zero_losses.add(losses, ends_epoch=step.number == self.steps - 1)
        row = {'epoch': self.epoch, 'step': step.number,
               'global_step': self.epoch * self.steps + step.number, 'lr': step.lr,
               'loss': sum(losses.values())}
        self.metrics.row(row | {f'loss_{name}': value for name, value in losses.items()})

    def speed(self) -> tuple[float, float]:
        """Seconds per step: in all, and of which waiting for data (a step may read several batches)."""
        total = self.total.total / self.total.calls
        return total, min(self.read.total / self.total.calls, total)


def format_losses(losses: dict[str, float]) -> str:
    """{'joint_fit': 0.4567} -> 'loss_joint_fit: 0.4567'."""
    return ' '.join(f'loss_{name}: {value:.4f}' for name, value in losses.items())


def train_line(position: tuple[int, int, int, int], lr: float, speed: tuple[float, float],
               losses: dict[str, float], extra: str = '') -> str:
    """The log line of a training step, with the time that the rest of the stage takes at this speed.

    Args:
        position: epoch, end epoch, iteration, iterations per epoch.
        lr: learning rate.
        speed: seconds per iteration: in all, and of which waiting for data.
        losses: {name: value}.
        extra: what else to show, such as the load of the GPUs.
    """
    epoch, end_epoch, itr, itrs = position
    total, read = speed
    hours = total * itrs / 3600
    steps_left = (end_epoch - epoch) * itrs - itr - 1
    line = (f'Epoch {epoch}/{end_epoch} itr {itr}/{itrs}: lr: {lr:.4g} '
            f'speed: {total:.2f}({total - read:.2f}s r{read:.2f})s/itr {hours:.2f}h/epoch '
            f'{total * steps_left / 3600:.2f}h left loss: {sum(losses.values()):.4f} '
            f'{format_losses(losses)}')
    return f'{line} {extra}'.rstrip()
