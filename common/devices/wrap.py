"""Mixed precision and the two ways of using several devices, around a network that knows of neither."""
import contextlib
import inspect
import os
import shutil

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from common.devices import processes
from common.errors import UserError

# DDP's option to copy the first process's buffers before every forward pass; newer versions of PyTorch renamed it.
BUFFER_SYNC = next(name for name in ('forward_sync_buffers', 'broadcast_buffers')
                   if name in inspect.signature(DistributedDataParallel.__init__).parameters)


def autocast_dtype(amp, device):
    """The dtype of `amp` ('none', 'bf16', 'fp16') on a device, or None: full precision.

    bf16 falls back to full precision on a CPU without fast bf16. UserError: fp16 on a CPU.
    """
    if amp == 'none':
        return None
    if device.type == 'cpu':
        if amp == 'fp16':
            raise UserError('amp=fp16 needs a GPU: use amp=bf16 or amp=none on a CPU')
        return torch.bfloat16 if torch.ops.mkldnn._is_mkldnn_bf16_supported() else None
    return torch.bfloat16 if amp == 'bf16' else torch.float16


class Autocast(nn.Module):
    """Runs a network's forward under autocast. A module, so that DataParallel's threads enter it too."""

    def __init__(self, module, dtype):
        super().__init__()
        self.module, self.dtype = module, dtype

    def forward(self, inputs, targets, meta_info, mode):
        with torch.autocast(inputs['img'].device.type, dtype=self.dtype, enabled=self.dtype is not None):
            return self.module(inputs, targets, meta_info, mode)


def wrap(model, devices, amp='none', compiled=False, sync_bn=False):
    """The callable to train with; `model` itself stays what is saved and loaded.

    One process: DataParallel over several GPUs, nothing on one device. Under torchrun: DistributedDataParallel, for
    which `freeze_and_collect` must have been called: it waits for a gradient of every parameter that may have one.
    """
    if sync_bn and processes.active() and devices[0].type == 'cuda':
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    net = Autocast(compiled_net(model, devices[0]) if compiled else model, autocast_dtype(amp, devices[0]))
    if processes.active() and any(p.requires_grad for p in net.parameters()):
        ids = [devices[0].index] if devices[0].type == 'cuda' else None
        # BatchNorm's averages need no broadcast: only the first process saves them, as DataParallel saves device 0's
        return DistributedDataParallel(net, device_ids=ids, **{BUFFER_SYNC: False})
    return DataParallel(net, [d.index for d in devices]) if len(devices) > 1 else net


def compiled_net(model, device):
    """The network compiled by torch, at its first call. UserError: there is no compiler to do it with."""
    compilers = [os.environ.get('CXX', 'g++')] if device.type == 'cpu' else [os.environ.get('CC', 'gcc'), 'clang']
    if not any(map(shutil.which, compilers)):
        raise UserError(f'compile=true needs a C++ compiler, and there is no {" or ".join(compilers)} here: install '
                        'one, or train without (compile=false)')
    return torch.compile(model)


def accumulating(net, last):
    """Context of one backward pass: under DDP, gradients travel with the `last` batch of a step only."""
    return contextlib.nullcontext() if last or not isinstance(net, DistributedDataParallel) else net.no_sync()


def to_device(batch, device):
    """A nest of dicts and tensors on a device; the copy does not wait when the memory is pinned."""
    if isinstance(batch, dict):
        return {name: to_device(value, device) for name, value in batch.items()}
    return batch.to(device, non_blocking=True) if isinstance(batch, torch.Tensor) else batch
