"""How the benchmark measures time: alternately, medians, a yardstick beside every number."""
import math
import statistics
import time
from dataclasses import dataclass

import torch

MIN_SECONDS = 0.2  # for which a short function is called again and again
HEADER = f'{"":34} {"here":>9} {"":10}  {"yardstick":28} {"":9}  {"ratio":>8}'


@dataclass
class Row:
    """A line of the table: a number, and the yardstick measured with it. `ratio` is of the two, as `meaning` says."""
    what: str
    value: float
    unit: str
    yardstick: str = ''
    yardstick_value: float | None = None
    ratio: float | None = None
    meaning: str = ''

    def __str__(self):
        text = f'{self.what:34} {self.value:9.4g} {self.unit:10}'
        if self.yardstick_value is not None:
            text += f'  {self.yardstick:28} {self.yardstick_value:9.4g}'
        return text + (f'  {self.ratio:8.3g} {self.meaning}' if self.ratio is not None else '')


def alternate(calls, repeats, device=None):
    """Seconds of one call of each function: {name: median over `repeats` rounds}.

    Every round times each function once, so that a slow moment of the machine hits all of them; short functions are
    called several times in a row, for at least MIN_SECONDS together. Nothing of the warm-up counts.

    Args:
        calls: {name: function without arguments}. device: torch.device to wait for, None: the CPU.
    """
    counts = {}
    for name, call in calls.items():
        seconds = timed(call, 1, device)
        if seconds < MIN_SECONDS:  # the first call is slower than those that follow
            seconds = timed(call, 1, device)
        counts[name] = max(1, math.ceil(MIN_SECONDS / seconds))
    rounds = [{name: timed(call, counts[name], device) for name, call in calls.items()} for _ in range(repeats)]
    return {name: statistics.median(one[name] for one in rounds) for name in calls}


def timed(call, count, device):
    """Mean seconds of `count` calls in a row."""
    wait_for(device)
    start = time.perf_counter()
    for _ in range(count):
        call()
    wait_for(device)
    return (time.perf_counter() - start) / count


def wait_for(device):
    """Until a GPU has done what it was asked for."""
    if device is not None and device.type == 'cuda':
        torch.cuda.synchronize(device)
