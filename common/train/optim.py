"""What is trained, by which optimiser, at which learning rate."""
import math
from dataclasses import dataclass

import torch


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

    def at(self, epoch, step=0):
        done = (epoch - self.start_epoch) * self.steps_per_epoch + step
        rate = self.lr
        if self.kind == 'cosine':
            length = max(1, (self.end_epoch - self.start_epoch) * self.steps_per_epoch)
            rate *= 0.5 * (1 + math.cos(math.pi * min(1.0, done / length)))
        else:
            rate /= self.factor ** sum(dec <= epoch for dec in self.dec_epochs)
        return rate * min(1.0, (done + 1) / self.warmup) if self.warmup else rate

    def table(self):
        """One line per epoch range of equal rate ('step'), or first and last rate ('cosine')."""
        if self.kind == 'cosine':
            return f'cosine from {self.lr:g} to 0 over epochs {self.start_epoch}..{self.end_epoch - 1}'
        edges = [self.start_epoch, *(e for e in self.dec_epochs if self.start_epoch < e < self.end_epoch)]
        ends = [*edges[1:], self.end_epoch]
        return ', '.join(f'epochs {a}..{b - 1}: {self.lr / self.factor ** sum(d <= a for d in self.dec_epochs):g}'
                         for a, b in zip(edges, ends, strict=True))


def freeze_and_collect(model):
    """Freeze all but `model.trainable_modules`; returns the parameters to train.

    The mesh backbone's stem is never run (the mesh branch starts from Pose2Feat's map), so it is left out too: under
    DistributedDataParallel a parameter without gradient would be waited for.
    """
    trained = {id(p) for module in model.trainable_modules for p in module.parameters()}
    for name, parameter in model.named_parameters():
        unused = name.startswith(('mesh_backbone.conv1.', 'mesh_backbone.bn1.'))
        parameter.requires_grad_(id(parameter) in trained and not unused)
    return [p for p in model.parameters() if p.requires_grad]


def make_optimizer(name, parameters, lr, weight_decay):
    """'adam' or 'adamw' with PyTorch's default betas, in the fused form. Decay spares biases and norms."""
    decayed = [p for p in parameters if p.ndim > 1]
    spared = [p for p in parameters if p.ndim <= 1]
    groups = [{'params': decayed, 'weight_decay': weight_decay}, {'params': spared, 'weight_decay': 0.0}]
    kind = torch.optim.AdamW if name == 'adamw' else torch.optim.Adam
    return kind([g for g in groups if g['params']], lr=lr, fused=True)
