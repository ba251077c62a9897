"""One training per output folder."""
import contextlib
import errno
import fcntl
import os
import shlex
import socket
import sys
import time
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
            self.file = open(path, 'a+', encoding='utf-8', errors='replace')
        except OSError as error:
            raise UserError(f'cannot write into the output folder {folder}: {error.strerror}; choose another one with '
                            'output_dir=FOLDER') from error
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.held = True
        except OSError as error:
            self.held = False
            if error.errno not in UNSUPPORTED:
                self.file.seek(0)
                owner = self.file.readline().strip() or 'a process that does not say which'
                self.file.close()
                raise UserError(f'{folder} is in use by another training: {owner}; wait for its end, stop it, or '
                                'choose another folder with output_dir=FOLDER') from error
        with contextlib.suppress(OSError):  # a full disk: the lock holds without its text
            self.file.truncate(0)
            self.file.write(f'process {os.getpid()} on {socket.gethostname()}, started '
                            f'{time.strftime("%Y-%m-%d %H:%M:%S")}: {shlex.join(sys.argv)[:500]}\n')
            self.file.flush()

    def release(self):
        self.file.close()
