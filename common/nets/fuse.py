"""Batch normalisation folded into the layers before it, for inference."""
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval


def prepare_for_inference(model: Any, device: torch.device | str, channels_last: bool = True) -> nn.Module:
    """The model on a device, in eval mode, without gradients and BatchNorms (see fold_batchnorm); in place.

    Args:
        model: main/model.py's Model. device: where to. channels_last: memory format of weights and images.
    """
    fold_batchnorm(model.eval()).eval().requires_grad_(False)
    return model.place(device, channels_last)


def fold_batchnorm(model: nn.Module) -> nn.Module:
    """Fold every BatchNorm of a network in eval mode into the convolution or linear layer that it follows, in place.

    In eval mode a BatchNorm is an affine map per channel, so the network computes the same up to rounding, without
    passing over its feature maps for it. For inference only: the state dict is no longer the published one.

    Args:
        model: A network whose BatchNorms follow their layer in a Sequential, or are named bn1, bn2, ... after its
            conv1, conv2, ... as in torchvision's ResNets.
    Returns:
        model.
    """
    for module in list(model.modules()):
        children = dict(module.named_children())
        for layer, norm in _neighbours(module, list(children)):
            batch_norm = children.get(norm)
            if isinstance(batch_norm, nn.BatchNorm1d | nn.BatchNorm2d):
                setattr(module, layer, fold(children[layer], batch_norm))
                setattr(module, norm, nn.Identity())
    return model


def _neighbours(module: nn.Module, names: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs of child names: a layer, and the one that its output goes to."""
    if isinstance(module, nn.Sequential):
        yield from zip(names, names[1:], strict=False)
        return
    for name in names:
        if name.startswith('conv'):
            yield name, name.replace('conv', 'bn')


def fold(layer: nn.Module, norm: nn.BatchNorm1d | nn.BatchNorm2d) -> nn.Module:
    """The layer with the BatchNorm that follows it folded in."""
    if isinstance(layer, nn.Linear):
        return fuse_linear_bn_eval(layer, norm)
    assert isinstance(layer, nn.Conv1d | nn.Conv2d | nn.ConvTranspose2d)
    return fuse_conv_bn_eval(layer, norm, transpose=isinstance(layer, nn.ConvTranspose2d))
