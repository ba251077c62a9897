"""A narrow network with all the parts of the published one, and random samples: the same on every device."""
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from common.human_model import get_human_model
from common.train.loop import Batch
from common.train.optim import freeze_and_collect
from main.config import Config
from main.model import Model, get_model
from tool.bench.network import random_batch

NARROW = {'resnet_type': 18, 'resnet_width': 4, 'head_width': 4, 'input_img_shape': [32, 32],
          'output_hm_shape': [8, 8, 8], 'sigma': 0.5, 'pretrained_backbone': False, 'body_model': 'open_body'}
# Parts of the code that the others do not use.
CASES: dict[str, dict[str, Any]] = {'lixel': {'heatmap_loss_weight': 1.0}, 'param': {'stage': 'param'},
                                    'hand': {'body_model': 'open_hand'}}


@dataclass
class Pass:
    """Means of the losses, and gradients of one forward and backward pass, on the CPU."""
    losses: torch.Tensor
    gradients: dict[str, torch.Tensor]


def narrow_config(changes: dict[str, Any]) -> Config:
    """The settings of the narrow network, with some changed."""
    config = Config()
    config.update({**NARROW, **changes})
    return config


def narrow_model(config: Config, dtype: torch.dtype, device: torch.device, split: bool = False) -> Model:
    """The network in train mode.

    Args:
        config: from narrow_config(). dtype: of its weights. device: where to.
        split: BatchNorm does not look at the batch, which may then be split in any way.
    """
    torch.manual_seed(0)
    model = get_model(config, get_human_model(config.human_model), 'train').place(device, False).to(dtype).train()
    if split:
        for module in model.modules():
            if isinstance(module, _BatchNorm):
                module.eval()
    freeze_and_collect(model)
    return model


def samples(config: Config, first: int, last: int, dtype: torch.dtype, device: torch.device) -> Batch:
    """The samples `first` to `last` - 1 of an endless random batch."""
    body = get_human_model(config.human_model)
    parts = []
    for number in range(first, last):
        torch.manual_seed(number + 1)
        parts.append(random_batch(body, config, 1, torch.device('cpu')))
    joined = []
    for part in zip(*parts, strict=True):
        joined.append({key: torch.cat([one[key] for one in part]).to(device, dtype) for key in part[0]})
    inputs, targets, meta_info = joined
    return inputs, targets, meta_info


def one_pass(net: nn.Module, model: Model, batch: Batch, scale: float = 1.0) -> Pass:
    """Forward and backward.

    Args:
        net: what is called: the model or a wrapper of it. model: whose gradients are read.
        batch: the samples. scale: of the loss while gradients are computed, for small ones in half precision.
    """
    means = [loss.mean() for loss in net(*batch, 'train').values()]
    (sum(means) * scale).backward()
    gradients = {name: parameter.grad.cpu() / scale for name, parameter in model.named_parameters()
                 if parameter.grad is not None}
    return Pass(torch.stack(means).detach().double().cpu(), gradients)


def differences(got: Pass, want: Pass) -> tuple[float, float]:
    """How much losses and gradients differ, each against its largest value."""
    if got.gradients.keys() != want.gradients.keys():
        return float('inf'), float('inf')
    loss = (got.losses - want.losses).abs().max() / want.losses.abs().max()
    largest = max(value.abs().max() for value in want.gradients.values())
    gradient = max((got.gradients[name] - value).abs().max() for name, value in want.gradients.items())
    return float(loss), float(gradient / largest)
