"""Writes the snapshots of a run. A disk that is full for a while ends no training."""
import logging
import time
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.snapshot import checkpoint

log = logging.getLogger(__name__)
RETRY = 10  # seconds between two tries to write the last snapshot
PATIENCE = 20 * 60  # seconds of trying; the other processes of a run wait half an hour at most


class Saver:
    """Writes the snapshots of one folder.

    Args:
        folder: where they go.
        keep: how many of the last ones to keep, 0 for all.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder = folder
        self.keep = keep

    def remove_leftovers(self) -> None:
        """Delete the half-written files of killed runs. Only for the one process that writes here."""
        for path in sorted(self.folder.glob('snapshot_*.tmp')):
            path.unlink()
            log.info('removed %s, left behind by a run that was killed while writing it', path)

    def write(self, number: int, content: dict[str, Any], last: bool = False) -> bool:
        """Write snapshot_<number>.

        On a write error, warns and returns False; with `last`, retries for PATIENCE seconds.

        Returns:
            Whether it was written.
        Raises:
            UserError: the last snapshot could not be written.
        """
        path = checkpoint.snapshot_path(self.folder, number)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                checkpoint.write(path, content)
                break
            except OSError as error:
                fault = f'cannot write {path}: {error.strerror or error}'
            if not last:
                log.warning('%s; training goes on, make room before the next snapshot is due',
                            fault)
                return False
            if time.monotonic() >= deadline:
                raise UserError(f'{fault}; this state of the network is lost, earlier snapshots are '
                                'unchanged')
            log.warning('%s; make room: trying again every %d s for %d minutes', fault, RETRY,
                        PATIENCE // 60)
            time.sleep(RETRY)
        checkpoint.prune(self.folder, self.keep, number)
        log.info('wrote %s', path)
        return True
