"""One training per output folder."""
import contextlib
import errno
import fcntl
import os
import shlex
import socket
import sys
import time
import weakref
from pathlib import Path

from common.errors import UserError

UNSUPPORTED = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)  # some network drives


class FolderLock:
    """Keeps other trainings out of a folder until `release()` or the end of this process, however it ends.

    It is a lock of the operating system on `<folder>/train.lock`, and of this process alone: loader processes do not
    inherit it. The text in the file is there for people only. `held` is False on drives that know no locks.
    Raises:
        UserError: another process has it (the message says which), or the folder cannot be written.
    """

    def __init__(self, folder):
        path = Path(folder) / 'train.lock'
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise UserError(f'cannot write into the output folder {folder}: {error.strerror}; choose another one with '
                            'output_dir=FOLDER') from error
        self.release = weakref.finalize(self, os.close, self.file)
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.held = True
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                owner = os.read(self.file, 1000).decode('utf-8', 'replace').partition('\n')[0]
                raise UserError(f'{folder} is in use by another training: {owner or "it does not say which"}; wait for '
                                'its end, stop it, or choose another folder with output_dir=FOLDER') from error
            self.held = False
        text = f'process {os.getpid()} on {socket.gethostname()}, started {time.strftime("%Y-%m-%d %H:%M:%S")}'
        with contextlib.suppress(OSError):  # a full disk: the lock holds without its text
            os.truncate(self.file, 0)
            os.write(self.file, f'{text}, {shlex.join(sys.argv)[:500]}\n'.encode())
