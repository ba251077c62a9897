"""Training and test, from configuration to files.

    Trainer(cfg).train()                # -> output/log, output/model_dump/snapshot_<epoch>.pth.tar
    Tester(cfg, snapshot_file).test()   # -> output/result/<testset>.json
"""
import copy
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from common.devices import processes
from common.devices.gpus import devices
from common.devices.wrap import autocast_dtype, check_settings, to_device, wrap
from common.errors import UserError
from common.files.lock import FolderLock
from common.files.whole import write_text
from common.human_model import HumanModel, get_human_model
from common.nets.fuse import prepare_for_inference
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from common.train import random_state
from common.train.loader import EpochView, Loader, Reader, TrainBatches, make_loader, shard
from common.train.logger import open_log, start_console
from common.train.loop import Progress, TrainLoop
from common.train.metrics_file import MetricsFile
from common.train.optim import Schedule, freeze_and_collect, make_optimizer
from common.train.saver import Saver
from common.train.start import Start, find_start, load_state, load_weights
from common.train.startup import compare_processes, report
from common.train.stop import StopRequest
from data import build_dataset
from data.assets.missing import report_missing
from data.dataset import mix_datasets
from main.config import Config
from main.config_check import check_train_batch
from main.model import Model, get_model

log = logging.getLogger(__name__)


class Base:
    """What training and test share: configuration, devices, processes, log.

    Args:
        config: Config; a copy of it is used. log_name: of the text file. alone: lock the output folder.
    Raises:
        UserError: settings that exclude each other, a folder that cannot be written or is in use.
    """

    def __init__(self, config: Config, log_name: str, alone: bool = False) -> None:
        config.check()
        self.cfg = copy.deepcopy(config)
        self.devices = devices()
        self.device = self.devices[0]
        check_settings(self.devices, config.amp, config.compile)
        processes.init(self.device)
        self.output = Path(config.output_dir)
        self.lock: FolderLock | None = None
        if processes.is_main():
            if alone:
                self.lock = FolderLock(self.output)
            open_log(self.output / 'log', log_name)
        else:
            start_console(logging.WARNING)  # what happens in all processes is reported by the first
        if self.device.type == 'cuda':
            torch.backends.cudnn.benchmark = True
            torch.set_float32_matmul_precision('high')

    def loader(self, dataset: Any, batches: Any) -> Loader:
        """A Loader with this process's share of the machine's loader processes."""
        workers = -(-self.cfg.num_thread // processes.local_size())
        return make_loader(EpochView(dataset), batches, workers, self.device.type == 'cuda')

    def body_model(self) -> HumanModel:
        """The body model of the configuration. UserError: its file is missing."""
        return get_human_model(self.cfg.human_model, self.cfg.human_model_dir)


class Trainer(Base):
    """Trains one stage.

    Args:
        config: Config; `continue_train` resumes the newest snapshot of its output folder.
        weights: snapshot to start from with a fresh optimiser, instead.
    Raises:
        UserError: data or body model missing (all of them in one message), no or an unfit snapshot, another training
            in the same output folder.
    """

    def __init__(self, config: Config, weights: str | Path | None = None) -> None:
        check_train_batch(config.train_batch_size)
        super().__init__(config, 'train_logs', alone=True)
        if weights:
            self.cfg.update({'pretrained_backbone': False})
        random_state.seed_all(self.cfg.seed)
        self.metrics = MetricsFile(self.output / 'log', processes.is_main(), self.cfg.tensorboard)
        self.saver = Saver(self.output / 'model_dump', self.cfg.keep_snapshots)
        if self.lock and self.lock.held:
            self.saver.remove_leftovers()
        start = find_start(self.cfg, self.saver.folder, weights)
        sets_3d, sets_2d = self.open_model_and_data(start)
        self.dataset = mix_datasets(sets_3d, sets_2d, self.cfg.seed)
        batch = self.cfg.train_batch_size * len(self.devices)
        self.batches = TrainBatches(len(self.dataset), batch, self.cfg.seed, processes.rank(),
                                    processes.world_size(), self.cfg.grad_accum)
        # After the data sets, which may fork processes to draw their images: those must not inherit a CUDA context.
        self.model.to(self.device).to(memory_format=torch.channels_last)
        self.make_optimizer()
        self.sizes = {'step_size': self.batches.step_size, 'samples': len(self.dataset)}
        load_state(start, self.optimizer, self.scaler, self.sizes)
        if start.content is None or weights:
            self.metrics.new_run()
        self.progress = Progress(start.epoch, start.step, start.stage_start)
        self.schedule = self.make_schedule()
        compare_processes(self.cfg, start, len(self.dataset), self.batches.steps)
        report(self.cfg, self.output / 'log', self.devices, [*sets_3d, *sets_2d], self.batches, self.model,
               self.schedule)
        self.loop = TrainLoop(self.cfg, self.devices, self.model, self.optimizer, self.scaler,
                              self.schedule, self.batches, self.progress, self.metrics, self.save)

    def open_model_and_data(self, start: Start) -> tuple[list, list]:
        """Set `human_model` and `model`, with the weights of the start; returns the opened 3-D and 2-D sets.

        UserError: one for all the body model's and the data's files that are missing; no training set is named.
        """
        errors = []
        try:
            self.human_model = self.body_model()
        except UserError as error:
            errors.append(error)
        else:  # before the data, which may take minutes
            self.model: Model = get_model(self.cfg, self.human_model, 'train')
            load_weights(start, self.model)
        sets: tuple[list, list] = ([], [])
        for opened, names in zip(sets, (self.cfg.trainset_3d, self.cfg.trainset_2d), strict=True):
            for name in names:
                try:
                    opened.append(build_dataset(name, 'train', self.cfg))
                except UserError as error:
                    errors.append(error)
        if errors:
            names = [*self.cfg.trainset_3d, *self.cfg.trainset_2d]
            report_missing(errors, names, 'train', self.cfg)
        if not any(sets):
            raise UserError('no training set: name some in trainset_3d and trainset_2d')
        return sets

    def make_optimizer(self) -> None:
        """Set `optimizer`, over all that the stage trains, and `scaler`, which does nothing unless amp=fp16."""
        parameters = freeze_and_collect(self.model)
        self.optimizer = make_optimizer(self.cfg.optimizer, parameters, self.cfg.lr, self.cfg.weight_decay)
        half = autocast_dtype(self.cfg.amp, self.device) == torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=half)

    def make_schedule(self) -> Schedule:
        """The learning rate of every step of the stage."""
        cfg = self.cfg
        begin = self.progress.stage_start
        return Schedule(cfg.lr_schedule, cfg.lr, cfg.lr_dec_factor, cfg.lr_dec_epoch, begin, cfg.stage_end(begin),
                        self.batches.steps, cfg.warmup_iters)

    def train(self) -> bool:
        """Train to the end of the stage; False: ended early. See TrainLoop.run, also for the errors."""
        if self.progress.epoch >= self.schedule.end_epoch:
            log.info('nothing to do: the %s stage ends at epoch %d', self.cfg.stage, self.schedule.end_epoch)
        loader = self.loader(self.dataset, self.batches)  # local: its processes end here
        try:
            with StopRequest() as stop:
                return self.loop.run(loader, stop)
        finally:
            if self.lock:
                self.lock.release()

    def save(self, last: bool = False) -> None:
        """Write snapshot_<epoch> of the epoch just finished, or of the one under way (its `state.step` is not 0).

        `last`: the run ends with it. UserError: there is no room for the last one.
        """
        at = self.progress
        if not processes.is_main() or at.saved == at.position:
            return
        state = {'step': at.step, **self.sizes, 'scaler': self.scaler.state_dict(),
                 'random': random_state.capture()}
        content = {'epoch': at.epoch - 1, 'network': checkpoint.pack_network(self.model),
                   'optimizer': self.optimizer.state_dict(), 'state': state,
                   'meta': snapshot_meta.record(self.cfg, self.human_model, at.stage_start)}
        number = at.epoch if at.step else at.epoch - 1
        if self.saver.write(number, content, last):
            at.saved = at.position


class Tester(Base):
    """Tests one snapshot on `config.testset`; stage and network come from the snapshot.

    Args:
        config: Config.
        snapshot: path.
        stage: 'lixel' or 'param' to ask for one, None for the snapshot's.
    Raises:
        UserError: data or body model missing, not a checkpoint, or the param stage of a lixel snapshot.
    """

    def __init__(self, config: Config, snapshot: str | Path, stage: str | None = None) -> None:
        content = checkpoint.read(snapshot)
        config = copy.deepcopy(config)
        snapshot_meta.adopt(snapshot_meta.describe(content, snapshot), config, snapshot, stage)
        super().__init__(config, 'test_logs')
        snapshot_meta.warn_of_unfinished(content, snapshot)
        self.snapshot = Path(snapshot)
        self.epoch = content['epoch']
        model = get_model(self.cfg, self.body_model(), 'test')
        checkpoint.load_network(model, content, snapshot, regressor_optional=self.cfg.stage == 'lixel')
        self.dataset = build_dataset(self.cfg.testset, 'test', self.cfg)  # last: it may take minutes
        processes.require_same({'the epoch tested': self.epoch, 'the number of test samples': len(self.dataset)})
        prepared = prepare_for_inference(model, self.device)
        self.net = wrap(prepared, self.devices, self.cfg.amp, self.cfg.compile)

    @torch.inference_mode()
    def test(self) -> dict[str, float]:
        """Returns {metric: mean over the test set}; also printed and written to output/result/<testset>.json."""
        size = self.cfg.test_batch_size * len(self.devices)
        batches = shard(len(self.dataset), size, processes.rank(), processes.world_size())
        keys = [[(0, index) for index in indices] for indices in batches]  # a test has one epoch
        bar = tqdm(Reader(self.loader(self.dataset, keys)), total=len(batches), desc=self.cfg.testset, unit='batch',
                   dynamic_ncols=True, disable=None if processes.is_main() else True)
        rows = []
        for indices, batch in zip(batches, bar, strict=True):
            outs = self.net(*to_device(batch, self.device), 'test')
            outs = {name: value.float().cpu().numpy() for name, value in outs.items()}
            rows.append(self.dataset.evaluate(outs, indices[0]))
        gathered = processes.gather_objects(rows)
        if gathered is None:
            return {}
        rows = [row for part in gathered for row in part]
        results = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
        return self.write(self.dataset.print_eval_result(results))

    def write(self, summary: dict[str, Any]) -> dict[str, float]:
        """Complete the data set's summary by what was tested, save it, and return its means."""
        path = self.output / 'result' / f'{self.cfg.testset}.json'
        tested = {'snapshot': self.snapshot.name, 'epoch': self.epoch, 'stage': self.cfg.stage}
        write_text(path, json.dumps(summary | tested, indent=2, allow_nan=False) + '\n')
        log.info('%s (%s stage) on %s: %s', self.snapshot.name, self.cfg.stage, self.cfg.testset, path)
        return summary['metrics']
