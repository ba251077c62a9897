"""Run first by every program of main/ and tool/: puts the repository root on the import path.

A program calls it by its path, with `runpy`, since Python may leave the program's own folder out of the import path
(PYTHONSAFEPATH=1). Ctrl-C during the imports, which take seconds, then ends without a traceback, as it does later.
"""
import sys
from pathlib import Path
from types import TracebackType

ROOT = str(Path(__file__).resolve().parents[1])


def report(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Print an exception that ends Python: one word for Ctrl-C (the exit code is 130 in any case), else as usual."""
    if kind is KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)


if getattr(sys.flags, 'safe_path', False):  # a flag of Python 3.11 and later
    sys.path.insert(0, ROOT)
else:
    sys.path[0] = ROOT  # in place of the program's folder
sys.excepthook = report
