"""Writing npz files, also of arrays too long for the memory, whose rows wait in a file of their own."""
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import ArrayLike


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

    def reader(self) -> BinaryIO:
        """The bytes of all rows so far, as an open file."""
        self._file.flush()
        return open(self.path, 'rb')

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def write_npz(path: Path, arrays: Mapping[str, ArrayLike],
              row_files: Mapping[str, RowFile] | None = None) -> None:
    """Write a compressed npz without pickled objects; row files are copied in pieces."""
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f'{name}.npy', 'w') as out:
                np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
        for name, rows in (row_files or {}).items():
            header = {'descr': '<f4', 'fortran_order': False, 'shape': (rows.count, *rows.shape)}
            with archive.open(f'{name}.npy', 'w', force_zip64=True) as out, rows.reader() as source:
                np.lib.format.write_array_header_1_0(out, header)
                shutil.copyfileobj(source, out, 1 << 20)
