"""DataParallel for this network: the copies on the other devices stay there, and get only what is trained."""
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DataParallel
from torch.nn.parallel._functions import Broadcast


class Replicas(DataParallel):
    """DataParallel that keeps its replicas.

    PyTorch's sends all parameters and buffers to every device in every forward pass. Here they are sent once, and from
    then on the trained parameters alone: none in a test, the regressor's in the param stage. Losses, gradients and what
    is saved are the same: of BatchNorm's averages, those of device 0 count, and they are the network's own.

    The frozen parameters must not change while this wrapper is in use; the trainer wraps anew for every phase.
    """

    def __init__(self, module: nn.Module, device_ids: Sequence[int]) -> None:
        super().__init__(module, device_ids)
        self.kept: list[list[nn.Module]] = []  # the modules of each replica, in the order of module.modules()

    def replicate(self, module: nn.Module, device_ids: Sequence[int | torch.device]) -> list[nn.Module]:
        """The first len(device_ids) replicas, with the present values of the trained parameters."""
        if not self.kept:
            with torch.no_grad():
                replicas = super().replicate(module, self.device_ids)
            self.kept = [list(replica.modules()) for replica in replicas]
        originals = list(module.modules())
        for copies in self.kept:
            for original, copy in zip(originals, copies, strict=True):
                copy.training = original.training
        self.send_trained(originals, device_ids)
        return [copies[0] for copies in self.kept[:len(device_ids)]]

    def send_trained(self, originals: list[nn.Module], device_ids: Sequence[int | torch.device]) -> None:
        """Give the replicas copies of the trained parameters, through which gradients come back."""
        places = []
        trained = []
        for index, original in enumerate(originals):
            for name, parameter in original.named_parameters(recurse=False):
                if parameter.requires_grad:
                    places.append((index, name))
                    trained.append(parameter)
        if not trained:
            return
        sent: Sequence[Any] = Broadcast.apply(device_ids, *trained)
        for device in range(len(device_ids)):
            values = sent[device * len(trained):(device + 1) * len(trained)]
            for (index, name), value in zip(places, values, strict=True):
                copy = self.kept[device][index]
                copy._parameters.pop(name, None)  # a copy is no parameter: it has no gradient of its own
                setattr(copy, name, value)
