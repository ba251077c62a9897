"""Training and test, from configuration to files.

    Trainer(cfg).train()                # -> output/log, output/model_dump/snapshot_<epoch>.pth.tar
    Tester(cfg, snapshot_file).test()   # -> output/result/<testset>_<epoch>.json
"""
import copy
import logging
from pathlib import Path
from typing import Any

import torch

from common.devices import processes
from common.devices.gpus import devices, tune
from common.devices.wrap import autocast_dtype, check_settings, use_channels_last, wrap
from common.errors import UserError
from common.files.lock import FolderLock
from common.human_model import HumanModel, get_human_model
from common.nets.fuse import prepare_for_inference
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from common.train import random_state
from common.train.loader import EpochView, Loader, TrainBatches, make_loader
from common.train.logger import open_log, start_console
from common.train.loop import Progress, TrainLoop
from common.train.metrics_file import MetricsFile
from common.train.optim import freeze_and_collect, make_optimizer, stage_schedule
from common.train.saver import Saver
from common.train.start import Start, find_start, load_state, load_weights
from common.train.startup import compare_processes, report
from common.train.stop import StopRequest
from common.train.test_loop import run_test
from common.train.validation import Validation
from data import build_dataset, open_validation
from data.assets.missing import report_missing
from data.checks.truth import refuse_nothing_to_learn
from data.dataset import mix_datasets
from data.evaluation.report import save_test
from main.config import Config
from main.model import Model, get_model

log = logging.getLogger(__name__)


class Base:
    """What training and test share: configuration, devices, processes, log.

    Args:
        config: Config (a copy is used). log_name: of the text file. alone: lock its folder. precision: of tune().
    Raises:
        UserError: settings that exclude each other, a folder that cannot be written or is in use.
    """

    def __init__(self, config: Config, log_name: str, alone: bool = False, precision: str = 'high') -> None:
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
        tune(precision, config.resnet_width)

    def loader(self, dataset: Any, batches: Any) -> Loader:
        """A Loader with this process's share of the machine's loader processes."""
        workers = -(-self.cfg.num_thread // processes.local_size())
        return make_loader(EpochView(dataset), batches, workers, self.device.type == 'cuda')

    def run_test(self, model: Model, dataset: Any) -> dict[str, Any] | None:
        """Test a model, which is changed for inference, on a data set; see common.train.test_loop.run_test."""
        prepared = prepare_for_inference(model, self.device, use_channels_last(self.cfg, self.device))
        net = wrap(prepared, self.devices, self.cfg.amp, self.cfg.compile)
        size = self.cfg.test_batch_size * len(self.devices)
        return run_test(net, dataset, self.loader, size, self.device)

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
        config.check_training()
        super().__init__(config, 'train_logs', alone=True)
        if weights:
            self.cfg.update({'pretrained_backbone': False})
        random_state.seed_all(self.cfg.seed)
        self.validation_set: Any = None
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
        self.model.place(self.device, use_channels_last(self.cfg, self.device))
        self.make_optimizer()
        self.sizes = {'step_size': self.batches.step_size, 'samples': len(self.dataset)}
        load_state(start, self.optimizer, self.scaler, self.sizes)
        validations = MetricsFile(self.output / 'log', processes.is_main(), name='validation')
        if start.content is None or weights:
            self.metrics.new_run()
            validations.new_run()
        self.progress = Progress(start.epoch, start.step, start.stage_start)
        self.schedule = stage_schedule(self.cfg, start.stage_start, self.batches.steps)
        compare_processes(self.cfg, start, len(self.dataset), self.batches.steps)
        report(self.cfg, self.output / 'log', self.devices, [*sets_3d, *sets_2d], self.batches, self.model,
               self.schedule)
        self.loop = TrainLoop(self.cfg, self.devices, self.model, self.optimizer, self.scaler,
                              self.schedule, self.batches, self.progress, self.metrics, self.save)
        if self.validation_set is not None:
            self.loop.validate = Validation(self.test_as_it_is, self.cfg.stage, self.saver.folder, validations)

    def open_model_and_data(self, start: Start) -> tuple[list, list]:
        """Set `human_model` and `model`, with the weights of the start; returns the opened 3-D and 2-D sets.

        UserError: one for all the body model's and the data's files that are missing; nothing to learn from.
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
        try:
            self.validation_set = open_validation(self.cfg)
        except UserError as error:
            errors.append(error)
        if errors:
            report_missing(errors, [*self.cfg.trainset_3d, *self.cfg.trainset_2d], 'train', self.cfg)
        truths = {type(data).__name__: data.check.truth for data in (*sets[0], *sets[1])}
        refuse_nothing_to_learn(truths, self.cfg.stage, self.cfg.orig_joint_loss)
        return sets

    def test_as_it_is(self) -> dict[str, Any] | None:
        """The summary of the validation set with the network as it is. Leaves the random state alone."""
        with torch.random.fork_rng(devices=[]):
            return self.run_test(copy.deepcopy(self.model), self.validation_set)

    def make_optimizer(self) -> None:
        """Set `optimizer`, over all that the stage trains, and `scaler`, which does nothing unless amp=fp16."""
        parameters = freeze_and_collect(self.model)
        self.optimizer = make_optimizer(self.cfg.optimizer, parameters, self.cfg.lr, self.cfg.weight_decay)
        half = autocast_dtype(self.cfg.amp, self.device) == torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=half)

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
        adopted = copy.deepcopy(config)
        snapshot_meta.adopt(snapshot_meta.describe(content, snapshot), adopted, snapshot, stage)
        super().__init__(adopted, 'test_logs', precision='highest')  # the metrics do not depend on TF32
        snapshot_meta.warn_of_unfinished(content, snapshot)
        snapshot_meta.warn_of_other_kind(config, adopted, snapshot)
        self.snapshot = Path(snapshot)
        self.epoch = content['epoch']
        self.model = get_model(self.cfg, self.body_model(), 'test')
        checkpoint.load_network(self.model, content, snapshot, regressor_optional=self.cfg.stage == 'lixel')
        self.dataset = build_dataset(self.cfg.testset, 'test', self.cfg)  # last: it may take minutes
        processes.require_same({'the epoch tested': self.epoch, 'the number of test samples': len(self.dataset)})

    def test(self) -> dict[str, float]:
        """{metric: mean over the test set}; also printed and written, see `write`."""
        summary = self.run_test(self.model, self.dataset)
        if summary is None:
            return {}
        return self.write(summary)

    def write(self, summary: dict[str, Any]) -> dict[str, float]:
        """Complete the data set's summary by what was tested, and save it; returns its means."""
        tested = {'snapshot': self.snapshot.name, 'epoch': self.epoch, 'stage': self.cfg.stage}
        save_test(self.output, self.cfg.testset, summary | tested)
        return summary['metrics']
