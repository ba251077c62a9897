"""Which GPUs a process uses, chosen by CUDA_VISIBLE_DEVICES before CUDA is initialised."""
import os
import subprocess
import sys

import torch

from common.errors import UserError, shown

_VISIBLE_AT_START = os.environ.get('CUDA_VISIBLE_DEVICES')  # set by SLURM and the like: ids count within it
LONGEST_ID = 4  # digits: a list of more GPUs would only take time and memory
_nvml = True  # until it fails once


def parse_gpu_ids(text):
    """'0' -> [0]; '0,2' -> [0, 2]; '0-3' -> [0, 1, 2, 3]; 'cpu' -> []. UserError: anything else."""
    bad = UserError(f'--gpu "{shown(text)}": write ids such as 0, 0,2 or 0-3, or cpu')
    if text.strip() == 'cpu':
        return []
    ids = []
    for part in text.split(','):
        first, dash, last = part.strip().partition('-')
        if not all(number.isdecimal() and number.isascii() and len(number) <= LONGEST_ID
                   for number in ((first, last) if dash else (first,))):
            raise bad
        span = range(int(first), int(last if dash else first) + 1)
        if not span:
            raise bad
        ids += span
    if len(set(ids)) != len(ids):
        raise bad
    return ids


def select_gpus(text=None):
    """Make the GPUs that `text` names the only visible ones: cuda:0, cuda:1, ... in the order given.

    None: GPU 0, or the CPU where there is none. Under torchrun each process takes the id of its local rank.
    Without any CUDA device: one warning, then the CPU. UserError: bad text, or an id that is not there.
    """
    if text is None:
        text = f"0-{int(os.environ['LOCAL_WORLD_SIZE']) - 1}" if 'LOCAL_RANK' in os.environ else '0'
        asked = False
    else:
        asked = True
    ids = parse_gpu_ids(text)
    os.environ.setdefault('CUDA_DEVICE_ORDER', 'PCI_BUS_ID')  # the numbers that nvidia-smi shows
    if _VISIBLE_AT_START is None:
        wanted = [str(i) for i in ids]
    else:  # '' hides every GPU
        names = _VISIBLE_AT_START.split(',') if _VISIBLE_AT_START else []
        wanted = [names[i] for i in ids if i < len(names)]
    os.environ['CUDA_VISIBLE_DEVICES'] = ','.join(wanted)
    found = torch.cuda.device_count() if ids else 0
    if len(wanted) == found == len(ids):
        if ids and 'LOCAL_RANK' in os.environ:
            os.environ['CUDA_VISIBLE_DEVICES'] = _of_this_rank(wanted, text)
        return
    there = _count_gpus()
    if there:
        raise UserError(f'--gpu {text}: this machine shows {there} GPU{"s" if there > 1 else ""}, '
                        f'id{"s" if there > 1 else ""} {", ".join(map(str, range(there)))}')
    os.environ['CUDA_VISIBLE_DEVICES'] = ''
    if asked:
        print(f'warning: --gpu {text}: no CUDA device is available here, running on the CPU', file=sys.stderr)


def _of_this_rank(wanted, text):
    rank = int(os.environ['LOCAL_RANK'])
    if rank >= len(wanted):
        raise UserError(f'--gpu {text} names {len(wanted)} GPUs, but torchrun started '
                        f'{os.environ.get("LOCAL_WORLD_SIZE")} processes here: make --nproc_per_node the same')
    return wanted[rank]


def _count_gpus():
    """How many GPUs there are when all are visible; asked in a process of its own, so that ours stays uninitialised."""
    env = {k: v for k, v in os.environ.items() if k != 'CUDA_VISIBLE_DEVICES'}
    if _VISIBLE_AT_START is not None:
        env['CUDA_VISIBLE_DEVICES'] = _VISIBLE_AT_START
    done = subprocess.run([sys.executable, '-c', 'import torch; print(torch.cuda.device_count())'],
                          env=env, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else 0


def devices():
    """The devices this process trains on: its visible GPUs, or the CPU."""
    return [torch.device('cuda', i) for i in range(torch.cuda.device_count())] or [torch.device('cpu')]


def load_report():
    """'gpu0 97% 10.2GB gpu1 ...' for the log line: load and peak memory of this process's GPUs, under the numbers of
    nvidia-smi. '' on the CPU; the load is left out where NVML is missing."""
    global _nvml
    parts, names = [], os.environ.get('CUDA_VISIBLE_DEVICES', '').split(',')
    for i in range(torch.cuda.device_count()):
        load = ''
        if _nvml:
            try:
                load = f'{torch.cuda.utilization(i)}% '
            except Exception as error:  # no driver library, no nvidia-ml-py, no permission: the meter is a comfort
                _nvml = False
                print(f'note: the load of the GPUs cannot be shown (pip install nvidia-ml-py): {error}')
        name = names[i] if i < len(names) and names[i] else i
        parts.append(f'gpu{name} {load}{torch.cuda.max_memory_allocated(i) / 2 ** 30:.1f}GB')
    return ' '.join(parts)
