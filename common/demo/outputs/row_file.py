"""Arrays too long for the memory: rows go to a file one by one, are read back as a memory map, and end in an npz."""
import shutil
import zipfile

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

    def reader(self):
        """The bytes of all rows so far, as an open file."""
        self._file.flush()
        return open(self.path, 'rb')

    def close(self):
        """Delete the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def write_npz(path, arrays, row_files):
    """An npz without pickled objects, of arrays {name: array} and {name: RowFile}, the latter copied in pieces."""
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f'{name}.npy', 'w') as out:
                np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
        for name, rows in row_files.items():
            header = {'descr': '<f4', 'fortran_order': False, 'shape': (rows.count, *rows.shape)}
            with archive.open(f'{name}.npy', 'w', force_zip64=True) as out, rows.reader() as source:
                np.lib.format.write_array_header_1_0(out, header)
                shutil.copyfileobj(source, out, 1 << 20)
