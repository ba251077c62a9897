"""How many CPU cores this process may use."""
import math
import os
from pathlib import Path

CGROUP = Path('/sys/fs/cgroup')


def core_count() -> int:
    """The cores that this process may run on, or fewer where a container's quota gives it less time than that."""
    if hasattr(os, 'sched_getaffinity'):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = container_quota(CGROUP)
    if quota is not None:
        cores = min(cores, max(1, math.ceil(quota)))
    return cores


def container_quota(folder: Path) -> float | None:
    """The share of time, in cores, that a control group (version 2 or 1) gives; None for no limit or none known."""
    try:
        if (folder / 'cpu.max').is_file():
            quota, period = (folder / 'cpu.max').read_text().split()
        else:
            quota = (folder / 'cpu' / 'cpu.cfs_quota_us').read_text()
            period = (folder / 'cpu' / 'cpu.cfs_period_us').read_text()
        cores = float(quota) / float(period)
    except (OSError, ValueError, ZeroDivisionError):  # 'max' is no number
        return None
    if not 0 < cores < math.inf:  # -1: no limit
        return None
    return cores
