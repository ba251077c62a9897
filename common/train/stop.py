"""Ctrl-C and the signals of batch systems and closed terminals as a request to stop after the current step."""
import os
import signal
import threading
from types import FrameType
from typing import Any

# What a batch system, a closed terminal and some batch systems ahead of their time limit send; Windows lacks two.
NAMES = ('SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1')
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))


class StopRequest:
    """Notes which of SIGNALS has come, while used as a context. SIGHUP that is ignored (nohup) stays so.

    Attributes:
        signal: its number; 0: none has come.

    A second SIGTERM or SIGINT acts as usual, and so ends a program that hangs. Not under torchrun: there one request
    comes as several signals (from the batch system to every process, and once more from torchrun), and torchrun itself
    ends processes that take too long. The others come several times anyway: a terminal that closes sends SIGHUP, and
    so does its shell.
    """

    def __init__(self) -> None:
        self.signal = 0
        self.previous: dict[int, Any] = {}
        self.once = 'LOCAL_RANK' not in os.environ

    def __enter__(self) -> 'StopRequest':
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
                    self.previous[number] = signal.signal(number, self.note)
        return self

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signals."""
        self.signal = number
        if self.once:
            self.restore((signal.SIGTERM, signal.SIGINT))

    def restore(self, numbers: tuple[int, ...]) -> None:
        """Put back the handlers of before."""
        for number in numbers:
            if number in self.previous:
                signal.signal(number, self.previous.pop(number))

    def __exit__(self, *error: object) -> None:
        self.restore(SIGNALS)
