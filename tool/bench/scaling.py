"""How training speed grows with the number of processes (torchrun, DistributedDataParallel), or of GPUs."""
import os
import statistics
import subprocess
import sys
from collections.abc import Callable

import torch

from common.devices import processes
from common.devices.gpus import devices
from common.errors import UserError
from main.config import Config
from tool.bench.network import network_training
from tool.bench.timing import Row, timed

MARK = 'images per second:'
STEPS = 2  # timed steps of a run, after one that is not


def measure_scaling(command: list[str], repeats: int, show: Callable[[str], object] = print) -> list[Row]:
    """The speed of every way to train: on a CPU 1 and 2 processes with a core each; on GPUs 1, 2, 4, ... up to all.

    GPUs are measured as processes and with DataParallel. Speeds are medians over the rounds. A ratio is the median of
    each round's own ratio: the speed of a shared machine drifts from minute to minute, and a round is shorter.

    Args:
        command: Words that start the benchmark with its settings.
        repeats: Rounds.
        show: Called with a line of text after every round.
    Raises:
        UserError: There is only one GPU or core, or a run failed.
    """
    gpus = torch.cuda.device_count()
    ways = ways_to_train(gpus)
    speeds: dict[tuple[str, int], list[float]] = {way: [] for way in ways}
    for repeat in range(repeats):
        for way in ways:
            speeds[way].append(run(command, *way, on_gpu=gpus > 0))
        texts = [f'{kind} {count}: {values[-1]:.3g} images/s' for (kind, count), values in speeds.items()]
        show(f'round {repeat + 1} of {repeats}: {", ".join(texts)}')
    one = speeds['processes', 1]
    rows = []
    for (kind, count), values in speeds.items():
        ratio = statistics.median(a / b for a, b in zip(values, one, strict=True))
        rows.append(Row(f'training, {kind}: {count}', statistics.median(values), 'images/s', 'processes: 1',
                        statistics.median(one), ratio, 'x its speed'))
    return rows


def ways_to_train(gpus: int) -> list[tuple[str, int]]:
    """[(processes or DataParallel, how many)] to compare. UserError: there is only one GPU, or one core without GPU."""
    if not gpus:
        if core_count() < 2:
            raise UserError('--scaling compares one and several cores, but there is only one')
        return [('processes', 1), ('processes', 2)]
    if gpus == 1:
        raise UserError('--scaling compares one and several GPUs, but there is only one in use: name them, such as '
                        '--gpu 0-3')
    counts = sorted({gpus, *[count for count in (1, 2, 4, 8) if count <= gpus]})
    return [('processes', count) for count in counts] + [('DataParallel', count) for count in counts[1:]]


def core_count() -> int:
    """The cores that this process may use."""
    if hasattr(os, 'sched_getaffinity'):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(command: list[str], kind: str, count: int, on_gpu: bool) -> float:
    """Images per second of one way to train, in processes of its own. UserError: it failed."""
    words = [sys.executable]
    if kind == 'processes':
        words += ['-m', 'torch.distributed.run', '--standalone', f'--nproc_per_node={count}']
    words += [*command, '--scaling_worker', '--gpu', f'0-{count - 1}' if on_gpu else 'cpu']
    env = dict(os.environ)
    if not on_gpu:
        env['OMP_NUM_THREADS'] = '1'
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not found:
        raise UserError(f'training with {count} {kind} failed: {" ".join(words)}\n{done.stderr[-2000:]}')
    return float(found[-1].removeprefix(MARK))


def worker(cfg: Config) -> None:
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
