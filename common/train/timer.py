"""A stopwatch for the training log."""
import time


class Timer:
    """Seconds between `tic()` and `toc()`: `last` and the `average` over all of them."""

    def __init__(self):
        self.last = self.total = 0.0
        self.calls = 0

    def tic(self):
        self.start = time.perf_counter()

    def toc(self):
        self.last = time.perf_counter() - self.start
        self.total += self.last
        self.calls += 1

    @property
    def average(self):
        return self.total / max(self.calls, 1)
