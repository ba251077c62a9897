"""Work on one result while the next one is made."""
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any


class Overlap:
    """Calls a function in a thread of its own, one call at a time, while the program goes on. Use as a context.

    Args:
        function: of the work; what it raises is raised by the next submit, or at the end of the context.
        done: called with its results, in order.
    """

    def __init__(self, function: Callable[..., Any], done: Callable[[Any], object]) -> None:
        self.function = function
        self.done = done
        self.pool = ThreadPoolExecutor(1)
        self.pending: Future | None = None

    def __enter__(self) -> 'Overlap':
        return self

    def submit(self, *args: Any) -> None:
        """Begin function(*args), once the call before it has ended: no more than one result waits in memory."""
        self.finish()
        self.pending = self.pool.submit(self.function, *args)

    def finish(self) -> None:
        """Wait for the call under way."""
        if self.pending:
            self.done(self.pending.result())
            self.pending = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            if error is None:
                self.finish()
        finally:
            self.pool.shutdown(cancel_futures=True)
