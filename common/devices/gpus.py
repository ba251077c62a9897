"""Which GPUs a process uses, chosen by CUDA_VISIBLE_DEVICES before CUDA is initialised."""
import logging
import os
import subprocess
import sys
from pathlib import Path

import torch

from common.errors import UserError, shown

log = logging.getLogger(__name__)
_VISIBLE_AT_START = os.environ.get('CUDA_VISIBLE_DEVICES')  # set by SLURM and the like: ids are of it
DEVICES = Path('/dev')
DRIVERS = ('nvidia*', 'nvhost*', 'nvmap', 'dxg', 'kfd')  # NVIDIA's, those of Jetson boards, of WSL, and AMD's
NARROW = 16  # the backward pass of narrower convolutions crashes in oneDNN (torch 2.14): heap corruption at 256 pixels
LONGEST_ID = 4  # digits: a list of more GPUs would only take time and memory
_nvml = True  # until it fails once
# One operation on every visible GPU: fails for a driver that is too old, and a GPU that PyTorch has no kernels for.
TRIAL = """import torch
for i in range(torch.cuda.device_count()):
    assert torch.zeros(2, device=torch.device('cuda', i)).add_(1).sum().item() == 2
"""


def parse_gpu_ids(text: str) -> list[int]:
    """'0' -> [0]; '0,2' -> [0, 2]; '0-3' -> [0, 1, 2, 3]; 'cpu' -> []. UserError: anything else."""
    if text.strip() == 'cpu':
        return []
    ids: list[int] = []
    for part in text.split(','):
        first, dash, last = part.strip().partition('-')
        if not dash:
            last = first
        if not _is_id(first) or not _is_id(last) or int(first) > int(last):
            raise _bad_ids(text)
        ids += range(int(first), int(last) + 1)
    if len(set(ids)) != len(ids):
        raise _bad_ids(text)
    return ids


def _is_id(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= LONGEST_ID


def _bad_ids(text: str) -> UserError:
    return UserError(f'--gpu "{shown(text)}": write ids such as 0, 0,2 or 0-3, or cpu')


def select_gpus(text: str | None = None) -> None:
    """Make the GPUs that `text` names the only visible ones: cuda:0, cuda:1, ... in the order given.

    None: GPU 0, or the CPU where there is none. Under torchrun each process takes the id of its local rank.
    Without any CUDA device: one warning, then the CPU. UserError: bad text, an id that is not there, or a GPU that
    the installed PyTorch cannot use.
    """
    under_torchrun = 'LOCAL_RANK' in os.environ
    asked = text is not None
    if text is None:
        text = f'0-{int(os.environ["LOCAL_WORLD_SIZE"]) - 1}' if under_torchrun else '0'
    ids = parse_gpu_ids(text)
    if ids and under_torchrun:
        ids = [_id_of_this_rank(ids, text)]
    os.environ.setdefault('CUDA_DEVICE_ORDER', 'PCI_BUS_ID')  # the numbers that nvidia-smi shows
    wanted = _visible_names(ids)
    os.environ['CUDA_VISIBLE_DEVICES'] = ','.join(wanted)  # without NVML the first count is final, so only once
    found = torch.cuda.device_count() if ids else 0
    if len(wanted) == found == len(ids):
        if ids:
            _try_gpus(text)
        return
    there = _count_gpus()
    if there == 1:
        raise UserError(f'--gpu {text}: this machine shows 1 GPU, id 0')
    if there:
        names = ', '.join(map(str, range(there)))
        raise UserError(f'--gpu {text}: this machine shows {there} GPUs, ids {names}')
    os.environ['CUDA_VISIBLE_DEVICES'] = ''
    if asked:
        log.warning('--gpu %s: no CUDA device is available here, running on the CPU', text)


def _visible_names(ids: list[int]) -> list[str]:
    """What CUDA_VISIBLE_DEVICES calls the GPUs of these ids; ids that are not there are left out."""
    if _VISIBLE_AT_START is None:
        return [str(i) for i in ids]
    names = _VISIBLE_AT_START.split(',') if _VISIBLE_AT_START else []  # '' hides every GPU
    return [names[i] for i in ids if i < len(names)]


def _id_of_this_rank(ids: list[int], text: str) -> int:
    """The one of the ids in `text` that this process of torchrun takes."""
    rank = int(os.environ['LOCAL_RANK'])
    started = int(os.environ['LOCAL_WORLD_SIZE'])
    if rank >= len(ids):
        raise UserError(f'--gpu {text} names {len(ids)} GPUs, but torchrun started {started} processes here: make '
                        '--nproc_per_node the same')
    if rank == 0 and len(ids) > started:
        log.warning('--gpu %s names %d GPUs, but torchrun started %d processes here: the others stay idle', text,
                    len(ids), started)
    return ids[rank]


def _try_gpus(text: str) -> None:
    """UserError: one of the visible GPUs cannot run an operation of the installed PyTorch.

    Tried in a process of its own: data sets may fork later, and must not inherit a CUDA context.
    """
    done = subprocess.run([sys.executable, '-c', TRIAL], capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f'exit code {done.returncode}']
        faults = [line for line in lines if 'Error' in line]
        fault = shown((faults or lines)[-1], 200)
        raise UserError(f'--gpu {text}: PyTorch {torch.__version__} (CUDA {torch.version.cuda}) cannot use this GPU '
                        f'({fault}): install the build that https://pytorch.org names for its driver and generation, '
                        'update the driver, or use --gpu cpu')


def may_have_gpus() -> bool:
    """False where there can be no GPU, found out at no cost: a PyTorch without CUDA, all hidden, or no driver."""
    if torch.version.cuda is None and torch.version.hip is None or _VISIBLE_AT_START == '':
        return False
    if not sys.platform.startswith('linux'):
        return True
    return any(any(DEVICES.glob(pattern)) for pattern in DRIVERS)


def _count_gpus() -> int:
    """How many GPUs there are when all are visible; asked in a process of its own, so that ours stays uninitialised.

    That process takes two seconds, which a machine without a driver need not wait.
    """
    if not may_have_gpus():
        return 0
    env = dict(os.environ)
    env.pop('CUDA_VISIBLE_DEVICES', None)
    if _VISIBLE_AT_START is not None:
        env['CUDA_VISIBLE_DEVICES'] = _VISIBLE_AT_START
    done = subprocess.run([sys.executable, '-c', 'import torch; print(torch.cuda.device_count())'],
                          env=env, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else 0


def devices() -> list[torch.device]:
    """The devices this process trains on: its visible GPUs, or the CPU."""
    gpus = [torch.device('cuda', i) for i in range(torch.cuda.device_count())]
    return gpus or [torch.device('cpu')]


def tune(precision: str, width: int = NARROW) -> None:
    """The fastest convolutions that work, and how exact matrix products in float32 are.

    Args:
        precision: 'high' (TF32 where the GPU has it) or 'highest'.
        width: channels of the narrowest convolutions that are trained.
    """
    torch.backends.mkldnn.enabled = width >= NARROW  # type: ignore[assignment]  # a property of the module
    if torch.cuda.is_available():
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision(precision)


def load_report() -> str:
    """'gpu0 97% 10.2GB gpu1 ...' for the log line: load and peak memory of this process's GPUs.

    The numbers are those of nvidia-smi. '' on the CPU; the load is left out where NVML is missing.
    """
    names = os.environ.get('CUDA_VISIBLE_DEVICES', '').split(',')
    parts = []
    for i in range(torch.cuda.device_count()):
        name = str(i)
        if i < len(names) and names[i]:
            name = names[i]
        memory = torch.cuda.max_memory_allocated(i) / 2 ** 30
        parts.append(f'gpu{name} {_load(i)}{memory:.1f}GB')
    return ' '.join(parts)


def _load(i: int) -> str:
    """'97% ', or '' once NVML has failed."""
    global _nvml
    if _nvml:
        try:
            return f'{torch.cuda.utilization(i)}% '
        except Exception as error:  # no driver, no nvidia-ml-py, no permission: training goes on
            _nvml = False
            log.warning('the load of the GPUs cannot be shown (pip install nvidia-ml-py): %s', error)
    return ''
