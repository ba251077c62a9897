"""Peak memory of inference and of a training step with Adam, each in a process of its own."""
import concurrent.futures
import copy
import multiprocessing
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from common.devices.gpus import devices
from main.config import Config
from tool.bench import network
from tool.bench.network import INFERENCE, TRAINING
from tool.bench.timing import Row

GB = 1e9
STEPS = 2  # the first step makes Adam's averages, the second one runs beside them


def measure_memory(cfg: Config, device: torch.device, repeats: int) -> list[Row]:
    """The peak memory, GB, and its growth per sample. `repeats` does not matter: memory does not vary.

    On a GPU what PyTorch holds there; on a CPU the whole process, the interpreter and all libraries included.
    """
    batch = cfg.train_batch_size
    images = cfg.test_batch_size
    other = batch // 2 if batch >= 4 else batch * 2  # BatchNorm needs two samples at least

    def both(kind: str, size: int) -> list[float]:
        return [in_new_process(peak_bytes, cfg, f'{whose}_{kind}', size) / GB for whose in ('network', 'resnet')]

    inference = both('inference', images)
    training = both('training', batch)
    other_training = both('training', other)
    growth = [(a - b) / (batch - other) for a, b in zip(training, other_training, strict=True)]
    return [memory_row(f'peak memory, inference, batch {images}', inference, INFERENCE),
            memory_row(f'peak memory, training, batch {batch}', training, f'{TRAINING}, Adam'),
            memory_row('memory per training sample', growth, f'{TRAINING}, Adam')]


def memory_row(what: str, pair: list[float], yardstick: str) -> Row:
    """Row of the memory of the network and of the yardstick, GB."""
    ours, theirs = pair
    ratio = ours / theirs if theirs > 0 else None
    return Row(what, ours, 'GB', yardstick, theirs, ratio, 'x its memory')


def in_new_process(function: Callable, *args: object) -> Any:
    """function(*args) in a fresh Python process, so that no memory of this one counts."""
    spawn = multiprocessing.get_context('spawn')
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(function, *args).result()


def peak_bytes(cfg: Config, name: str, batch: int) -> int:
    """Peak memory of two calls of a function of tool/bench/network.py, bytes.

    Args:
        cfg: The settings.
        name: network_ or resnet_training, network_ or resnet_inference; the training ones with a step of Adam.
        batch: Samples per call.
    """
    device = devices()[0]
    cfg = copy.copy(cfg)
    cfg.train_batch_size = batch
    cfg.test_batch_size = batch
    options = {'step': True} if name.endswith('training') else {}
    make = getattr(network, name)
    if name.startswith('network'):
        call = make(cfg, [device], **options)
    else:
        call = make(batch, device, **options)
    for _ in range(STEPS):
        call()
    if device.type == 'cuda':
        return torch.cuda.max_memory_allocated(device)
    return process_peak()


def process_peak() -> int:
    """Largest resident memory this process had, bytes."""
    status = Path('/proc/self/status')
    if status.is_file():  # Linux; ru_maxrss would count the parent's memory from before exec
        return int(re.findall(r'VmHWM:\s+(\d+)', status.read_text())[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == 'darwin' else peak * 1024
