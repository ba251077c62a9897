"""Mixed precision and the two ways of using several devices, around a network that knows nothing of them."""
import contextlib
import inspect
import os
import shutil
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from common.devices import processes
from common.devices.replicas import Replicas
from common.errors import UserError

# DDP's option to copy the first process's buffers before every forward pass; newer versions of PyTorch renamed it.
BUFFER_SYNC = next(name for name in ('forward_sync_buffers', 'broadcast_buffers')
                   if name in inspect.signature(DistributedDataParallel.__init__).parameters)
TENSOR_CORES_FOR_FLOAT32 = 8  # compute capability: from there on TF32 convolutions, which want channels_last


class MemoryConfig(Protocol):
    """What use_channels_last needs of a configuration."""
    memory_format: str
    amp: str


def autocast_dtype(amp: str, device: torch.device) -> torch.dtype | None:
    """The dtype of `amp` ('none', 'bf16', 'fp16') on a device, or None: full precision.

    bf16 falls back to full precision on a CPU without fast bf16. UserError: fp16 on a CPU, bf16 on a GPU without it.
    """
    if amp == 'none':
        return None
    if device.type != 'cpu':
        if amp == 'fp16':
            return torch.float16
        if not torch.cuda.is_bf16_supported(including_emulation=False):
            raise UserError('amp=bf16: this GPU has no bf16 (it came with compute capability 8, Ampere): use amp=fp16')
        return torch.bfloat16
    if amp == 'fp16':
        raise UserError('amp=fp16 needs a GPU: use amp=bf16 or amp=none on a CPU')
    return torch.bfloat16 if torch.ops.mkldnn._is_mkldnn_bf16_supported() else None


def use_channels_last(config: MemoryConfig, device: torch.device) -> bool:
    """Whether images and weights are in the memory format channels_last on a device; auto: where it pays."""
    if config.memory_format != 'auto':
        return config.memory_format == 'channels_last'
    if device.type != 'cuda':
        return True
    major, _ = torch.cuda.get_device_capability(device)
    return config.amp != 'none' or major >= TENSOR_CORES_FOR_FLOAT32


def check_settings(devices: list[torch.device], amp: str, compiled: bool) -> None:
    """UserError for a mixed precision or a compilation that these devices of one process cannot do."""
    for device in devices:
        autocast_dtype(amp, device)
    if compiled and len(devices) > 1:  # the replicas would run the first one's compiled code on each other's weights
        raise UserError(f'compile=true cannot train on {len(devices)} GPUs in one process: start one process per GPU, '
                        f'torchrun --nproc_per_node {len(devices)} main/train.py ..., or leave it out')


class Autocast(nn.Module):
    """Runs a network's forward under autocast. A module, so that DataParallel's threads enter it too."""

    def __init__(self, module: nn.Module, dtype: torch.dtype | None) -> None:
        super().__init__()
        self.module = module
        self.dtype = dtype

    def forward(self, inputs: dict, targets: dict, meta_info: dict, mode: str) -> dict[str, torch.Tensor]:
        """The network's forward."""
        device = inputs['img'].device.type
        with torch.autocast(device, dtype=self.dtype, enabled=self.dtype is not None):
            return self.module(inputs, targets, meta_info, mode)


def wrap(model: nn.Module, devices: list[torch.device], amp: str = 'none', compiled: bool = False,
         sync_bn: bool = False) -> nn.Module:
    """The callable to train with; `model` itself stays what is saved and loaded.

    One process: Replicas (DataParallel) over several GPUs, nothing on one device. Under torchrun:
    DistributedDataParallel, for which `freeze_and_collect` must have been called: it waits for a gradient of every
    parameter that may have one.

    Args:
        model: the network, on the first device.
        devices: of this process.
        amp: 'none', 'bf16' or 'fp16'.
        compiled: compile the network.
        sync_bn: under DistributedDataParallel on GPUs, batch statistics over all processes.
    Raises:
        UserError: see check_settings; compile=true without a compiler.
    """
    check_settings(devices, amp, compiled)
    first = devices[0]
    if sync_bn and processes.active() and first.type == 'cuda':
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    if compiled:
        model = compiled_net(model, first)
    net = Autocast(model, autocast_dtype(amp, first))
    if processes.active() and any(parameter.requires_grad for parameter in net.parameters()):
        ids = [first.index] if first.type == 'cuda' else None
        # BatchNorm's averages need no broadcast: only the first process saves them, as DataParallel saves device 0's
        options: dict[str, Any] = {BUFFER_SYNC: False, 'gradient_as_bucket_view': True}
        return DistributedDataParallel(net, device_ids=ids, **options)
    if len(devices) > 1:
        return Replicas(net, [device.index for device in devices])
    return net


def compiled_net(model: nn.Module, device: torch.device) -> Any:
    """The network, compiled by torch at its first call. UserError: there is no compiler to do it with."""
    if device.type == 'cpu':
        compilers = [os.environ.get('CXX', 'g++')]
    else:
        compilers = [os.environ.get('CC', 'gcc'), 'clang']
    if not any(map(shutil.which, compilers)):
        raise UserError(f'compile=true needs a C++ compiler, and there is no {" or ".join(compilers)} '
                        'here: install one, or train without (compile=false)')
    return torch.compile(model)


def accumulating(net: nn.Module, last: bool) -> contextlib.AbstractContextManager:
    """Context of one backward pass: under DDP, gradients travel with the `last` batch of a step only."""
    if isinstance(net, DistributedDataParallel) and not last:
        return net.no_sync()
    return contextlib.nullcontext()


def to_network(batch: Any, net: nn.Module, device: torch.device) -> Any:
    """A batch where a network takes it: on its device; Replicas sends every device its part straight from the host."""
    if isinstance(net, Replicas):
        return batch
    return to_device(batch, device)


def to_device(batch: Any, device: torch.device) -> Any:
    """A nest of lists, dicts and tensors on a device; the copy does not wait when the memory is pinned."""
    if isinstance(batch, dict):
        return {name: to_device(value, device) for name, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [to_device(value, device) for value in batch]
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    return batch
