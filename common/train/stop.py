"""SIGTERM and Ctrl-C as a request to stop after the current step."""
import os
import signal
import threading
from types import FrameType
from typing import Any


class StopRequest:
    """True once SIGTERM or SIGINT has come, while used as a context.

    A second signal acts as usual, and so ends a program that hangs. Not under torchrun: there one request comes as
    several signals (from the batch system to every process, and once more from torchrun), and torchrun itself ends
    processes that take too long.
    """

    def __init__(self) -> None:
        self.received = False
        self.previous: dict[int, Any] = {}
        self.once = 'LOCAL_RANK' not in os.environ

    def __enter__(self) -> 'StopRequest':
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self.previous[number] = signal.signal(number, self.note)
        return self

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler of the two signals."""
        self.received = True
        if self.once:
            self.restore()

    def restore(self) -> None:
        """Put back the handlers of before."""
        for number, handler in self.previous.items():
            signal.signal(number, handler)
        self.previous = {}

    def __exit__(self, *error: object) -> None:
        self.restore()

    def __bool__(self) -> bool:
        return self.received
