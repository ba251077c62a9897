"""Writes the snapshots of a run. A disk that is full for a while costs no training."""
import time
from pathlib import Path

from common.errors import UserError
from common.snapshot import checkpoint

RETRY = 10  # seconds between two tries to write the last snapshot
PATIENCE = 20 * 60  # seconds of trying; other processes of a run wait for the first one at most half an hour


class Saver:
    """Snapshots of one folder.

    Args:
        folder: where they go. keep: how many of the last ones to keep, 0 for all. log: function of one line of text.
    """

    def __init__(self, folder, keep, log):
        self.folder, self.keep, self.log = Path(folder), keep, log

    def remove_leftovers(self):
        """Delete the half-written files of runs that were killed. Only for the one process that writes here."""
        for path in sorted(self.folder.glob('snapshot_*.tmp')):
            path.unlink()
            self.log(f'removed {path}, left behind by a run that was killed while writing it')

    def write(self, number, content, last=False):
        """Write snapshot_<number>. Returns whether that worked.

        A disk that takes no file is told, and the run goes on to the next snapshot. With `last` there is none: it is
        tried again for PATIENCE seconds. UserError: it was in vain.
        """
        path = checkpoint.snapshot_path(self.folder, number)
        begin = time.monotonic()
        while True:
            try:
                checkpoint.write(path, content)
                break
            except OSError as error:
                fault = f'cannot write {path}: {error.strerror or error}'
            if not last:
                self.log(f'warning: {fault}; training goes on, make room before the next snapshot is due')
                return False
            if time.monotonic() - begin >= PATIENCE:
                raise UserError(f'{fault}; this state of the network is lost, the snapshots before it are as they were')
            self.log(f'warning: {fault}; make room: it is tried again every {RETRY} s for {PATIENCE // 60} minutes')
            time.sleep(RETRY)
        checkpoint.prune(self.folder, self.keep, number)
        self.log(f'wrote {path}')
        return True
