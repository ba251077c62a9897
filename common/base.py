"""Training and test, from configuration to files.

    Trainer(cfg).train()                # -> output/log, output/model_dump/snapshot_<epoch>.pth.tar
    Tester(cfg, snapshot_file).test()   # -> output/result/<testset>.json
"""
import json
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from common.devices import processes
from common.devices.gpus import devices
from common.devices.wrap import autocast_dtype, to_device, wrap
from common.errors import UserError
from common.files.lock import FolderLock
from common.files.whole import write_text
from common.human_model import get_human_model
from common.nets.fuse import prepare_for_inference
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from common.train import random_state, startup
from common.train.loader import Reader, TrainBatches, make_loader, shard
from common.train.logger import Logger
from common.train.loop import TrainLoop
from common.train.optim import Schedule, freeze_and_collect, make_optimizer
from common.train.saver import Saver
from common.train.start import find_start, load_state, load_weights
from data import build_dataset
from data.assets.missing import report_missing
from data.dataset import MultipleDatasets
from main.config_check import check_train_batch
from main.model import get_model


class Base:
    """What training and test share: configuration, devices, processes, log."""

    def __init__(self, config, log_name, alone=False):
        config.check()
        self.cfg = config
        self.devices = devices()
        self.device = self.devices[0]
        processes.init(self.device)
        self.output = Path(config.output_dir)
        self.lock = FolderLock(self.output) if alone and processes.is_main() else None
        self.logger = Logger(self.output / 'log', log_name, processes.is_main(), config.tensorboard)
        if self.device.type == 'cuda':
            torch.backends.cudnn.benchmark = True
            torch.set_float32_matmul_precision('high')

    def loader(self, dataset, batches):
        workers = -(-self.cfg.num_thread // processes.local_size())
        return make_loader(dataset, batches, workers, self.device.type == 'cuda')

    def body_model(self):
        return get_human_model(self.cfg.human_model, model_dir=self.cfg.human_model_dir)


class Trainer(TrainLoop, Base):
    """Trains one stage.

    Args:
        config: Config; `continue_train` resumes the newest snapshot of its output folder.
        weights: snapshot to start from with a fresh optimiser, instead.
    Raises:
        UserError: data or body model missing (all of them in one message), no or an unfit snapshot, another training
            in the same output folder.
    """

    def __init__(self, config, weights=None):
        check_train_batch(config.train_batch_size)
        super().__init__(config, 'train_logs', alone=True)
        self.saver = Saver(self.output / 'model_dump', config.keep_snapshots, self.logger.info)
        if self.lock and self.lock.held:
            self.saver.remove_leftovers()
        random_state.seed_all(config.seed)
        start = find_start(config, self.output / 'model_dump', weights, self.logger.info)
        if weights:
            config.update({'pretrained_backbone': False})
        self.human_model, self.model, sets = self.open_all(start)
        self.dataset = mix(sets['3d'], sets['2d'], config.seed)
        self.batches = TrainBatches(len(self.dataset), config.train_batch_size * len(self.devices), config.seed,
                                    processes.rank(), processes.world_size(), config.grad_accum)
        self.model.to(self.device, memory_format=torch.channels_last)  # the data sets may have forked until here
        self.parameters = freeze_and_collect(self.model)
        self.optimizer = make_optimizer(config.optimizer, self.parameters, config.lr, config.weight_decay)
        half = autocast_dtype(config.amp, self.device) == torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=half)
        self.sizes = {'step_size': self.batches.step_size, 'samples': len(self.dataset)}
        load_state(start, self.optimizer, self.scaler, self.sizes, self.logger.info)
        if start.content is None or weights:
            self.logger.new_run()
        self.epoch, self.step, self.stage_start = start.epoch, start.step, start.stage_start
        self.saved, self.failure = (self.epoch, self.step), None
        self.schedule = Schedule(config.lr_schedule, config.lr, config.lr_dec_factor, config.lr_dec_epoch,
                                 self.stage_start, self.stage_end(), self.batches.steps, config.warmup_iters)
        self.logger.info(startup.settings(config))
        self.logger.write_json('config.json', config.resolved())
        counts = {type(d).__name__: len(d) for kind in sets.values() for d in kind}
        self.logger.info(startup.startup(config, self.devices, counts, self.batches, self.model, self.schedule))
        self.net = None
        self.set_phase()

    def open_all(self, start):
        """The body model, the network as it starts, and the training sets {'3d': [...], '2d': [...]}; one UserError for
        all the body model's and the data's files that are missing."""
        human_model, model, sets, errors = None, None, {'3d': [], '2d': []}, []
        try:
            human_model = self.body_model()
        except UserError as error:
            errors.append(error)
        else:  # before the data, which may take minutes
            model = get_model(self.cfg, human_model, 'train')
            load_weights(start, model)
        names = {'3d': self.cfg.trainset_3d, '2d': self.cfg.trainset_2d}
        for kind in names:
            for name in names[kind]:
                try:
                    sets[kind].append(build_dataset(name, 'train', self.cfg))
                except UserError as error:
                    errors.append(error)
        if errors:
            report_missing(errors, [*names['3d'], *names['2d']], 'train', self.cfg)
        if not sets['3d'] + sets['2d']:
            raise UserError('no training set: name some in trainset_3d and trainset_2d')
        return human_model, model, sets

    def stage_end(self):
        """A cosine over the param stage has a length of its own, wherever the lixel stage was left."""
        if self.cfg.stage == 'param' and self.cfg.lr_schedule == 'cosine' and self.cfg.end_epoch_override is None:
            return self.stage_start + self.cfg.param_epochs
        return self.cfg.end_epoch


def mix(sets_3d, sets_2d, seed):
    """One data set of all: 3-D sets in a row, 2-D sets in a row, both mixed in equal parts."""
    groups = [sets[0] if len(sets) == 1 else MultipleDatasets(sets, make_same_len=False, seed=seed)
              for sets in (sets_3d, sets_2d) if sets]
    return groups[0] if len(groups) == 1 else MultipleDatasets(groups, make_same_len=True, seed=seed)


class Tester(Base):
    """Tests one snapshot on `config.testset`; stage and network come from the snapshot.

    Args:
        config: Config. snapshot: path. stage: 'lixel' or 'param' to ask for one, None for the snapshot's.
    Raises:
        UserError: data or body model missing, not a checkpoint, or the param stage of a lixel snapshot.
    """

    def __init__(self, config, snapshot, stage=None):
        content = checkpoint.read(snapshot)
        snapshot_meta.tell_unfinished(content, snapshot)
        meta = snapshot_meta.describe(content, snapshot)
        snapshot_meta.adopt(meta, config, snapshot, stage)
        super().__init__(config, 'test_logs')
        self.snapshot, self.epoch = Path(snapshot), int(content['epoch'])
        self.model = get_model(config, self.body_model(), 'test')
        checkpoint.load_network(self.model, content, snapshot, regressor_optional=config.stage == 'lixel')
        self.dataset = build_dataset(config.testset, 'test', config)  # last: it may take minutes
        self.net = wrap(prepare_for_inference(self.model, self.device), self.devices, config.amp, config.compile)

    @torch.inference_mode()
    def test(self):
        """Returns {metric: mean over the test set}; also printed and written to output/result/<testset>.json."""
        batches = shard(len(self.dataset), self.cfg.test_batch_size * len(self.devices), processes.rank(),
                        processes.world_size())
        rows = []
        bar = tqdm(Reader(self.loader(self.dataset, batches)), total=len(batches), desc=self.cfg.testset,
                   unit='batch', dynamic_ncols=True, disable=None if processes.is_main() else True)
        for indices, batch in zip(batches, bar, strict=True):
            inputs, targets, meta_info = (to_device(part, self.device) for part in batch)
            outs = self.net(inputs, targets, meta_info, 'test')
            outs = {name: value.float().cpu().numpy() for name, value in outs.items()}
            rows.append(self.dataset.evaluate(outs, indices[0]))
        gathered = processes.gather_objects(rows)
        if not processes.is_main():
            return {}
        rows = [row for part in gathered for row in part]
        results = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
        return self.write(self.dataset.print_eval_result(results))

    def write(self, summary):
        """Complete the data set's summary by what was tested, save it, and return its means."""
        path = self.output / 'result' / f'{self.cfg.testset}.json'
        record = {**summary, 'snapshot': self.snapshot.name, 'epoch': self.epoch, 'stage': self.cfg.stage}
        write_text(path, json.dumps(record, indent=2) + '\n')
        means = summary['metrics']
        self.logger.info(f'{self.snapshot.name} ({self.cfg.stage} stage) on {self.cfg.testset}: {path}')
        return means
