"""Follows a training run: speed, losses, the log line, metrics.jsonl; stops it when a loss is not a number."""
import math

import torch
from tqdm import tqdm

from common.devices import processes
from common.devices.gpus import load_report
from common.errors import UserError
from common.train.logger import format_losses, train_line
from common.train.timer import Timer


class Monitor:
    """Of one epoch. Use as a context: it owns the progress bar.

    Losses stay on the device and are fetched once per `every` steps, so that a GPU never waits for the log.
    """

    def __init__(self, logger, epoch, end_epoch, first_step, steps, every):
        self.logger, self.epoch, self.end_epoch, self.steps, self.every = logger, epoch, end_epoch, steps, every
        self.pending, self.total, self.read = [], Timer(), Timer()
        hidden = None if processes.is_main() else True  # None: shown on a terminal only
        self.bar = tqdm(total=steps, initial=first_step, desc=f'epoch {epoch}/{end_epoch}', unit='itr',
                        dynamic_ncols=True, disable=hidden)

    def __enter__(self):
        self.total.tic()
        return self

    def __exit__(self, *error):
        self.bar.close()

    def step_done(self, step, lr, losses):
        """Note {name: 0-d tensor} of a step. UserError, in all processes: a loss is not finite."""
        self.pending.append((step, lr, losses))
        self.total.toc()
        self.total.tic()
        self.bar.update()
        if step % self.every == 0 or step == self.steps - 1:
            self.flush()

    def flush(self):
        """Fetch what is pending: rows to metrics.jsonl, the last step's line to the log."""
        if not self.pending:
            return
        names = list(self.pending[0][2])
        table = torch.stack([torch.stack(list(losses.values())) for _, _, losses in self.pending]).double().cpu()
        table = processes.mean(table).tolist()
        for (step, lr, _), values in zip(self.pending, table, strict=True):
            losses = dict(zip(names, values, strict=True))
            if not all(map(math.isfinite, values)):
                raise UserError(f'the loss is not finite at epoch {self.epoch} itr {step}: {format_losses(losses)}; '
                                'try a lower lr, warmup_iters, clip_grad or amp=none, from the last snapshot')
            self.logger.row({'epoch': self.epoch, 'step': step, 'global_step': self.epoch * self.steps + step,
                             'lr': lr, 'loss': sum(values), **{f'loss_{k}': v for k, v in losses.items()}})
        self.pending = []
        self.bar.set_postfix(loss=f'{sum(values):.4f}')
        speed = self.total.average
        read = min(self.read.total / self.total.calls, speed)  # per step, which may read several batches
        loads = processes.gather_objects(load_report()) or []
        self.logger.info(train_line((self.epoch, self.end_epoch, step, self.steps), lr, (speed, speed - read, read),
                                    speed * self.steps / 3600, losses, ' '.join(filter(None, loads))))
