"""In float64, where rounding hides nothing: a GPU computes what the CPU does, several devices what one does."""
import contextlib
import json
import os
import subprocess
import sys

import torch

from common.devices import processes
from common.devices.wrap import wrap
from common.errors import shown
from tool.gpus.narrow import CASES, Pass, differences, narrow_config, narrow_model, one_pass, samples
from tool.gpus.results import Wrong
from tool.gpus.simulation import cpu_devices, simulated_devices

CPU = torch.device('cpu')
MOST_LOSS = 1e-8  # differences of float64 by another order of summation are below 1e-12
MOST_GRADIENT = 1e-6
PER_DEVICE = 3  # samples
MARK = 'processes against one:'
PATIENCE = 300  # seconds, after which processes hang
HINT = 'try NCCL_P2P_DISABLE=1, and NCCL_DEBUG=INFO to see where it stops'


def verdict(found: dict[str, tuple[float, float]], hint: str) -> str:
    """The largest differences of losses and gradients, in words. Wrong: too large; names the cases, and the hint."""
    bad = [case for case, (loss, gradient) in found.items() if not (loss < MOST_LOSS and gradient < MOST_GRADIENT)]
    loss = max(pair[0] for pair in found.values())
    gradient = max(pair[1] for pair in found.values())
    text = f'loss differs by {loss:.0e}, gradient by {gradient:.0e}'
    if bad:
        raise Wrong(f'{text} ({", ".join(bad)}): {hint}')
    return text


def reference(case: str, device: torch.device, count: int, split: bool = False) -> Pass:
    """One pass over so many samples on one device."""
    config = narrow_config(CASES[case])
    model = narrow_model(config, torch.float64, device, split)
    return one_pass(model, model, samples(config, 0, count, torch.float64, device))


def same_as_cpu(device: torch.device) -> str:
    """A device against the CPU."""
    found = {}
    for case in CASES:
        got = reference(case, device, PER_DEVICE)
        found[case] = differences(got, reference(case, CPU, PER_DEVICE))
    return verdict(found, 'this device computes wrong: check its driver, memory (ECC) and temperature')


def replicas_same_as_one(devices: list[torch.device]) -> str:
    """DataParallel against one device; a single GPU stands for two, a CPU for three simulated devices."""
    first = devices[0]
    simulation: contextlib.AbstractContextManager = contextlib.nullcontext()
    if first.type == 'cpu':
        devices = cpu_devices(3)
        simulation = simulated_devices()
    elif len(devices) == 1:
        devices = [first, first]
    count = len(devices) * PER_DEVICE - 1  # one that does not divide
    found = {}
    with simulation:
        for case, changes in CASES.items():
            config = narrow_config(changes)
            model = narrow_model(config, torch.float64, first, split=True)
            got = one_pass(wrap(model, devices), model, samples(config, 0, count, torch.float64, first))
            found[case] = differences(got, reference(case, first, count, split=True))
    return f'{len(devices)} replicas: ' + verdict(
        found, f'data are damaged between GPUs: use torchrun, and {HINT}; often it is the setting ACS or IOMMU of the '
        'machine')


def processes_same_as_one(devices: list[torch.device], program: str) -> str:
    """DistributedDataParallel against one process: two on a CPU, else one per GPU, in processes of their own.

    Args:
        devices: the GPUs, or the CPU. program: that calls ddp_worker() in them.
    """
    count = len(devices)
    gpus = f'0-{count - 1}'
    if devices[0].type == 'cpu':
        count = 2
        gpus = 'cpu'
    words = [sys.executable, '-m', 'torch.distributed.run', '--standalone', f'--nproc_per_node={count}', program,
             '--gpu', gpus, '--ddp_worker']
    env = {**os.environ, 'OMP_NUM_THREADS': os.environ.get('OMP_NUM_THREADS', '1')}
    child = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             start_new_session=True)
    try:
        text = child.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired as error:
        raise Wrong(f'{count} processes hang: {HINT}') from error
    finally:
        if child.poll() is None:
            os.killpg(child.pid, 9)
            child.wait()
    lines = [line for line in text.splitlines() if line.startswith(MARK)]
    if child.returncode or not lines:
        errors = [line for line in text.splitlines() if 'Error' in line or line.startswith('error:')]
        raise Wrong(f'{count} processes failed ({shown((errors or [text])[0], 200)}): {HINT}')
    found = json.loads(lines[-1].removeprefix(MARK))
    return f'{count} processes: ' + verdict(found, f'gradients are damaged between GPUs: {HINT}')


def ddp_worker(device: torch.device) -> None:
    """One of the processes: each has its samples. The first one prints how all together differ from one."""
    processes.init(device)
    rank = processes.rank()
    found = {}
    for case, changes in CASES.items():
        config = narrow_config(changes)
        model = narrow_model(config, torch.float64, device, split=True)
        batch = samples(config, rank * PER_DEVICE, (rank + 1) * PER_DEVICE, torch.float64, device)
        got = one_pass(wrap(model, [device]), model, batch)
        got.losses = processes.mean(got.losses)
        if processes.is_main():
            want = reference(case, device, PER_DEVICE * processes.world_size(), split=True)
            found[case] = differences(got, want)
    processes.barrier()
    if processes.is_main():
        print(MARK, json.dumps(found), flush=True)
    processes.close()
