"""Snapshots: `snapshot_<epoch>.pth.tar`, written whole or not at all and read without running code from the file.

Keys: `epoch` (last complete one), `network` (state dict, every name with the prefix `module.` as the published files
have it), `optimizer`, `meta` (what the network is, see common/snapshot/meta.py) and `state` (what an exact resume
needs). The ending is historical: the file is not a tar archive, PyTorch reads it as it is.
"""
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from common.errors import UserError
from common.files import torch_file
from common.files.whole import whole_file
from common.snapshot import meta as snapshot_meta

PREFIX = 'module.'
BODY_MODEL = 'human_model_layer.'  # body-model tensors in the published files
REGRESSOR = 'param_regressor.'
# What an exact resume needs.
STATE = {'step': int, 'step_size': int, 'samples': int, 'scaler': dict, 'random': dict}
LARGEST_EPOCH = 10 ** 9
SHOWN = 3  # names of tensors that a message lists


def snapshot_path(folder: str | Path, epoch: int) -> Path:
    """Where the snapshot of an epoch is."""
    return Path(folder) / f'snapshot_{epoch}.pth.tar'


def find_snapshots(folder: str | Path) -> list[tuple[int, Path]]:
    """[(epoch, path)] of the snapshots in a folder, in numeric order."""
    found = []
    for path in Path(folder).glob('snapshot_*.pth.tar'):
        match = re.fullmatch(r'snapshot_(\d+)\.pth\.tar', path.name)
        if match:
            found.append((int(match[1]), path))
    return sorted(found)


def write(path: str | Path, content: dict[str, Any]) -> None:
    """Save `content` whole or not at all. OSError: the disk is full, failing or read-only."""
    with whole_file(path) as file:
        torch.save(content, file)


def best_path(folder: str | Path) -> Path:
    """Where the link to the best snapshot is."""
    return Path(folder) / 'snapshot_best.pth.tar'


def link_best(folder: str | Path, epoch: int) -> None:
    """Let snapshot_best mean the snapshot of an epoch."""
    link = best_path(folder)
    new = link.with_suffix('.new')
    new.unlink(missing_ok=True)
    new.symlink_to(snapshot_path(folder, epoch).name)
    os.replace(new, link)


def prune(folder: str | Path, keep: int, newest: int) -> None:
    """Delete all but the last `keep` snapshots of a folder up to the epoch `newest` (0: keep all), and the best one.

    Those beyond it are of an earlier, longer run: counted in, they would push out the one just written.
    """
    if keep:
        best = best_path(folder).resolve().name
        mine = [path for epoch, path in find_snapshots(folder) if epoch <= newest]
        for path in mine[:-keep]:
            if path.name != best:
                path.unlink()


def read(path: str | Path) -> dict[str, Any]:
    """The content of a snapshot, tensors on the CPU; all its parts are of the right kind, `epoch` is an int.

    Raises:
        UserError: the file is missing, or 'not a checkpoint: <reason>'.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f'no snapshot {path}')
    try:
        content = torch_file.load(path)
    except ValueError as error:
        raise UserError(f'{path} is not a checkpoint: {error}') from error
    if not isinstance(content, dict) or not isinstance(content.get('network'), dict):
        raise UserError(f"{path} is not a checkpoint: it has no 'network'")
    if 'epoch' not in content:
        raise UserError(f"{path} is not a whole checkpoint: it has no 'epoch'")
    fault = _fault(content)
    if fault:
        raise UserError(f'{path} is not a checkpoint: {fault}: it is damaged, take another one')
    return {**content, 'epoch': int(content['epoch'])}


def _fault(content: dict[str, Any]) -> str | None:
    """What is wrong with the parts of a snapshot, or None."""
    for name, value in content['network'].items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            return f"its 'network' has the entry {str(name)[:60]}, which is not a tensor"
    epoch = content['epoch']
    if not isinstance(epoch, int | float | np.integer | np.floating) or not -1 <= epoch < LARGEST_EPOCH:
        return "its 'epoch' is not a valid epoch"
    for part in ('optimizer', 'state'):
        if not isinstance(content.get(part, {}), dict):
            return f"its '{part}' is not a dictionary"
    if 'state' in content:
        state = content['state']
        wrong = [key for key, kind in STATE.items() if not isinstance(state.get(key), kind)]
        if wrong:
            return f"its 'state' has an invalid {', '.join(wrong)}"
    if content.get('meta'):
        return snapshot_meta.fault(content['meta'])
    return None


def network_state(content: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The state dict in a snapshot under the network's own names: no `module.` prefix, no body-model tensors."""
    state = {name.removeprefix(PREFIX): value for name, value in content['network'].items()}
    return {name: value for name, value in state.items() if not name.startswith(BODY_MODEL)}


def load_network(model: nn.Module, content: dict[str, Any], path: str | Path | None,
                 regressor_optional: bool = False) -> None:
    """Fill `model` from a snapshot, strictly: every name, every shape. Half precision is widened.

    Args:
        model: the network to fill. content: of the snapshot. path: for the messages.
        regressor_optional: accept a file without `param_regressor.*` (lixel stage).
    Raises:
        UserError: the first few names that do not fit, or the first tensor with a NaN.
    """
    own = model.state_dict()
    given = network_state(content)
    if regressor_optional and not any(name.startswith(REGRESSOR) for name in given):
        given.update({name: value for name, value in own.items() if name.startswith(REGRESSOR)})
    faults = [f'missing {name}' for name in own if name not in given]
    faults += [f'unexpected {name}' for name in given if name not in own]
    faults += [f'{name} is {tuple(given[name].shape)}, the network has {tuple(own[name].shape)}'
               for name in own if name in given and given[name].shape != own[name].shape]
    if faults:
        more = f' and {len(faults) - SHOWN} more' if len(faults) > SHOWN else ''
        raise UserError(f'{path} does not fit the network: {"; ".join(faults[:SHOWN])}{more}')
    for name, value in given.items():
        if not value.isfinite().all():
            raise UserError(f'{path}: {name} has values that are not finite: its training diverged or '
                            'the file is damaged; take another snapshot')
    model.load_state_dict(given)


def pack_network(model: nn.Module) -> dict[str, torch.Tensor]:
    """The network's state dict as snapshots keep it: prefixed, on the CPU, in PyTorch's plain memory order."""
    return {PREFIX + name: value.detach().to('cpu', copy=True).contiguous()
            for name, value in model.state_dict().items()}


def export_weights(source: str | Path, target: str | Path) -> None:
    """Write a snapshot's network in half precision, without optimiser and resume state: for sharing, not resuming.

    Biases and BatchNorm statistics stay as they are: they are few, and small variances do not fit half precision.
    Folders of the machine it was trained on are left out of its recorded settings.
    """
    content = read(source)
    network = {}
    for name, value in content['network'].items():
        network[name] = value.half() if value.ndim > 1 else value
    meta = dict(content.get('meta', {}))
    if 'config' in meta:
        settings = meta['config'].items()
        meta['config'] = {key: value for key, value in settings if not _is_absolute(value)}
    write(target, {'epoch': content['epoch'], 'network': network, 'meta': meta})


def _is_absolute(value: object) -> bool:
    return isinstance(value, str) and os.path.isabs(value)
