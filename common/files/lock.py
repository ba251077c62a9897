"""One training per output folder, and the file lock that it is built on."""
import contextlib
import errno
import os
import shlex
import socket
import sys
import time
from pathlib import Path

from filelock import FileLock, Timeout

from common.errors import UserError

UNSUPPORTED = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)  # some network drives


def file_lock(path: str | Path) -> FileLock:
    """A lock of the operating system on a file: it ends with the process, and forked processes do not share it.

    The file is made if it is missing, and stays.

    Args:
        path: The lock file.
    Returns:
        A lock for `with`, or with `acquire(blocking=False)`, which raises `filelock.Timeout` if another one holds it.
        Both raise OSError where the file cannot be written or the drive has no locks.
    """
    return FileLock(path, thread_local=False, fallback_to_soft=False)


class FolderLock:
    """Keeps other trainings out of a folder until `release()` or the end of this process, however it ends.

    The lock is on `<folder>/train.lock`. The text in that file is for people only.

    Attributes:
        held: False on drives without locks.
    Raises:
        UserError: Another process holds the lock (the message says which), or the folder cannot be written.
    """

    def __init__(self, folder: str | Path) -> None:
        path = Path(folder) / 'train.lock'
        self._lock = file_lock(path)
        self.held = True
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(blocking=False)
        except Timeout as error:
            raise UserError(f'{folder} is in use by another training: {_owner(path)}; wait for its end, stop it, or '
                            'choose another folder with output_dir=FOLDER') from error
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise UserError(f'cannot write into the output folder {folder}: {error.strerror}; choose another one '
                                'with output_dir=FOLDER') from error
            self.held = False
        started = time.strftime('%Y-%m-%d %H:%M:%S')
        command = shlex.join(sys.argv)[:500]
        with contextlib.suppress(OSError):  # on a full disk the lock holds without its text
            path.write_text(f'process {os.getpid()} on {socket.gethostname()}, started {started}, {command}\n')

    def release(self) -> None:
        """Let other trainings in."""
        self._lock.release()


def _owner(path: Path) -> str:
    """The first line of a lock file."""
    try:
        line = path.read_text(encoding='utf-8', errors='replace')[:1000].partition('\n')[0]
    except OSError:
        line = ''
    return line or 'it does not say which'
