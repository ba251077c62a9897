"""SIGTERM and Ctrl-C as a request to stop after the current step."""
import os
import signal
import threading


class StopRequest:
    """True once SIGTERM or SIGINT has come, while used as a context.

    A second signal acts as usual, and so ends a program that hangs. Not under torchrun: there one request comes as
    several signals (from the batch system to every process, and once more from torchrun), and torchrun itself ends
    processes that take too long.
    """

    def __init__(self):
        self.received = None
        self.previous = {}
        self.once = 'LOCAL_RANK' not in os.environ

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self.previous = {kind: signal.signal(kind, self.note) for kind in (signal.SIGTERM, signal.SIGINT)}
        return self

    def note(self, kind, frame):
        self.received = signal.Signals(kind).name
        if self.once:
            self.restore()

    def restore(self):
        for kind, handler in self.previous.items():
            signal.signal(kind, handler)
        self.previous = {}

    def __exit__(self, *error):
        self.restore()

    def __bool__(self):
        return self.received is not None
