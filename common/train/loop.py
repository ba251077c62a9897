"""The steps of a training, from wherever it stands to the end of its stage, and how it ends."""
import torch

from common.devices import processes
from common.devices.wrap import accumulating, to_device, wrap
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from common.train import random_state
from common.train.loader import EpochView, Reader
from common.train.monitor import Monitor
from common.train.optim import freeze_and_collect
from common.train.stop import StopRequest


class TrainLoop:
    """What common/base.py's Trainer does once it has everything.

    It needs of it: cfg, device, devices, logger, lock, saver, human_model, dataset, batches, model, net, optimizer,
    parameters, scaler, schedule, loader(), sizes, and where the run stands: epoch, step in it, stage_start, `saved`
    (the (epoch, step) of the newest snapshot), `failure` (what went wrong with the data, or None).
    """

    def train(self):
        """Run to the end of the stage. Returns False when SIGTERM, Ctrl-C or a fault elsewhere ended it early.

        Whatever ends it, the last whole step is in a snapshot, unless its loss was not finite.
        Raises:
            UserError: no more data (too many bad samples, a loader process or another process of the run was killed),
                a loss that is not finite, no room for the last snapshot.
        """
        if self.epoch >= self.schedule.end_epoch:
            self.logger.info(f'nothing to do: the {self.cfg.stage} stage ends at epoch {self.schedule.end_epoch}')
        loader = self.loader(EpochView(self.dataset), self.batches)  # local: its processes end with this function
        try:
            with StopRequest() as stop:
                ended = self.run(loader, stop)
        finally:
            if self.lock:
                self.lock.release()
        if self.failure:
            raise self.failure
        return not ended

    def run(self, loader, stop):
        """Train and save to the end of the stage, or to a reason to end before. Returns whether there was one."""
        ended = False
        try:
            with processes.noticing_losses():
                while self.epoch < self.schedule.end_epoch and not ended:
                    ended = self.train_epoch(loader, stop)
                    self.save(last=ended or self.epoch >= self.schedule.end_epoch)
                processes.barrier()  # until the last save is done: a process that fails ends all of them
        except (torch.OutOfMemoryError, processes.LostProcess):
            self.save(last=True)
            raise
        return ended

    def set_phase(self):
        """Train PoseNet alone or all of the network, as self.epoch asks for, with a wrapper that knows which."""
        # the last epoch trains the mesh in any case, so that a short trial (end_epoch=1) trains all of the network
        pose_only = self.epoch < min(self.cfg.pose_epochs, self.schedule.end_epoch - 1)
        if self.net is None or pose_only != self.model.pose_only:
            self.net, self.model.pose_only = None, pose_only
            freeze_and_collect(self.model)
            self.net = wrap(self.model, self.devices, self.cfg.amp, self.cfg.compile, self.cfg.sync_bn)

    def train_epoch(self, loader, stop):
        """From self.step to the end of the epoch; moves self.epoch and self.step. Returns whether to end the run
        before that: a request to stop, or a failure to read data (self.failure), in any of the processes."""
        self.batches.set_position(self.epoch, self.step)
        self.set_phase()
        self.net.train()
        batches, steps, ended = Reader(loader), self.batches.steps, False
        with Monitor(self.logger, self.epoch, self.schedule.end_epoch, self.step, steps, self.cfg.log_every) as monitor:
            for step in range(self.step, steps):
                group = self.read(batches, monitor.read)
                ended = processes.any_rank(stop or self.failure)
                if ended:
                    break
                lr = self.schedule.at(self.epoch, step)
                for parameters in self.optimizer.param_groups:
                    parameters['lr'] = lr
                losses = self.train_step(group)
                self.step = step + 1
                monitor.step_done(step, lr, losses)
                if self.cfg.snapshot_every and self.step % self.cfg.snapshot_every == 0 and self.step < steps:
                    monitor.flush()  # a loss that is not finite ends the run before it gets into a snapshot
                    self.save()
            monitor.flush()
        if self.step == steps:
            self.epoch, self.step = self.epoch + 1, 0
        return ended

    def read(self, batches, reading):
        """The `grad_accum` batches of a step, or None and the reason in self.failure."""
        group = []
        try:
            for _ in range(self.cfg.grad_accum):
                reading.tic()
                group.append(next(batches))
                reading.toc()
        except Exception as error:  # whatever it is, all processes end after the same step, with a snapshot
            self.failure = error
            return None
        return group

    def train_step(self, group):
        """One step of the optimiser over a list of batches. Returns {loss name: its mean}, detached."""
        sums = {}
        for i, batch in enumerate(group):
            inputs, targets, meta_info = (to_device(part, self.device) for part in batch)
            with accumulating(self.net, last=i == len(group) - 1):
                losses = {k: v.mean() for k, v in self.net(inputs, targets, meta_info, 'train').items()}
                self.scaler.scale(sum(losses.values()) / len(group)).backward()
            sums = {k: sums.get(k, 0) + v.detach() / len(group) for k, v in losses.items()}
        if self.cfg.clip_grad:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.parameters, self.cfg.clip_grad)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return sums

    def save(self, last=False):
        """Write snapshot_<epoch> of the epoch just finished, or of the one under way (its `state.step` is not 0).

        last: the run ends with it. UserError: there is no room for the last one.
        """
        if not processes.is_main() or self.saved == (self.epoch, self.step):
            return
        state = {'step': self.step, **self.sizes, 'scaler': self.scaler.state_dict(), 'random': random_state.capture()}
        content = {'epoch': self.epoch - 1, 'network': checkpoint.pack_network(self.model),
                   'optimizer': self.optimizer.state_dict(), 'state': state,
                   'meta': snapshot_meta.record(self.cfg, self.human_model, self.stage_start)}
        if self.saver.write(self.epoch if self.step else self.epoch - 1, content, last):
            self.saved = self.epoch, self.step
