"""How training speed grows with the number of processes (torchrun, DistributedDataParallel), or of GPUs."""
import os
import statistics
import subprocess
import sys

import torch

from common.devices import processes
from common.devices.gpus import devices
from common.errors import UserError
from tool.bench.network import network_training
from tool.bench.timing import Row, timed

MARK = 'images per second:'
STEPS = 2  # timed steps of a run, after one that is not


def measure_scaling(command, repeats, show=print):
    """[Row] of every way to train: on a CPU 1 and 2 processes with a core each; on GPUs 1, 2, 4, ... up to all there
    are, as processes and with DataParallel.

    Speeds are medians over the rounds. A ratio is the median of each round's own ratio: the speed of a shared machine
    drifts from minute to minute, and a round is over sooner than it drifts.

    Args:
        command: words that start the benchmark with its settings. show: is given a line after every round.
    """
    gpus = torch.cuda.device_count()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()
    if gpus == 1 or not gpus and cores < 2:
        raise UserError(f'--scaling compares one and several {"GPUs" if gpus else "cores"}, but there is one only')
    counts = sorted({n for n in (1, 2, 4, 8) if n <= gpus} | {gpus}) if gpus else [1, 2]
    ways = [('processes', n) for n in counts] + [('DataParallel', n) for n in counts[1:] if gpus]
    speeds = {way: [] for way in ways}
    for repeat in range(repeats):
        for way in ways:
            speeds[way].append(run(command, *way, on_gpu=gpus > 0))
        show(f'round {repeat + 1} of {repeats}: ' + ', '.join(f'{way[0]} {way[1]}: {values[-1]:.3g} images/s'
                                                              for way, values in speeds.items()))
    one = speeds['processes', 1]
    return [Row(f'training, {kind}: {count}', statistics.median(values), 'images/s', 'processes: 1',
                statistics.median(one), statistics.median(a / b for a, b in zip(values, one, strict=True)),
                'x its speed')
            for (kind, count), values in speeds.items()]


def run(command, kind, count, on_gpu):
    """Images per second of one way to train, in processes of its own. UserError: it failed."""
    torchrun = ['-m', 'torch.distributed.run', '--standalone', f'--nproc_per_node={count}']
    words = [sys.executable, *(torchrun if kind == 'processes' else []), *command, '--scaling_worker',
             '--gpu', f'0-{count - 1}' if on_gpu else 'cpu']
    env = dict(os.environ) if on_gpu else {**os.environ, 'OMP_NUM_THREADS': '1'}
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not found:
        raise UserError(f'training with {count} {kind} failed: {" ".join(words)}\n{done.stderr[-2000:]}')
    return float(found[-1].removeprefix(MARK))


def worker(cfg):
    """One process of a run: steps of training on random data. The first process prints the speed of all together."""
    if not torch.cuda.is_available() and hasattr(os, 'sched_setaffinity'):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ.get('LOCAL_RANK', 0)) % len(cores)]})
    used = devices()
    processes.init(used[0])
    step = network_training(cfg, used, step=True)
    step()
    processes.barrier()
    seconds = timed(step, STEPS, used[0])
    images = cfg.train_batch_size * len(used) * processes.world_size()
    slowest = max(processes.gather_objects(seconds) or [seconds])
    if processes.is_main():
        print(MARK, images / slowest)
    processes.close()
