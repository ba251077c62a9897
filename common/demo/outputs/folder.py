"""Result folders that appear whole or not at all, and never replace the results of another image."""
import contextlib
import fcntl
import json
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from types import FrameType

from common.errors import UserError

RECORD = 'result.json'
WORKING = '.writing-'  # begins the names of folders that are being written
ELSEWHERE = 'choose another folder with --output DIR'


def free_name(parent: Path, name: str, source: Path | str, taken: Collection[str] = ()) -> str:
    """A folder name for the results of a file: `name`, or `name_2`, `name_3`, ... if that one is taken.

    A folder whose result.json names the same source is a former run's and may be replaced. One of another source, or
    one that holds no result, may not.

    Args:
        parent: of the folder.
        name: wanted. Dots at its ends go: `.` and `..` are not names.
        source: the file that the results are of.
        taken: further names that may not be used.
    """
    name = name.strip('.') or 'image'
    candidate = name
    number = 1
    while candidate in taken or not _replaceable(parent / candidate, source):
        number += 1
        candidate = f'{name}_{number}'
    return candidate


def _replaceable(folder: Path, source: Path | str) -> bool:
    if not os.path.lexists(folder):
        return True
    try:
        return json.loads((folder / RECORD).read_text(encoding='utf-8'))['source'] == str(source)
    except (OSError, ValueError, KeyError, TypeError):
        return False


@contextlib.contextmanager
def whole_folder(parent: Path, name: str) -> Iterator[Path]:
    """A new folder to write into, which becomes `parent/name` when the block ends, in place of one that is there.

    After an exception, SIGTERM or SIGHUP nothing is left behind.

    Raises:
        UserError: the folder cannot be made.
    """
    with _ended_by_exception(), contextlib.ExitStack() as stack:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            work = Path(tempfile.mkdtemp(prefix=WORKING, dir=parent))
            stack.callback(_discard, work, parent)
            with contextlib.suppress(OSError):  # a file system without locks: nobody will clear this folder away
                stack.enter_context(_lock(work))
            new = work / 'new'
            new.mkdir()
        except OSError as error:
            raise UserError(f'{parent}: cannot write there ({error.strerror}): {ELSEWHERE}') from error
        target = parent / name
        try:
            yield new
            if target.exists():
                (work / 'old').mkdir()
                target.rename(work / 'old' / name)
            new.rename(target)
        except OSError as error:
            raise UserError(f'{target}: cannot write there ({error.strerror or error}): {ELSEWHERE}') from error


def clear_leftovers(parent: Path) -> None:
    """Remove what runs that were killed left half-written in a folder. Runs that still go on hold a lock."""
    for work in parent.glob(f'{WORKING}*'):
        with contextlib.suppress(OSError):  # locked, or not ours to remove
            if any(work.iterdir()):  # an empty one may be so young that it is not locked yet
                with _lock(work):
                    _discard(work, parent)


def _discard(work: Path, parent: Path) -> None:
    """Remove a working folder; results that were to be replaced go back when the new ones did not come."""
    for former in (work / 'old').glob('*'):
        if not os.path.lexists(parent / former.name):
            former.rename(parent / former.name)
    shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. OSError if another process has it, or if it is not a folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _ended_by_exception() -> Iterator[None]:
    """SIGTERM and SIGHUP raise SystemExit in the block, so that it cleans up, unless they have handlers already."""
    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    kinds = []
    if threading.current_thread() is threading.main_thread():  # other threads may not set handlers
        kinds = [kind for kind in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(kind) is signal.SIG_DFL]
    for kind in kinds:
        signal.signal(kind, leave)
    try:
        yield
    finally:
        for kind in kinds:
            signal.signal(kind, signal.SIG_DFL)
