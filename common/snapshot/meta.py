"""What network a snapshot holds: recorded when it is written, guessed from the tensors of files without a record."""
import logging
import platform
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import torch

from common import __version__
from common.errors import UserError, shown
from common.human_model import HumanModel
from common.nets.resnet import LAYERS, Bottleneck

log = logging.getLogger(__name__)
STAGES = ('lixel', 'param')
# Settings that make the network: a snapshot and the configuration must agree on them.
NETWORK = ('human_model', 'resnet_type', 'resnet_width', 'mesh_width', 'head_width', 'input_img_shape',
           'output_hm_shape', 'sigma')
# Required fields of `meta` and their types; the shapes are lists of so many whole numbers.
TYPES: dict[str, Any] = {'human_model': str, 'stage': str, 'resnet_type': int, 'resnet_width': int,
                         'head_width': int, 'sigma': (int, float)}
SHAPES = {'input_img_shape': 2, 'output_hm_shape': 3}
OPTIONAL = {'stage_start': int, 'config': dict, 'versions': dict, 'mesh_width': int}
PUBLISHED_DEPTH = 64  # lixels
PUBLISHED_SIGMA = 2.5  # lixels, for heat maps of that depth
MANO_VERTICES = 778

Meta = dict[str, Any]


class NetworkConfig(Protocol):
    """What this module needs of a configuration."""
    stage: str

    @property
    def human_model(self) -> str: ...

    @property
    def is_hand(self) -> bool: ...

    def resolved(self) -> dict[str, Any]: ...

    def update(self, changes: dict[str, Any], source: str = '') -> None: ...

    def check_shapes(self, source: str = '') -> None: ...


def versions() -> dict[str, str]:
    """Versions of this project, of Python and of the packages that matter."""
    found = {'I2L-MeshNet': __version__, 'python': platform.python_version(),
             'cuda': str(torch.version.cuda)}
    for name in ('torch', 'torchvision', 'numpy', 'smplx', 'opencv-python-headless'):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # another distribution of OpenCV, a local build of torch
            found[name] = 'unknown'
    return found


def record(config: NetworkConfig, human_model: HumanModel, stage_start: int) -> Meta:
    """The `meta` of a snapshot, plain types only.

    Args:
        config: Config. human_model: of the network.
        stage_start: the epoch at which the stage began.
    """
    resolved = config.resolved()
    network = {name: resolved[name] for name in NETWORK}
    return {**network, 'stage': config.stage, 'stage_start': stage_start,
            'joint_num': human_model.joint_num, 'vertex_num': human_model.vertex_num,
            'versions': versions(), 'config': resolved}


def fault(meta: object) -> str | None:
    """What is wrong with the `meta` of a snapshot, as it was read from the file, or None."""
    if not isinstance(meta, dict):
        return "its 'meta' is not a dictionary"
    for key in (*TYPES, *SHAPES):
        if key not in meta:
            return f"its 'meta' lacks {key}"
    wrong = [key for key, kind in TYPES.items() if not isinstance(meta[key], kind)]
    wrong += [key for key, length in SHAPES.items() if not _is_shape(meta[key], length)]
    wrong += [key for key, kind in OPTIONAL.items() if not isinstance(meta.get(key, kind()), kind)]
    if meta['stage'] not in STAGES:
        wrong.append('stage')
    if wrong:
        return f"its 'meta' has an invalid {wrong[0]}"
    return None


def _is_shape(value: object, length: int) -> bool:
    if not isinstance(value, list) or len(value) != length:
        return False
    return all(isinstance(size, int) for size in value)


def describe(content: dict[str, Any], path: str | Path | None) -> Meta:
    """The `meta` of a snapshot; for files of the original, which have none, what the tensors tell, and `guessed`.

    Args:
        content: of the snapshot. path: for the message.
    Raises:
        UserError: it is of another network, or its record is: a forged one could ask for all the memory.
    """
    told = _of_tensors(content, path)
    if not content.get('meta'):
        return told
    meta = content['meta']
    for name in ('resnet_type', 'resnet_width', 'head_width', 'joint_num', 'vertex_num'):
        if meta.get(name, told[name]) != told[name]:
            raise UserError(f'{path}: its record says {name} {shown(meta[name])}, its tensors {told[name]}: it is '
                            'damaged, take another one')
    if meta['output_hm_shape'][0] != told['output_hm_shape'][0]:
        raise UserError(f'{path}: its record says heat maps of {shown(meta["output_hm_shape"])} lixels, its tensors '
                        f'{told["output_hm_shape"][0]} in depth: it is damaged, take another one')
    return meta


def _of_tensors(content: dict[str, Any], path: str | Path | None) -> Meta:
    """What the tensors of a snapshot tell of its network. UserError: they are of another."""
    state = {name.removeprefix('module.'): value for name, value in content['network'].items()}
    try:
        deepest = state['pose_backbone.layer4.0.conv2.weight']  # among the largest: it cannot be forged in a small file
        first = state['pose_net.deconv.0.weight']
        joints = state['pose_net.conv_x.0.weight'].shape[0]
        vertices = state['mesh_net.conv_x.0.weight'].shape[0]
        channels, head_width = first.shape[:2]
        depth = state['pose_net.conv_z_1.0.weight'].shape[0] // head_width
        width = deepest.shape[0] // 8
        if deepest.shape != (8 * width, 8 * width, 3, 3) or channels not in (8 * width, 32 * width):
            raise ValueError
    except KeyError as error:
        raise UserError(f'{path} is not a snapshot of this network: it has no {error}') from error
    except (IndexError, ValueError, ZeroDivisionError) as error:
        raise UserError(f'{path} is not a snapshot of this network: its tensors have other '
                        'shapes') from error
    body = 'mano' if vertices == MANO_VERTICES else 'smpl'
    sigma = PUBLISHED_SIGMA * depth / PUBLISHED_DEPTH
    return {'human_model': body, 'stage': _guess_stage(state), 'resnet_type': _guess_depth(state, path),
            'resnet_width': width, 'head_width': head_width, 'output_hm_shape': [depth] * 3,
            'input_img_shape': [depth * 4] * 2, 'sigma': sigma, 'guessed': True, 'joint_num': joints,
            'vertex_num': vertices}


def _guess_stage(state: dict[str, torch.Tensor]) -> str:
    """'param' if the regressor's BatchNorm has ever seen a batch."""
    for name, value in state.items():
        counter = name.startswith('param_regressor.') and name.endswith('num_batches_tracked')
        if counter and bool((value > 0).any()):
            return 'param'
    return 'lixel'


def _guess_depth(state: dict[str, torch.Tensor], path: str | Path | None) -> int:
    """The depth of the ResNet that has as many blocks in each of its stages."""
    counts = []
    for stage in (1, 2, 3, 4):
        prefix = f'pose_backbone.layer{stage}.'
        names = [name for name in state if name.startswith(prefix)]
        counts.append(sum(name.endswith('.conv1.weight') for name in names))
    bottleneck = 'pose_backbone.layer1.0.conv3.weight' in state
    for depth, (block, blocks) in LAYERS.items():
        if (block is Bottleneck) == bottleneck and list(blocks) == counts:
            return depth
    raise UserError(f'{path} has a backbone of {counts} blocks, which is not a ResNet known here')


def check(meta: Meta, config: NetworkConfig, path: str | Path) -> None:
    """UserError, in one line, when a snapshot holds another network than the configuration describes."""
    warn_of_guess(meta, path)
    wanted = config.resolved()
    different = [f'{name} {meta[name]} there, {wanted[name]} here'
                 for name in NETWORK if name in meta and meta[name] != wanted[name]]
    if different:
        raise UserError(f'{path} holds another network than the configuration asks for: '
                        f'{"; ".join(different)}')


def adopt(meta: Meta, config: NetworkConfig, path: str | Path, stage: str | None = None) -> None:
    """Set a configuration to the network and stage of a snapshot, for test and demo.

    Args:
        meta: of the snapshot. config: Config to change. path: of the snapshot, for the messages.
        stage: 'lixel' or 'param' to ask for one; None: the snapshot's.
    Raises:
        UserError: the param stage of a snapshot that was trained in the lixel stage only.
    """
    warn_of_guess(meta, path)
    if stage == 'param' and meta['stage'] == 'lixel':
        raise UserError(f'{path} was trained in the lixel stage only, its parameter regressor is '
                        'untrained: use --stage lixel, or train it: python main/train.py --stage param '
                        '--continue')
    changes = {name: meta.get(name, 0) for name in NETWORK if name != 'human_model'}  # older files: no mesh_width
    changes |= {'body_model': meta['human_model'], 'stage': stage or meta['stage']}
    config.update(changes, source=f'{path}: ')
    config.check_shapes(source=f'{path}: ')


def trained_on(meta: Meta) -> set[str]:
    """The data sets that a network was trained on, as far as its `meta` says."""
    config = meta.get('config', {})
    names: set[str] = set()
    for key in ('trainset_3d', 'trainset_2d'):
        if isinstance(config.get(key), list):
            names |= {str(name) for name in config[key]}
    return names


def has_trained_maps(meta: Meta) -> bool:
    """Whether the heat maps of a network's joints were trained to be Gaussians, as far as its `meta` says."""
    weight = meta.get('config', {}).get('heatmap_loss_weight', 0)
    return isinstance(weight, (int, float)) and weight > 0


def step_within(content: dict[str, Any]) -> int:
    """How many steps of the epoch under way a snapshot has seen; 0 for one that was written after an epoch."""
    return content.get('state', {}).get('step', 0)


def warn_of_other_kind(asked: NetworkConfig, adopted: NetworkConfig, path: str | Path) -> None:
    """Warn of a snapshot for hands where the configuration is for bodies, or the other way round.

    Args:
        asked: Config as the user chose it. adopted: with what the snapshot is. path: of the snapshot.
    """
    if asked.is_hand != adopted.is_hand:
        log.warning('%s is of the body model %s and is tested with it, although --cfg or the settings choose %s', path,
                    adopted.human_model, asked.human_model)


def warn_of_unfinished(content: dict[str, Any], path: str | Path) -> None:
    """Warn of a snapshot from within an epoch, whose number is that of the epoch under way."""
    if step_within(content):
        log.warning('%s is from the middle of an epoch, after step %d', path, step_within(content))


def warn_of_guess(meta: Meta, path: str | Path) -> None:
    """Warn of a snapshot without a record and of another size than the published ones: its sigma is a guess."""
    if meta.get('guessed') and meta['output_hm_shape'][0] != PUBLISHED_DEPTH:
        log.warning('%s does not record sigma; using %g lixels (the published ratio %g / %d)', path,
                    meta['sigma'], PUBLISHED_SIGMA, PUBLISHED_DEPTH)
