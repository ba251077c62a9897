"""Arrays too long for the memory: rows go to a file one by one, are read back as a memory map, and end in an npz."""
import numpy as np


class RowFile:
    """A growing float32 array (N, *shape) on disk."""

    def __init__(self, path, shape):
        self.path, self.shape, self.count = path, tuple(shape), 0
        self._file = open(path, 'wb')

    def append(self, row):
        """Add one row of the given shape."""
        self._file.write(np.ascontiguousarray(np.broadcast_to(row, self.shape), np.float32).tobytes())
        self.count += 1

    def array(self, mode='r'):
        """All rows so far as a memory map (N, *shape); mode 'r+' to change them in place."""
        self._file.flush()
        if not self.count:
            return np.zeros((0, *self.shape), np.float32)
        return np.memmap(self.path, np.float32, mode, shape=(self.count, *self.shape))

    def close(self):
        """Delete the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)
