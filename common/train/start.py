"""Where a training run starts: at nothing, at the weights of a snapshot, or exactly where one left off."""
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from common.devices import processes
from common.errors import UserError, one_line
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from common.snapshot.meta import NetworkConfig
from common.train import random_state

log = logging.getLogger(__name__)
# What PyTorch, NumPy and Python may raise for a state that is not theirs.
DAMAGED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError)


class TrainConfig(NetworkConfig, Protocol):
    """What a training needs of a configuration (main/config.py says what each setting is)."""
    continue_train: bool
    train_batch_size: int
    grad_accum: int
    clip_grad: float
    pose_epochs: int
    warmup_iters: int
    keep_snapshots: int
    snapshot_every: int
    validate_every: int
    log_every: int
    amp: str
    compile: bool
    sync_bn: bool


@dataclass
class Start:
    """Position of a run: epoch, step in it, the epoch its stage began at, and the snapshot behind it (or None)."""
    epoch: int = 0
    step: int = 0
    stage_start: int = 0
    path: Path | None = None
    content: dict[str, Any] | None = None
    exact: bool = False  # optimiser, scaler and random state come from the snapshot too


def find_start(config: TrainConfig, folder: Path, weights: str | Path | None) -> Start:
    """The Start that a configuration asks for.

    Args:
        config: Config; with `continue_train` the newest readable snapshot of `folder` counts.
        folder: of the run's snapshots.
        weights: path of a snapshot whose weights to start from, or None.
    Raises:
        UserError: no snapshot where one is needed, or one of another network, of the later stage, or of an epoch of the
            stage before that has not ended.
    """
    if weights:
        path = Path(weights)
        start = start_from_weights(config, path, checkpoint.read(path))
        require_untouched(folder, start.epoch, config.keep_snapshots)
        return start
    if config.continue_train:
        return resume(config, *newest_snapshot(folder))
    if config.stage == 'param':
        raise UserError('the param stage starts from a network trained in the lixel stage: first '
                        'python main/train.py --stage lixel, then --stage param --continue')
    require_untouched(folder, 0, config.keep_snapshots)
    return Start()


def require_untouched(folder: Path, epoch: int, keep: int) -> None:
    """Refuse a new run that would replace or delete snapshots of an earlier one.

    Args:
        folder: of the snapshots. epoch: the first one that the run writes. keep: the setting keep_snapshots.
    Raises:
        UserError: it would.
    """
    old = [number for number, _ in checkpoint.find_snapshots(folder)]
    if old and (keep or old[-1] >= epoch):
        raise UserError(f'{folder} has snapshots of an earlier run, up to epoch {old[-1]}: go on with that '
                        'run by --continue, or begin another one elsewhere by output_dir=FOLDER')


def start_from_weights(config: TrainConfig, path: Path, content: dict[str, Any]) -> Start:
    """Train from the weights of a snapshot; the param stage counts its epochs on from there."""
    snapshot_meta.check(snapshot_meta.describe(content, path), config, path)
    if config.stage == 'lixel':
        return Start(path=path, content=content)
    epoch = content['epoch'] + 1
    if snapshot_meta.step_within(content):
        epoch += 1  # that number is the unfinished epoch's, whose snapshot is not to be replaced
    return Start(epoch, stage_start=epoch, path=path, content=content)


def resume(config: TrainConfig, path: Path, content: dict[str, Any]) -> Start:
    """Go on where a snapshot ends; from the lixel to the param stage with its weights alone."""
    meta = snapshot_meta.describe(content, path)
    snapshot_meta.check(meta, config, path)
    epoch = content['epoch'] + 1
    if meta['stage'] == config.stage:
        # files of the original say neither where the stage began nor anything to resume but the weights
        began = meta.get('stage_start', 0 if config.stage == 'lixel' else epoch)
        return Start(epoch, 0, began, path, content, exact='state' in content)
    if config.stage == 'lixel':
        raise UserError(f'{path} is of the param stage, which follows the lixel stage: continue with '
                        '--stage param, or start a new run with another output_dir')
    if snapshot_meta.step_within(content):  # the param stage would replace it
        raise UserError(f'{path} is from the middle of epoch {epoch} of the lixel stage: finish that '
                        'first (--stage lixel --continue), or take its weights as they are (--stage '
                        'param --snapshot)')
    return Start(epoch, 0, epoch, path, content)


def newest_snapshot(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Path and content of the newest readable snapshot; warns of unreadable ones. UserError: there is none."""
    paths = [path for _, path in reversed(checkpoint.find_snapshots(folder))]
    if not paths:
        hint = ''
        if processes.world_size() > processes.local_size():
            hint = ': a run on several machines needs an output_dir that all of them share'
        raise UserError(f'--continue: there is no snapshot_<epoch>.pth.tar in {folder}{hint}')
    for path in paths:
        try:
            return path, checkpoint.read(path)
        except UserError as error:
            hint = '; trying the one before it' if path != paths[-1] else ''
            log.warning('%s%s', error, hint)
    raise UserError(f'--continue: none of the snapshots in {folder} can be read ({len(paths)}, the '
                    'reasons are above): start again without --continue, or --snapshot FILE with one from '
                    'elsewhere')


def load_weights(start: Start, model: nn.Module) -> None:
    """Fill the model from a Start. UserError: the snapshot does not fit."""
    if start.content is not None:
        untrained = snapshot_meta.describe(start.content, start.path)['stage'] == 'lixel'
        checkpoint.load_network(model, start.content, start.path, regressor_optional=untrained)


def load_state(start: Start, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler,
               sizes: dict[str, int]) -> None:
    """For an exact resume, fill all but the model from a Start; sets `start.step`.

    Args:
        start: from find_start.
        optimizer, scaler: of this run.
        sizes: {'step_size': samples per step, 'samples': in the data set}, as in the snapshot's `state`: a position
            within an epoch is meaningful for the same sizes only.
    Raises:
        UserError: the snapshot's state is of another network, or damaged.
    """
    if start.content is None:
        return
    if not start.exact:
        log.info('starting from the weights of %s at epoch %d, with a fresh optimiser', start.path,
                 start.epoch)
        return
    state = start.content['state']
    decays = [group['weight_decay'] for group in optimizer.param_groups]
    try:
        optimizer.load_state_dict(start.content['optimizer'])
        if state['scaler']:  # empty when the run before had no scaled loss
            scaler.load_state_dict(state['scaler'])
        random_state.restore(state['random'])
    except DAMAGED as error:
        raise UserError(f'the optimiser or random state in {start.path} does not fit '
                        f'({one_line(error)}): --snapshot {start.path} in place of --continue starts from '
                        'its weights alone') from error
    for group, decay in zip(optimizer.param_groups, decays, strict=True):
        group['weight_decay'] = decay  # a setting of this run, not of the one before
    if all(state[name] == size for name, size in sizes.items()):
        start.step = state['step']
    elif state['step']:
        log.warning('%s is from the middle of epoch %d, with another batch size or data: that epoch '
                    'starts again', start.path, start.epoch)
    log.info('resuming %s at epoch %d step %d', start.path, start.epoch, start.step)
