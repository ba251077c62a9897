"""Where a training run starts: at nothing, at the weights of a snapshot, or exactly where one left off."""
from dataclasses import dataclass

from common.errors import UserError, one_line
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from common.train import random_state


@dataclass
class Start:
    """Position of a run: epoch, step in it, the epoch its stage began at, and the snapshot behind it (or None)."""
    epoch: int = 0
    step: int = 0
    stage_start: int = 0
    path: object = None
    content: dict | None = None
    exact: bool = False  # optimiser, scaler and random state come from the snapshot too


def find_start(config, folder, weights, log):
    """The Start that a configuration asks for.

    Args:
        config: Config; with `continue_train` the newest readable snapshot of `folder` counts.
        weights: path of a snapshot whose weights to start from, or None.
        log: function of one line of text.
    Raises:
        UserError: no snapshot where one is needed, or one of another network, of the later stage, or of an epoch of the
            stage before that has not ended.
    """
    if not weights and not config.continue_train:
        if config.stage == 'param':
            raise UserError('the param stage starts from a network trained in the lixel stage: first '
                            'python main/train.py --stage lixel, then --stage param --continue')
        old = checkpoint.find_snapshots(folder)
        if old:
            log(f'note: {folder} has snapshots of an earlier run, up to epoch {old[-1][0]}; this run writes over them '
                'one by one, and --continue takes the highest: another output_dir keeps the two apart')
        return Start()
    path, content = (weights, checkpoint.read(weights)) if weights else newest_snapshot(folder, log)
    meta = snapshot_meta.describe(content, path)
    snapshot_meta.check(meta, config, path)
    epoch, begun = int(content['epoch']) + 1, snapshot_meta.step_within(content) > 0
    same_stage = meta['stage'] == config.stage
    if weights:
        epoch = 0 if config.stage == 'lixel' else epoch + begun  # not the number of the snapshot that it starts from
        return Start(epoch, 0, epoch, path, content)
    if same_stage:
        # files of the original say neither where the stage began nor anything to resume but the weights
        began = meta.get('stage_start', 0 if config.stage == 'lixel' else epoch)
        return Start(epoch, 0, began, path, content, exact='state' in content)
    if config.stage == 'lixel':
        raise UserError(f'{path} is of the param stage, which follows the lixel stage: continue with --stage param, or '
                        'start a new run with another output_dir')
    if begun:  # the param stage would write over it
        raise UserError(f'{path} is from the middle of epoch {epoch} of the lixel stage: go on with that first '
                        '(--stage lixel --continue), or take its weights as they are (--stage param --snapshot)')
    return Start(epoch, 0, epoch, path, content)


def newest_snapshot(folder, log):
    """(path, content) of the newest readable snapshot; unreadable ones are reported and passed over."""
    there = [path for _, path in reversed(checkpoint.find_snapshots(folder))]
    if not there:
        raise UserError(f'--continue: there is no snapshot_<epoch>.pth.tar in {folder}')
    for path in there:
        try:
            return path, checkpoint.read(path)
        except UserError as error:
            log(f'{error}' + ('; trying the one before it' if path != there[-1] else ''))
    raise UserError(f'--continue: none of the snapshots in {folder} can be read ({len(there)}, the reasons are above): '
                    'start again without --continue, or --snapshot FILE with one from elsewhere')


def load_weights(start, model):
    """Fill the model from a Start. UserError: the snapshot does not fit."""
    if start.content is not None:
        untrained = snapshot_meta.describe(start.content, start.path)['stage'] == 'lixel'
        checkpoint.load_network(model, start.content, start.path, regressor_optional=untrained)


def load_state(start, optimizer, scaler, sizes, log):
    """For an exact resume, fill all but the model from a Start; sets `start.step`.

    Args:
        sizes: {'step_size': samples per step, 'samples': in the data set}, as in the snapshot's `state`: a position
            within an epoch is meaningful for the same sizes only.
    """
    if start.content is None:
        return
    if not start.exact:
        log(f'starting from the weights of {start.path} at epoch {start.epoch}, with a fresh optimiser')
        return
    state = start.content['state']
    decays = [group['weight_decay'] for group in optimizer.param_groups]
    try:
        optimizer.load_state_dict(start.content['optimizer'])
        if state['scaler']:  # empty when the run before had no scaled loss
            scaler.load_state_dict(state['scaler'])
        random_state.restore(state['random'])
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise UserError(f'the optimiser or random state in {start.path} does not fit ({one_line(error)}): --snapshot '
                        f'{start.path} in place of --continue starts from its weights alone') from error
    for group, decay in zip(optimizer.param_groups, decays, strict=True):
        group['weight_decay'] = decay  # a setting of this run, not of the one before
    if all(state[name] == size for name, size in sizes.items()):
        start.step = state['step']
    elif state['step']:
        log(f'{start.path} is from the middle of epoch {start.epoch}, with another batch size or data: '
            'that epoch starts again')
    log(f'resuming {start.path} at epoch {start.epoch} step {start.step}')
