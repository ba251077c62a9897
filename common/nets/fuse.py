"""Batch normalisation folded into the layers before it, for inference."""
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


def prepare_for_inference(model, device):
    """The model on a device, in eval mode, without gradients and BatchNorms (see fold_batchnorm); in place."""
    return fold_batchnorm(model.eval()).eval().requires_grad_(False).to(device, memory_format=torch.channels_last)


def fold_batchnorm(model):
    """Folds every BatchNorm of a network in eval mode into the convolution or linear layer that it follows, in place.

    In eval mode a BatchNorm is an affine map per channel, so the network computes the same up to rounding, without
    passing over its feature maps for it. For inference only: the state dict is no longer the published one.

    Args:
        model: a network whose BatchNorms follow their layer in a Sequential, or are named bn1, bn2, ... after its
            conv1, conv2, ... as in torchvision's ResNets.
    Returns:
        model.
    """
    for module in list(model.modules()):
        children = dict(module.named_children())
        pairs = zip(children, list(children)[1:], strict=False) if isinstance(module, nn.Sequential) else (
            (name, name.replace('conv', 'bn')) for name in children if name.startswith('conv'))
        for layer, norm in pairs:
            if isinstance(children.get(norm), NORMS):
                setattr(module, layer, fold(children[layer], children[norm]))
                setattr(module, norm, nn.Identity())
    return model


def fold(layer, norm):
    """The layer with the BatchNorm that follows it folded in."""
    if isinstance(layer, nn.Linear):
        return fuse_linear_bn_eval(layer, norm)
    return fuse_conv_bn_eval(layer, norm, transpose=isinstance(layer, nn.ConvTranspose2d))
