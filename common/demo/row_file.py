"""Arrays too long for the memory: rows go to a file one by one and are read back as a memory map."""
from pathlib import Path
from typing import Literal

import numpy as np


class RowFile:
    """A growing float32 array (N, *shape) on disk.

    Args:
        path: of the file; it is deleted by `close`.
        shape: of a row.
    """

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.path = path
        self.shape = tuple(shape)
        self.count = 0
        self._file = open(path, 'wb')

    def append(self, row: np.ndarray) -> None:
        """Add one row of the given shape."""
        self._file.write(np.ascontiguousarray(np.broadcast_to(row, self.shape), np.float32).tobytes())
        self.count += 1

    def array(self, mode: Literal['r', 'r+'] = 'r') -> np.ndarray:
        """All rows so far as a memory map (N, *shape); mode 'r+' to change them in place."""
        self._file.flush()
        if not self.count:
            return np.zeros((0, *self.shape), np.float32)
        return np.memmap(self.path, np.float32, mode, shape=(self.count, *self.shape))

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)
