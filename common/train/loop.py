"""The steps of a training, from wherever it stands to the end of its stage."""
import functools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from common.devices import processes
from common.devices.wrap import accumulating, to_network, wrap
from common.errors import one_line
from common.train.loader import Loader, Reader, TrainBatches
from common.train.metrics_file import MetricsFile
from common.train.monitor import Monitor, Timer
from common.train.optim import Schedule, freeze_and_collect
from common.train.pace import Pace
from common.train.start import TrainConfig
from common.train.stop import StopRequest
from common.train.zero_losses import ZeroLosses

log = logging.getLogger(__name__)
Batch = tuple[dict, dict, dict]  # inputs, targets, meta_info
FAILURE = 128  # above all signals


@dataclass
class Progress:
    """Where a run stands."""
    epoch: int  # the one under way; epochs are counted over both stages
    step: int  # whole steps of it
    stage_start: int  # first epoch of the stage
    saved: tuple[int, int] = field(init=False)  # (epoch, step) of the newest snapshot, at first of the start

    def __post_init__(self) -> None:
        self.saved = self.position

    @property
    def position(self) -> tuple[int, int]:
        """(epoch, step)."""
        return self.epoch, self.step


def train_step(net: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler,
               group: list[Batch], device: torch.device,
               clip_grad: float = 0.0) -> dict[str, torch.Tensor]:
    """One step of the optimiser over the batches of a group.

    Args:
        net: returns {loss name: (B,) losses of the samples} in train mode.
        optimizer: of the network's parameters. scaler: of its losses; does nothing unless amp=fp16.
        group: batches whose gradients are averaged.
        device: where the network is.
        clip_grad: largest norm of the gradient, 0 for no limit.
    Returns:
        {loss name: its mean over the group}, 0-d tensors on the device.
    """
    sums: dict[str, Any] = {}
    for number, batch in enumerate(group, 1):
        inputs, targets, meta_info = to_network(batch, net, device)
        with accumulating(net, last=number == len(group)):
            losses = net(inputs, targets, meta_info, 'train')
            means = {name: loss.mean() for name, loss in losses.items()}
            scaler.scale(sum(means.values()) / len(group)).backward()
        for name, loss in means.items():
            sums[name] = sums.get(name, 0) + loss.detach() / len(group)
    if clip_grad:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), clip_grad)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return sums


def read_group(batches: Iterator[Batch], size: int, timer: Timer) -> list[Batch]:
    """The next `size` batches; `timer` counts the waiting."""
    group = []
    for _ in range(size):
        timer.tic()
        group.append(next(batches))
        timer.toc()
    return group


class TrainLoop:
    """Trains epoch after epoch, and saves.

    Args:
        config: Config.
        devices: of this process.
        model: main/model.py's Model, on the first device.
        optimizer, scaler, schedule, batches: of the run.
        progress: where it stands; moved with every step.
        metrics: takes a row per step.
        save: writes a snapshot; called with whether the run ends with it.
    """

    def __init__(self, config: TrainConfig, devices: list[torch.device], model: Any,
                 optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler, schedule: Schedule,
                 batches: TrainBatches, progress: Progress, metrics: MetricsFile,
                 save: Callable[[bool], None]) -> None:
        self.config = config
        self.device = devices[0]
        self.model = model
        self.optimizer = optimizer
        self.scaler = scaler
        self.schedule = schedule
        self.batches = batches
        self.progress = progress
        self.metrics = metrics
        self.save = save
        self.validate: Callable[[int, int, int], None] | None = None  # see Validation
        self.zero_losses = ZeroLosses()
        self.pace: Pace | None = None  # of the data
        self.failure: Exception | None = None  # what went wrong with the data
        self.ended_by = 0  # the number of the signal, or FAILURE, that ended the run early in any of the processes
        self.wrap = functools.partial(wrap, model, devices, config.amp, config.compile,
                                      config.sync_bn)
        self.net: nn.Module | None = None
        self.set_phase()

    def run(self, loader: Loader, stop: StopRequest) -> bool:
        """Train and save to the end of the stage, or to a reason to end before.

        Whatever ends it, the last whole step is in a snapshot, unless its loss was not finite, or a process was lost
        with NCCL.

        Returns:
            False when a signal, or a failure in another process, ended it early.
        Raises:
            UserError: no more data (too many bad samples, a loader process or another process of the run was killed),
                a loss that is not finite, no room for the last snapshot.
        """
        stopped = False
        self.pace = Pace(loader.transport, self.batches.step_size)
        try:
            with processes.noticing_losses():
                while self.progress.epoch < self.schedule.end_epoch and not stopped:
                    stopped = self.train_epoch(loader, stop)
                    self.save(stopped or self.progress.epoch >= self.schedule.end_epoch)
                    if not stopped:
                        self.validate_when_due()
                processes.barrier()  # until the last save is done: a process that ends, ends them all
        except (torch.OutOfMemoryError, processes.LostProcess) as error:
            self.save_after(error)
            raise
        if self.failure:
            raise self.failure
        return not stopped

    @property
    def exit_code(self) -> int:
        """Of the program, once it has run: as a shell counts a signal, so that `train && test` stops there."""
        if 0 < self.ended_by < FAILURE:
            return 128 + self.ended_by
        return 0

    def save_after(self, error: Exception) -> None:
        """Save the last whole step after a failure, where it is known to be whole; says so first."""
        if processes.whole_after_loss():
            log.warning('%s: saving the last whole step', one_line(error))
            self.save(True)
        else:
            log.warning('%s: the newest snapshot is the last one of snapshot_every, or of the last epoch',
                        one_line(error))

    def train_epoch(self, loader: Loader, stop: StopRequest) -> bool:
        """From the present step to the end of the epoch.

        Returns:
            Whether to end the run before that: a request to stop or a failure to read data, in any of the processes.
        """
        config = self.config
        progress = self.progress
        steps = self.batches.steps
        self.batches.set_position(progress.epoch, progress.step)
        net = self.set_phase()
        net.train()
        batches = Reader(loader)
        stopped = False
        with Monitor(self.metrics, progress.epoch, self.schedule.end_epoch, progress.step, steps,
                     config.log_every, self.zero_losses, self.pace) as monitor:
            for step in range(progress.step, steps):
                group = self.read(batches, monitor.read)
                self.ended_by = processes.largest(FAILURE if self.failure else stop.signal)
                stopped = self.ended_by != 0
                if stopped:
                    break
                lr = self.schedule.at(progress.epoch, step)
                for parameters in self.optimizer.param_groups:
                    parameters['lr'] = lr
                losses = train_step(net, self.optimizer, self.scaler, group, self.device,
                                    config.clip_grad)
                progress.step = step + 1
                monitor.step_done(step, lr, losses)
                if self.is_due(progress.step):
                    monitor.flush()  # a loss that is not finite ends the run, and gets into no snapshot
                    if not self.zero_losses.all_zero:
                        self.save(False)
            monitor.flush()
        if progress.step == steps:
            progress.epoch += 1
            progress.step = 0
        return stopped

    def validate_when_due(self) -> None:
        """After an epoch: validate it, if it is one of `validate_every` or the last, and its mesh is trained."""
        done = self.progress.epoch
        due = done % max(1, self.config.validate_every) == 0 or done >= self.schedule.end_epoch
        if self.validate and due and not self.model.pose_only:
            self.validate(done - 1, self.progress.stage_start, done * self.batches.steps)

    def is_due(self, step: int) -> bool:
        """Whether a snapshot within the epoch is due after so many steps; at its end there is one anyway."""
        every = self.config.snapshot_every
        return every > 0 and step % every == 0 and step < self.batches.steps

    def set_phase(self) -> nn.Module:
        """Train PoseNet alone or all of the network, as the epoch asks for. Returns the network wrapped for that."""
        # the last epoch trains the mesh in any case, so that a short trial (end_epoch=1) trains all of the network
        pose_only = self.progress.epoch < min(self.config.pose_epochs, self.schedule.end_epoch - 1)
        if self.net is None or pose_only != self.model.pose_only:
            self.net = None
            self.model.pose_only = pose_only
            freeze_and_collect(self.model)
            self.net = self.wrap()
        return self.net

    def read(self, batches: Iterator[Batch], timer: Timer) -> list[Batch]:
        """The batches of one step; on any error none, and the error in `failure`."""
        try:
            return read_group(batches, self.config.grad_accum, timer)
        except Exception as error:  # whatever it is, all processes end after the same step
            self.failure = error
            return []
