"""Prepares a file of main/ that is run as a script: the repository root takes the place of main/ in the import path,
and Ctrl-C during the imports, which take seconds, ends without a traceback, as it does later."""
import sys
from pathlib import Path
from types import TracebackType


def report(kind: type[BaseException], error: BaseException,
           traceback: TracebackType | None) -> None:
    """What Python calls for an exception that ends it; after Ctrl-C its exit code is 130 in any case."""
    if kind is KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)


sys.path[0] = str(Path(__file__).resolve().parent.parent)
sys.excepthook = report
