"""Several devices without one: PyTorch's own DataParallel on CPU tensors, or on fake CUDA tensors.

DataParallel.forward, replicate, scatter, gather, parallel_apply with its threads, and their autograd functions are
PyTorch's. Replaced is what needs a driver: the four copies between devices (torch.nn.parallel.comm), streams, and the
checks that there are such devices.

    sent = simulate(monkeypatch)              # torch.device('cpu', 0), ('cpu', 1), ... are devices from here on
    simulate(monkeypatch, FakeTensorMode(), watch)  # so are fake 'cuda' ones; `watch` is a context of every replica
"""
import builtins
import contextlib
import sys
import threading
import types
from collections import Counter

import torch
from torch.nn.parallel import _functions, comm

# the package's functions hide its modules of the same names
data_parallel = sys.modules['torch.nn.parallel.data_parallel']
parallel_apply = sys.modules['torch.nn.parallel.parallel_apply']


def cpu_devices(count):
    return [torch.device('cpu', number) for number in range(count)]


class Copies:
    """torch.nn.parallel.comm, with the numbers that it moves counted in `sent`."""

    def __init__(self, fake):
        self.fake = fake
        self.sent = Counter()

    def to(self, tensor, device):
        if self.fake is None:
            return tensor.clone()
        return tensor.to(torch.device('cuda', device))

    def broadcast_coalesced(self, tensors, devices, buffer_size=0):
        """The first device's are the tensors themselves; copies are contiguous views of one buffer, as in PyTorch."""
        self.sent['weights'] += sum(tensor.numel() for tensor in tensors)
        copies = [[self.to(tensor.detach().contiguous(), device) for tensor in tensors] for device in devices[1:]]
        return [list(tensors), *copies]

    def reduce_add_coalesced(self, inputs, destination=0, buffer_size=0):
        sums = []
        for parts in zip(*inputs, strict=True):
            self.sent['gradients'] += parts[0].numel()
            total = parts[0].contiguous().clone(memory_format=torch.contiguous_format)
            for part in parts[1:]:
                total = total + part.to(total.device)
            sums.append(total)
        return tuple(sums)

    def scatter(self, tensor, devices=None, chunk_sizes=None, dim=0, streams=None):
        if chunk_sizes is None:
            chunks = tensor.chunk(len(devices), dim)
        else:
            chunks = tensor.split(list(chunk_sizes), dim)
        self.sent['batches'] += tensor.numel()
        return tuple(self.to(chunk, device) for chunk, device in zip(chunks, devices, strict=False))

    def gather(self, tensors, dim=0, destination=None):
        self.sent['results'] += sum(tensor.numel() for tensor in tensors)
        if self.fake is not None:
            tensors = [tensor.to(torch.device('cuda', destination)) for tensor in tensors]
        return torch.cat(list(tensors), dim)


def all_but_the_cpu(checks):
    """The builtin, for PyTorch's autograd functions, but CPU tensors pass their check that there are none."""
    if isinstance(checks, types.GeneratorType) and 'device' in checks.gi_code.co_names:
        return True
    return builtins.all(checks)


def simulate(monkeypatch, fake=None, watch=None):
    """Let DataParallel run here, on CPU tensors or on those of a FakeTensorMode; replicas are within `watch`.

    Returns:
        Counter of the numbers sent so far, by kind: weights, gradients, batches, results.
    """
    kind = 'cpu' if fake is None else 'cuda'
    copies = Copies(fake)
    for name in ('broadcast_coalesced', 'reduce_add_coalesced', 'scatter', 'gather'):
        monkeypatch.setattr(comm, name, getattr(copies, name))
    monkeypatch.setattr(_functions, 'all', all_but_the_cpu, raising=False)
    monkeypatch.setattr(data_parallel, '_get_available_device_type', lambda: kind)
    monkeypatch.setattr(data_parallel, '_check_balance', lambda ids: None)
    plain = data_parallel.DataParallel.__init__

    def init(self, *args, **options):
        plain(self, *args, **options)
        if fake is None:
            self.src_device_obj = torch.device('cpu')  # where CPU tensors are, whatever number they were sent to

    monkeypatch.setattr(data_parallel.DataParallel, '__init__', init)
    one_at_a_time = threading.Lock()

    @contextlib.contextmanager
    def device_index(number):
        with one_at_a_time, fake or contextlib.nullcontext(), watch or contextlib.nullcontext():
            yield

    accelerator = types.SimpleNamespace(
        is_available=lambda: True, current_accelerator=lambda: torch.device(kind), device_index=device_index,
        current_stream=lambda device: contextlib.nullcontext())
    monkeypatch.setattr(parallel_apply, 'torch', types.SimpleNamespace(
        accelerator=accelerator, amp=torch.amp, device=torch.device, Stream=object,
        is_grad_enabled=torch.is_grad_enabled,
        is_autocast_enabled=torch.is_autocast_enabled, set_grad_enabled=torch.set_grad_enabled))
    return copies.sent
