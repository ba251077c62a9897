"""One process or several: under torchrun each process joins a group, else everything here does nothing."""
import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from common.errors import UserError, shown

_control: Any = None  # gloo group for small host-side messages, so that they never wait for a GPU


class LostProcess(UserError):
    """Another process of the run has ended, so that what needs all of them fails."""


def init(device: torch.device) -> None:
    """Join torchrun's group (NCCL on GPUs, gloo on CPUs); does nothing when not started by torchrun."""
    global _control
    if 'WORLD_SIZE' not in os.environ or 'LOCAL_RANK' not in os.environ or dist.is_initialized():
        return
    backend = 'nccl' if device.type == 'cuda' else 'gloo'
    dist.init_process_group(backend)
    _control = dist.new_group(backend='gloo')


def active() -> bool:
    """Whether this process is one of a group."""
    return dist.is_available() and dist.is_initialized()


def rank() -> int:
    """Number of this process, from 0."""
    return dist.get_rank() if active() else 0


def world_size() -> int:
    """Number of processes on all machines."""
    return dist.get_world_size() if active() else 1


def local_size() -> int:
    """Number of processes on this machine."""
    return int(os.environ['LOCAL_WORLD_SIZE']) if active() else 1


def is_main() -> bool:
    """True in the one process that logs and writes files."""
    return rank() == 0


def largest(number: int) -> int:
    """The largest of the processes' numbers: all of them get the same answer."""
    if not active():
        return number
    value = torch.tensor(number)
    dist.all_reduce(value, op=dist.ReduceOp.MAX, group=_control)
    return int(value)


def mean(tensor: torch.Tensor) -> torch.Tensor:
    """Mean of a tensor over the processes (host tensors only)."""
    if active():
        dist.all_reduce(tensor, group=_control)
        tensor /= world_size()
    return tensor


def gather_objects(value: Any) -> list[Any] | None:
    """[value of rank 0, of rank 1, ...] in the first process, None in the others."""
    if not active():
        return [value]
    gathered: list[Any] | None = None
    if is_main():
        gathered = [None] * world_size()
    dist.gather_object(value, gathered, group=_control)
    return gathered


def require_same(values: dict[str, Any]) -> None:
    """Wait for all processes, and compare what must be the same in them.

    Args:
        values: {what it is, for the message: plain value}; the same names in every process.
    Raises:
        UserError: in all processes, when they differ; names what differs.
    """
    if not active():
        return
    gathered: list[Any] = [None] * world_size()
    dist.all_gather_object(gathered, values, group=_control)
    for name in gathered[0]:
        of_ranks = [other[name] for other in gathered]
        for number, value in enumerate(of_ranks):
            if value != of_ranks[0]:
                raise UserError(f'the processes of this run differ in {name}: {shown(of_ranks[0])} in process 0, '
                                f'{shown(value)} in process {number}: all need the same command, data and snapshots '
                                '(several machines: an output_dir that all of them share)')


def barrier() -> None:
    """Wait for all processes."""
    if active():
        dist.barrier(group=_control)


def whole_after_loss() -> bool:
    """Whether the network and the optimiser are whole, and can be read, once another process is lost.

    With gloo the step under way raises an error before it changes anything. NCCL's work runs on beside the program: a
    step may have been made with gradients of some of the processes, and reading them may wait for ever.
    """
    return not active() or dist.get_backend() == 'gloo'


@contextlib.contextmanager
def noticing_losses() -> Iterator[None]:
    """Turns what the backends say when another process has ended into LostProcess."""
    try:
        yield
    except RuntimeError as error:
        # gloo raises a plain RuntimeError, which only its text tells from others
        from_backend = isinstance(error, dist.DistError) or re.search('gloo|nccl', str(error), re.I)
        if not active() or not from_backend:
            raise
        raise LostProcess('another process exited (see its error above; if none, it was killed). Resume with '
                          f'--continue ({str(error).splitlines()[0]})') from error


def close() -> None:
    """Leave the group. Only after success: with NCCL it waits for the others, which may wait for this process."""
    if active():
        dist.destroy_process_group()
