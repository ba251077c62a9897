"""Result folders that appear whole or not at all, and never on top of another picture's results."""
import contextlib
import fcntl
import json
import os
import shutil
import signal
import tempfile
import threading
from pathlib import Path

from common.errors import UserError

RECORD = 'result.json'
WORKING = '.writing-'  # begins the names of folders that are being written
ELSEWHERE = 'choose another folder with --output DIR'


def printable(path):
    """A path as text that every terminal takes: what is no UTF-8 in a file's name is written as an escape."""
    return str(path).encode(errors='backslashreplace').decode()


def free_name(parent, name, source, taken=()):
    """A folder name for the results of the file `source`: `name`, or `name_2`, `name_3`, ... if that one is taken.

    A folder whose result.json names the same source is a former run's and may be replaced; one of another source, one
    that holds no result, and the names in `taken` may not. Dots at the ends go: `.` and `..` are no names.
    """
    name = name.strip('.') or 'picture'
    number = 1
    while True:
        candidate = name if number == 1 else f'{name}_{number}'
        if candidate not in taken and _replaceable(Path(parent) / candidate, source):
            return candidate
        number += 1


def _replaceable(folder, source):
    if not os.path.lexists(folder):
        return True
    try:
        return json.loads((folder / RECORD).read_text(encoding='utf-8'))['source'] == str(source)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def opencv_path(path):
    """A path as text for OpenCV's videos, which crash the process (5.0) over a name that is not UTF-8: UserError."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise UserError(f'{printable(path)}: OpenCV needs names in UTF-8 for videos; rename it') from error
    return str(path)


@contextlib.contextmanager
def whole_folder(parent, name):
    """A new folder to write into, which becomes `parent/name` when the block ends, in place of one that is there.

    After an exception, SIGTERM or SIGHUP nothing is left behind. UserError if the folder cannot be made.
    """
    parent = Path(parent)
    with _ended_by_exception(), contextlib.ExitStack() as stack:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            work = Path(tempfile.mkdtemp(prefix=WORKING, dir=parent))
            stack.callback(_discard, work, parent)
            with contextlib.suppress(OSError):  # a file system without locks: nobody will clear this folder away
                stack.enter_context(_lock(work))
            (work / 'new').mkdir()
        except OSError as error:
            raise UserError(f'{parent}: cannot write there ({error.strerror}): {ELSEWHERE}') from error
        try:
            yield work / 'new'
            target = parent / name
            if target.exists():
                (work / 'old').mkdir()
                target.rename(work / 'old' / name)
            (work / 'new').rename(target)
        except OSError as error:
            raise UserError(f'{parent / name}: cannot write there ({error.strerror or error}): {ELSEWHERE}') from error


def clear_leftovers(parent):
    """Remove what runs that were killed left half-written in `parent`. Those that still go on hold a lock."""
    for work in Path(parent).glob(f'{WORKING}*'):
        with contextlib.suppress(OSError):  # locked, or not ours to remove
            if any(work.iterdir()):  # an empty one may be so young that it is not locked yet
                with _lock(work):
                    _discard(work, Path(parent))


def _discard(work, parent):
    """Remove a working folder; results that were to be replaced go back when the new ones did not come."""
    for former in (work / 'old').glob('*'):
        if not os.path.lexists(parent / former.name):
            former.rename(parent / former.name)
    shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder):
    """Hold the lock of a folder. OSError if another process has it, or if it is no folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _ended_by_exception():
    """SIGTERM and SIGHUP raise SystemExit in the block, which can so clean up, unless they have handlers already."""
    def leave(number, _):
        raise SystemExit(128 + number)

    in_main = threading.current_thread() is threading.main_thread()  # others get no signals, and may not ask for them
    kinds = [kind for kind in (signal.SIGTERM, signal.SIGHUP) if in_main and signal.getsignal(kind) is signal.SIG_DFL]
    for kind in kinds:
        signal.signal(kind, leave)
    try:
        yield
    finally:
        for kind in kinds:
            signal.signal(kind, signal.SIG_DFL)
