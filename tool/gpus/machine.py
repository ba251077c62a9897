"""What there is: versions, driver, memory, and how the GPUs are connected."""
import shutil
import subprocess
from pathlib import Path

import torch

from common.devices.cpus import core_count
from common.snapshot.meta import versions

GB = 2 ** 30
SHARED = Path('/dev/shm')
LITTLE_SHARED = 1.0  # GB; the loader processes hand their batches over through it, and Docker gives 64 MB
QUERY = ('index,driver_version,memory.used,temperature.gpu,pcie.link.gen.max,pcie.link.width.current,'
         'ecc.errors.uncorrected.volatile.total')


def describe(devices: list[torch.device]) -> list[str]:
    """Lines about the software, every device, and the links between them."""
    lines = [', '.join(f'{name} {version}' for name, version in versions().items()),
             f'{core_count()} CPU cores, shared memory {shared_memory():.1f} GB']
    for device in devices:
        if device.type == 'cuda':
            lines.append(gpu_line(device))
    if devices[0].type == 'cuda':
        for options in ([f'--query-gpu={QUERY}', '--format=csv'], ['topo', '-m']):
            lines += nvidia_smi(options)
        lines += peers(devices)
    return lines


def gpu_line(device: torch.device) -> str:
    """Name, memory and abilities of a GPU."""
    about = torch.cuda.get_device_properties(device)
    free, total = torch.cuda.mem_get_info(device)
    bf16 = 'no bf16'
    if torch.cuda.is_bf16_supported(including_emulation=False):
        bf16 = 'bf16'
    return (f'gpu{device.index}: {about.name}, compute capability {about.major}.{about.minor}, {bf16}, '
            f'{free / GB:.1f} of {total / GB:.1f} GB free')


def peers(devices: list[torch.device]) -> list[str]:
    """Which pairs of GPUs cannot copy to each other directly."""
    apart = [f'{a.index}-{b.index}' for a in devices for b in devices
             if a.index < b.index and not torch.cuda.can_device_access_peer(a, b)]
    if not apart:
        return []
    return [f'copies between these GPUs go through the main memory: {", ".join(apart)}']


def nvidia_smi(options: list[str]) -> list[str]:
    """The lines that nvidia-smi prints; none where it is missing or fails."""
    if not shutil.which('nvidia-smi'):
        return []
    try:
        done = subprocess.run(['nvidia-smi', *options], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode:
        return []
    return [line.rstrip() for line in done.stdout.splitlines() if line.strip()]


def shared_memory() -> float:
    """Size of the shared memory, GB; 0 where there is none."""
    if not SHARED.is_dir():
        return 0.0
    return shutil.disk_usage(SHARED).total / GB


def notes() -> list[str]:
    """What a training may run into on this machine."""
    if SHARED.is_dir() and shared_memory() < LITTLE_SHARED:
        return [f'note: {shared_memory() * 1024:.0f} MB of shared memory are too few for loader processes: start the '
                'container with --shm-size=16g, or train with num_thread=0']
    return []
