"""How the benchmark measures time: alternately, medians, a yardstick beside every number."""
import math
import statistics
import time
from collections.abc import Callable, Mapping
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

    def __str__(self) -> str:
        text = f'{self.what:34} {self.value:9.4g} {self.unit:10}'
        if self.yardstick_value is not None:
            text += f'  {self.yardstick:28} {self.yardstick_value:9.4g}'
        if self.ratio is not None:
            text += f'  {self.ratio:8.3g} {self.meaning}'
        return text


def alternate(calls: Mapping[str, Callable[[], object]], repeats: int,
              device: torch.device | None = None) -> dict[str, float]:
    """Seconds of one call of each function: {name: median over `repeats` rounds}.

    Every round times each function once, so that a slow moment of the machine hits all of them; short functions are
    called several times in a row, for at least MIN_SECONDS together. Nothing of the warm-up counts.

    Args:
        calls: {name: function}.
        repeats: Rounds, of which the median counts.
        device: The device to wait for; None: the CPU.
    """
    counts = {}
    for name, call in calls.items():
        seconds = timed(call, 1, device)
        if seconds < MIN_SECONDS:  # the first call is slower than those that follow
            seconds = timed(call, 1, device)
        counts[name] = max(1, math.ceil(MIN_SECONDS / seconds))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(timed(call, counts[name], device))
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def timed(call: Callable[[], object], count: int, device: torch.device | None) -> float:
    """Mean seconds of `count` calls in a row."""
    wait_for(device)
    start = time.perf_counter()
    for _ in range(count):
        call()
    wait_for(device)
    return (time.perf_counter() - start) / count


def wait_for(device: torch.device | None) -> None:
    """Wait until a GPU has done what it was asked for."""
    if device is not None and device.type == 'cuda':
        torch.cuda.synchronize(device)
