"""Several devices without one: PyTorch's own DataParallel on CPU tensors, or on fake CUDA tensors.

DataParallel.forward, replicate, scatter, gather, parallel_apply with its threads, and their autograd functions are
PyTorch's. Replaced is what needs a driver: the four copies between devices (torch.nn.parallel.comm), streams, and the
checks that there are such devices.

    with simulated_devices() as sent:        # torch.device('cpu', 0), ('cpu', 1), ... are devices within
    with simulated_devices(FakeTensorMode(), watch):  # so are fake 'cuda' ones; `watch` is a context of every replica
"""
import builtins
import contextlib
import sys
import threading
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import torch
from torch.nn.parallel import _functions, comm

# the package's functions hide its modules of the same names
data_parallel: Any = sys.modules['torch.nn.parallel.data_parallel']
parallel_apply: Any = sys.modules['torch.nn.parallel.parallel_apply']


def cpu_devices(count: int) -> list[torch.device]:
    """So many devices, for use within simulated_devices()."""
    return [torch.device('cpu', number) for number in range(count)]


class Copies:
    """torch.nn.parallel.comm, with the numbers that it moves counted in `sent`."""

    def __init__(self, fake: Any) -> None:
        self.fake = fake
        self.sent: Counter[str] = Counter()

    def to(self, tensor: torch.Tensor, device: int) -> torch.Tensor:
        """A copy on a device."""
        if self.fake is None:
            return tensor.clone()
        return tensor.to(torch.device('cuda', device))

    def broadcast_coalesced(self, tensors: Sequence[torch.Tensor], devices: Sequence[int],
                            buffer_size: int = 0) -> list[list[torch.Tensor]]:
        """The first device's are the tensors themselves; copies are contiguous views of one buffer, as in PyTorch."""
        self.sent['weights'] += sum(tensor.numel() for tensor in tensors)
        copies = [[self.to(tensor.detach().contiguous(), device) for tensor in tensors] for device in devices[1:]]
        return [list(tensors), *copies]

    def reduce_add_coalesced(self, inputs: Sequence[Sequence[torch.Tensor]], destination: int = 0,
                             buffer_size: int = 0) -> tuple[torch.Tensor, ...]:
        """The sums of the devices' tensors."""
        sums = []
        for parts in zip(*inputs, strict=True):
            self.sent['gradients'] += parts[0].numel()
            total = parts[0].contiguous().clone(memory_format=torch.contiguous_format)
            for part in parts[1:]:
                total = total + part.to(total.device)
            sums.append(total)
        return tuple(sums)

    def scatter(self, tensor: torch.Tensor, devices: Sequence[int], chunk_sizes: Sequence[int] | None = None,
                dim: int = 0, streams: Any = None) -> tuple[torch.Tensor, ...]:
        """Each device's part of a tensor."""
        if chunk_sizes is None:
            chunks = tensor.chunk(len(devices), dim)
        else:
            chunks = tensor.split(list(chunk_sizes), dim)
        self.sent['batches'] += tensor.numel()
        return tuple(self.to(chunk, device) for chunk, device in zip(chunks, devices, strict=False))

    def gather(self, tensors: Sequence[torch.Tensor], dim: int = 0, destination: int = 0) -> torch.Tensor:
        """The devices' parts of a tensor, together."""
        self.sent['results'] += sum(tensor.numel() for tensor in tensors)
        if self.fake is not None:
            tensors = [self.to(tensor, destination) for tensor in tensors]
        return torch.cat(list(tensors), dim)


def all_but_the_cpu(checks: Any) -> bool:
    """The builtin `all`, for PyTorch's autograd functions, but CPU tensors pass their check that there are none."""
    if isinstance(checks, types.GeneratorType) and 'device' in checks.gi_code.co_names:
        return True
    return builtins.all(checks)


@contextlib.contextmanager
def simulated_devices(fake: Any = None, watch: Any = None) -> Iterator[Counter[str]]:
    """Let DataParallel run here.

    Args:
        fake: a FakeTensorMode, for fake CUDA tensors; None: CPU tensors.
        watch: a context of every replica.
    Yields:
        Counter of the numbers sent so far, by kind: weights, gradients, batches, results.
    """
    kind = 'cuda'
    if fake is None:
        kind = 'cpu'
    copies = Copies(fake)
    plain = data_parallel.DataParallel.__init__
    one_at_a_time = threading.Lock()

    def init(self: Any, *args: Any, **options: Any) -> None:
        plain(self, *args, **options)
        if fake is None:
            self.src_device_obj = torch.device('cpu')  # where CPU tensors are, whatever number they were sent to

    @contextlib.contextmanager
    def device_index(number: int) -> Iterator[None]:
        with one_at_a_time, fake or contextlib.nullcontext(), watch or contextlib.nullcontext():
            yield

    accelerator = types.SimpleNamespace(
        is_available=lambda: True, current_accelerator=lambda: torch.device(kind), device_index=device_index,
        current_stream=lambda device: contextlib.nullcontext())
    its_torch = types.SimpleNamespace(
        accelerator=accelerator, amp=torch.amp, device=torch.device, Stream=object,
        is_grad_enabled=torch.is_grad_enabled, is_autocast_enabled=torch.is_autocast_enabled,
        set_grad_enabled=torch.set_grad_enabled)
    with contextlib.ExitStack() as stack:
        def replace(place: Any, name: str, value: Any) -> None:
            stack.enter_context(mock.patch.object(place, name, value, create=True))

        for name in ('broadcast_coalesced', 'reduce_add_coalesced', 'scatter', 'gather'):
            replace(comm, name, getattr(copies, name))
        replace(_functions, 'all', all_but_the_cpu)
        replace(data_parallel, '_get_available_device_type', lambda: kind)
        replace(data_parallel, '_check_balance', lambda ids: None)
        replace(data_parallel.DataParallel, '__init__', init)
        replace(parallel_apply, 'torch', its_torch)
        yield copies.sent
