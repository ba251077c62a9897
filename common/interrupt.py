"""SIGTERM and Ctrl-C as a request to stop after the current step."""
import signal
import threading


class StopRequest:
    """True once SIGTERM or SIGINT has come, while used as a context; a second signal acts as usual."""

    def __init__(self):
        self.received = None
        self.previous = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self.previous = {kind: signal.signal(kind, self.note) for kind in (signal.SIGTERM, signal.SIGINT)}
        return self

    def note(self, kind, frame):
        self.received = signal.Signals(kind).name
        self.restore()

    def restore(self):
        for kind, handler in self.previous.items():
            signal.signal(kind, handler)
        self.previous = {}

    def __exit__(self, *error):
        self.restore()

    def __bool__(self):
        return self.received is not None
