"""One process or several: under torchrun each process joins a group, else everything here is a no-op."""
import contextlib
import os
import re

import torch
import torch.distributed as dist

from common.errors import UserError

_control = None  # gloo group for small host-side messages, so that they never wait for a GPU


class LostProcess(UserError):
    """Another process of the run is gone, so that what needs all of them fails."""


def init(device):
    """Join torchrun's group (NCCL on GPUs, gloo on CPUs); nothing to do when not started by torchrun."""
    global _control
    if 'WORLD_SIZE' not in os.environ or 'LOCAL_RANK' not in os.environ or dist.is_initialized():
        return
    dist.init_process_group('nccl' if device.type == 'cuda' else 'gloo')
    _control = dist.new_group(backend='gloo')


def active():
    return dist.is_available() and dist.is_initialized()


def rank():
    return dist.get_rank() if active() else 0


def world_size():
    return dist.get_world_size() if active() else 1


def local_size():
    """Number of processes on this machine."""
    return int(os.environ['LOCAL_WORLD_SIZE']) if active() else 1


def is_main():
    """True in the one process that logs and writes files."""
    return rank() == 0


def any_rank(flag):
    """True when `flag` is true in any process: all of them get the same answer."""
    if not active():
        return bool(flag)
    value = torch.tensor(int(bool(flag)))
    dist.all_reduce(value, op=dist.ReduceOp.MAX, group=_control)
    return bool(value)


def mean(tensor):
    """Mean of a tensor over the processes (host tensors only)."""
    if active():
        dist.all_reduce(tensor, group=_control)
        tensor /= world_size()
    return tensor


def gather_objects(value):
    """[value of rank 0, of rank 1, ...] in the first process, None in the others."""
    if not active():
        return [value]
    got = [None] * world_size() if is_main() else None
    dist.gather_object(value, got, group=_control)
    return got


def barrier():
    if active():
        dist.barrier(group=_control)


@contextlib.contextmanager
def noticing_losses():
    """Turns what the backends say when another process is gone into LostProcess."""
    try:
        yield
    except RuntimeError as error:
        if not active() or not isinstance(error, dist.DistError) and not re.search('gloo|nccl', str(error), re.I):
            raise
        raise LostProcess('another process of this run has ended: its own message says why, without one it was killed; '
                          f'go on with --continue ({str(error).splitlines()[0]})') from error


def close():
    if active():
        dist.destroy_process_group()
