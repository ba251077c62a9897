"""What is trained, by which optimiser, at which learning rate."""
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass
class Schedule:
    """The learning rate of one stage as a pure function of the position in it.

    kind 'step', the published one: lr / factor ** (number of dec_epochs <= epoch).
    kind 'cosine': half a cosine from lr to zero between start_epoch and end_epoch.
    Both rise linearly over the stage's first `warmup` iterations.
    """
    kind: str
    lr: float
    factor: float
    dec_epochs: list[int]
    start_epoch: int
    end_epoch: int
    steps_per_epoch: int
    warmup: int = 0

    def at(self, epoch: int, step: int = 0) -> float:
        """The learning rate of a step."""
        done = (epoch - self.start_epoch) * self.steps_per_epoch + step
        if self.kind == 'cosine':
            length = max(1, (self.end_epoch - self.start_epoch) * self.steps_per_epoch)
            rate = self.lr * 0.5 * (1 + math.cos(math.pi * min(1.0, done / length)))
        else:
            rate = self.decayed(epoch)
        if self.warmup:
            rate *= min(1.0, (done + 1) / self.warmup)
        return rate

    def decayed(self, epoch: int) -> float:
        """The rate of the 'step' schedule in an epoch."""
        return self.lr / self.factor ** sum(dec <= epoch for dec in self.dec_epochs)

    def table(self) -> str:
        """One entry per range of epochs of equal rate ('step'), or first and last rate ('cosine')."""
        if self.kind == 'cosine':
            last = self.end_epoch - 1
            return f'cosine from {self.lr:g} to 0 over epochs {self.start_epoch}..{last}'
        within = [epoch for epoch in self.dec_epochs if self.start_epoch < epoch < self.end_epoch]
        begins = [self.start_epoch, *within]
        ends = [*within, self.end_epoch]
        return ', '.join(f'epochs {begin}..{end - 1}: {self.decayed(begin):g}'
                         for begin, end in zip(begins, ends, strict=True))


def stage_schedule(config: Any, start_epoch: int, steps_per_epoch: int) -> Schedule:
    """The Schedule of a stage that began at an epoch, by a Config."""
    return Schedule(config.lr_schedule, config.lr, config.lr_dec_factor, config.lr_dec_epoch, start_epoch,
                    config.stage_end(start_epoch), steps_per_epoch, config.warmup_iters)


def freeze_and_collect(model: Any) -> list[nn.Parameter]:
    """Freeze all but `model.trainable_modules`, the property of main/model.py's Model; returns the parameters to train.

    The mesh backbone's stem is never run (the mesh branch starts from Pose2Feat's map), so it is left out too: under
    DistributedDataParallel a parameter without gradient would be waited for.
    """
    trained = set()
    for module in model.trainable_modules:
        trained |= {id(parameter) for parameter in module.parameters()}
    for name, parameter in model.named_parameters():
        unused = name.startswith(('mesh_backbone.conv1.', 'mesh_backbone.bn1.'))
        parameter.requires_grad_(id(parameter) in trained and not unused)
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def make_optimizer(name: str, parameters: list[nn.Parameter], lr: float,
                   weight_decay: float) -> torch.optim.Optimizer:
    """'adam' or 'adamw' with PyTorch's default betas, in the fused form. Decay spares biases and norms."""
    decayed = [parameter for parameter in parameters if parameter.ndim > 1]
    spared = [parameter for parameter in parameters if parameter.ndim <= 1]
    groups = [{'params': decayed, 'weight_decay': weight_decay},
              {'params': spared, 'weight_decay': 0.0}]
    groups = [group for group in groups if group['params']]
    if name == 'adamw':
        return torch.optim.AdamW(groups, lr=lr, fused=True)
    return torch.optim.Adam(groups, lr=lr, fused=True)
