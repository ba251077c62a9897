"""Snapshots: `snapshot_<epoch>.pth.tar`, written whole or not at all and read without running code from the file.

Keys: `epoch` (last complete one), `network` (state dict, every name with the prefix `module.` as the published files
have it), `optimizer`, `meta` (what the network is, see common/snapshot_meta.py) and `state` (what an exact resume
needs). The ending is historical: the file is no tar archive, PyTorch reads it as it is.
"""
import _codecs
import os
import re
from pathlib import Path

import numpy as np
import torch

from common.errors import UserError

PREFIX = 'module.'
BODY_MODEL = 'human_model_layer.'  # body-model tensors in the published files
# Older files hold NumPy scalars (epoch, learning rate): data, not code. Both spellings of NumPy's module are in use.
_SCALAR = np.float64(0).__reduce__()[0]
_LEGACY = [(_SCALAR, 'numpy.core.multiarray.scalar'), (_SCALAR, 'numpy._core.multiarray.scalar'), np.dtype,
           _codecs.encode, *{type(np.dtype(kind)) for kind in 'efdbhilqBHILQ?'}]


def snapshot_path(folder, epoch):
    return Path(folder) / f'snapshot_{epoch}.pth.tar'


def find_snapshots(folder):
    """[(epoch, path)] of the snapshots in a folder, in numeric order."""
    found = [(int(match[1]), path) for path in Path(folder).glob('snapshot_*.pth.tar')
             if (match := re.fullmatch(r'snapshot_(\d+)\.pth\.tar', path.name))]
    return sorted(found)


def write(path, content):
    """Save `content` under a temporary name, sync it to the disk, rename: `path` is always a whole file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + '.tmp')
    with open(temporary, 'wb') as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def prune(folder, keep, newest):
    """Delete all but the last `keep` snapshots of a folder up to the epoch `newest` (0: keep all).

    Those beyond it are of an earlier, longer run: counted in, they would push out the one just written.
    """
    mine = [path for epoch, path in find_snapshots(folder) if epoch <= newest]
    for path in mine[:-keep] if keep else []:
        path.unlink()


def read(path):
    """The content of a snapshot, tensors on the CPU. UserError: missing, or 'not a checkpoint: <reason>'."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f'no snapshot {path}')
    with open(path, 'rb') as file:
        head = file.read(256).lstrip()
    if not head:
        raise UserError(f'{path} is not a checkpoint: the file is empty')
    if head.startswith(b'<'):
        raise UserError(f'{path} is not a checkpoint: it is a web page, so the download went wrong; '
                        'open the link in a browser and save the file itself')
    try:
        with torch.serialization.safe_globals(_LEGACY):
            content = torch.load(path, map_location='cpu', weights_only=True)
    except Exception as error:  # whatever PyTorch's reader makes of broken bytes
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if 'Weights only load failed' in str(error):
            reason = 'it holds things other than tensors and plain values, or is damaged'
        elif 'PytorchStreamReader' in str(error):
            reason = 'it is truncated or damaged'
        raise UserError(f'{path} is not a checkpoint: {reason}') from error
    if not isinstance(content, dict) or not isinstance(content.get('network'), dict):
        raise UserError(f"{path} is not a checkpoint: it has no 'network'")
    if 'epoch' not in content:
        raise UserError(f"{path} is not a whole checkpoint: it has no 'epoch'")
    return content


def network_state(content):
    """The state dict in a snapshot under the network's own names: no `module.` prefix, no body-model tensors."""
    state = {name.removeprefix(PREFIX): value for name, value in content['network'].items()}
    return {name: value for name, value in state.items() if not name.startswith(BODY_MODEL)}


def load_network(model, content, path, regressor_optional=False):
    """Fill `model` from a snapshot, strictly: every name, every shape. Half precision is widened.

    Args:
        regressor_optional: accept a file without `param_regressor.*` (lixel stage).
    Raises:
        UserError: the first few names that do not fit.
    """
    own, given = model.state_dict(), network_state(content)
    if regressor_optional and not any(name.startswith('param_regressor.') for name in given):
        given.update({name: value for name, value in own.items() if name.startswith('param_regressor.')})
    faults = [f'missing {name}' for name in own if name not in given]
    faults += [f'unexpected {name}' for name in given if name not in own]
    faults += [f'{name} is {tuple(given[name].shape)}, the network has {tuple(own[name].shape)}'
               for name in own if name in given and given[name].shape != own[name].shape]
    if faults:
        more = f' and {len(faults) - 3} more' if len(faults) > 3 else ''
        raise UserError(f'{path} does not fit the network: {"; ".join(faults[:3])}{more}')
    model.load_state_dict(given)


def pack_network(model):
    """The network's state dict as snapshots keep it: prefixed, on the CPU, in PyTorch's plain memory order."""
    return {PREFIX + name: value.detach().to('cpu', copy=True).contiguous()
            for name, value in model.state_dict().items()}


def export_weights(source, target):
    """Write a snapshot's network in half precision, without optimiser and resume state: for sharing, not resuming.

    Biases and BatchNorm statistics stay as they are: they are few, and small variances do not fit half precision.
    Folders of the machine it was trained on are left out of its recorded settings.
    """
    content = read(source)
    network = {name: value.half() if value.ndim > 1 else value for name, value in content['network'].items()}
    meta = dict(content.get('meta', {}))
    if 'config' in meta:
        meta['config'] = {k: v for k, v in meta['config'].items() if not (isinstance(v, str) and os.path.isabs(v))}
    write(target, {'epoch': content['epoch'], 'network': network, 'meta': meta})
