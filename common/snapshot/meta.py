"""What network a snapshot holds: recorded when it is written, guessed from the tensors of files without a record."""
import platform
import sys
from importlib import metadata

import torch

from common.errors import UserError
from common.nets.resnet import LAYERS, Bottleneck

# Settings that make the network: a snapshot and the configuration must agree on them.
NETWORK = ('human_model', 'resnet_type', 'resnet_width', 'head_width', 'input_img_shape', 'output_hm_shape', 'sigma')
# What a record has to hold, and of which kind; a list: numbers of it.
KINDS = {'human_model': str, 'stage': str, 'resnet_type': int, 'resnet_width': int, 'head_width': int,
         'sigma': (int, float), 'input_img_shape': 2, 'output_hm_shape': 3}
OPTIONAL = {'stage_start': int, 'config': dict, 'versions': dict}
PUBLISHED_DEPTH = 64  # lixels; the published sigma is 2.5 lixels of these


def versions():
    """Versions of Python and of the packages that matter, as plain strings."""
    found = {'python': platform.python_version(), 'cuda': str(torch.version.cuda)}
    for name in ('torch', 'torchvision', 'numpy', 'smplx', 'opencv-python-headless'):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # OpenCV has several distributions, torch may be a local build
            found[name] = 'unknown'
    return found


def record(config, human_model, stage_start):
    """The `meta` of a snapshot, plain types only. `stage_start`: the epoch at which the stage began."""
    resolved = config.resolved()
    return {**{name: resolved[name] for name in NETWORK}, 'stage': config.stage, 'stage_start': stage_start,
            'joint_num': human_model.joint_num, 'vertex_num': human_model.vertex_num, 'versions': versions(),
            'config': resolved}


def fault(meta):
    """What is wrong with the `meta` of a snapshot, as it was read from the file, or None."""
    if not isinstance(meta, dict):
        return "its 'meta' is no dictionary"
    for key, kind in KINDS.items():
        value = meta.get(key)
        good = isinstance(value, kind) if not isinstance(kind, int) else (
            isinstance(value, list) and len(value) == kind and all(isinstance(size, int) for size in value))
        if not good or (key == 'stage' and value not in ('lixel', 'param')):
            return f"its 'meta' {'has an odd' if key in meta else 'lacks'} {key}"
    odd = [key for key, kind in OPTIONAL.items() if not isinstance(meta.get(key, kind()), kind)]
    return f"its 'meta' has an odd {odd[0]}" if odd else None


def describe(content, path):
    """The `meta` of a snapshot; for files of the original, which have none, what the tensors tell, and `guessed`.

    UserError: it is of another network. `path`: for that message.
    """
    if content.get('meta'):
        return content['meta']
    state = {name.removeprefix('module.'): value for name, value in content['network'].items()}
    try:
        head, stem = state['pose_net.conv_x.0.weight'], state['pose_backbone.conv1.weight']
        joints, vertices = head.shape[0], state['mesh_net.conv_x.0.weight'].shape[0]
        depth = state['pose_net.conv_z_1.0.weight'].shape[0] // head.shape[1]
    except KeyError as error:
        raise UserError(f'{path} is no snapshot of this network: it has no {error}') from error
    except (IndexError, ZeroDivisionError) as error:
        raise UserError(f'{path} is no snapshot of this network: its heads have other shapes') from error
    return {'human_model': 'mano' if vertices == 778 else 'smpl', 'stage': _guess_stage(state),
            'resnet_type': _guess_depth(state, path), 'resnet_width': stem.shape[0], 'head_width': head.shape[1],
            'output_hm_shape': [depth] * 3, 'input_img_shape': [depth * 4] * 2,
            'sigma': 2.5 * depth / PUBLISHED_DEPTH, 'guessed': True,
            'joint_num': joints, 'vertex_num': vertices}


def _guess_stage(state):
    """'param' if the regressor's BatchNorm has ever seen a batch."""
    seen = [value for name, value in state.items()
            if name.startswith('param_regressor.') and name.endswith('num_batches_tracked')]
    return 'param' if any(bool((value > 0).any()) for value in seen) else 'lixel'


def _guess_depth(state, path):
    layers = [sum(name.startswith(f'pose_backbone.layer{n}.') and name.endswith('.conv1.weight') for name in state)
              for n in (1, 2, 3, 4)]
    bottleneck = 'pose_backbone.layer1.0.conv3.weight' in state
    known = {depths: depth for depth, (block, depths) in LAYERS.items() if (block is Bottleneck) == bottleneck}
    if tuple(layers) not in known:
        raise UserError(f'{path} has a backbone of {layers} blocks, which is no ResNet known here')
    return known[tuple(layers)]


def check(meta, config, path):
    """UserError, in one line, when a snapshot holds another network than the configuration describes."""
    tell_guess(meta, path)
    wanted = config.resolved()
    odd = [f'{name} {_plain(meta[name])} there, {_plain(wanted[name])} here'
           for name in NETWORK if name in meta and _plain(meta[name]) != _plain(wanted[name])]
    if odd:
        raise UserError(f'{path} holds another network than the configuration asks for: {"; ".join(odd)}')


def adopt(meta, config, path, stage=None):
    """Set a configuration to the network and stage of a snapshot, for test and demo.

    Args:
        stage: 'lixel' or 'param' to ask for one; None: the snapshot's.
    Raises:
        UserError: the param stage of a snapshot that was trained in the lixel stage only.
    """
    tell_guess(meta, path)
    if stage == 'param' and meta['stage'] == 'lixel':
        raise UserError(f'{path} was trained in the lixel stage only, its parameter regressor knows nothing: '
                        'use --stage lixel, or train it: python main/train.py --stage param --continue')
    values = {name: meta[name] for name in NETWORK if name != 'human_model'}
    config.update({**values, 'body_model': meta['human_model'], 'stage': stage or meta['stage']}, source=f'{path}: ')


def step_within(content):
    """How many steps of the epoch under way a snapshot has seen; 0 for one that was written after an epoch."""
    return content.get('state', {}).get('step', 0)


def tell_unfinished(content, path):
    """A note for a snapshot from within an epoch, whose number is that of the epoch under way."""
    if step_within(content):
        print(f'note: {path} is from the middle of an epoch, after step {step_within(content)}', file=sys.stderr)


def tell_guess(meta, path):
    """A note for a snapshot without a record and of another size than the published ones: its sigma is a guess."""
    depth = meta['output_hm_shape'][0]
    if meta.get('guessed') and depth != PUBLISHED_DEPTH:
        print(f'note: {path} does not say with which sigma it was trained; for {depth} lixels {meta["sigma"]:g} is '
              'taken, as much of the heat map as in the published training', file=sys.stderr)


def _plain(value):
    return list(value) if isinstance(value, (list, tuple)) else value
