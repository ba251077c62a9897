"""Arrays in files: body models that somebody downloaded (.pkl or .npz), single arrays (.npy), results (.npz)."""
import mmap
import shutil
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from common.errors import UserError, one_line
from common.files.records import NUMBER_TYPES, kind_of, number_of_elements, to_array
from common.files.safe_pickle import SafeUnpickler

MAX_FILE_BYTES = 2 ** 30   # SMPL v1.1.0 has a quarter of that
MAX_ARCHIVE_MEMBERS = 100
END_OF_ARCHIVE = struct.Struct('<4s4H2LH')   # the last 22 bytes of a zip file without a comment
HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_arrays(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Read arrays of a body model file. Nothing in it is executed, and sizes are checked before memory is taken.

    Args:
        path: A pickle, or an archive as NumPy writes it.
        names: The arrays to read; those that the file lacks are left out.
    Returns:
        The arrays by name, sparse ones made dense, chumpy objects replaced by their values.
    Raises:
        UserError: The file is too large, damaged, not a model file, or holds objects of other kinds.
    """
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ValueError(f'{size} bytes are too many')
        with open(path, 'rb') as file:
            if file.read(2) == b'PK':
                return _read_archive(file, names)
            return _read_pickle(file, names)
    except (PermissionError, IsADirectoryError) as error:
        raise UserError(f'{path} cannot be read ({error.strerror}): see to its permissions') from error
    except Exception as error:   # a damaged or forged file can fail in any way
        raise UserError(f'{path} cannot be read as a body model: {one_line(error)}; download the file again and use '
                        'the official file as it is') from error


def _read_pickle(file: IO[bytes], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        stored = SafeUnpickler(content).load()
    if not isinstance(stored, dict):
        raise ValueError(f'it holds {kind_of(stored)} in place of a dictionary of arrays')
    return {name: to_array(stored[name]) for name in names if name in stored}


def _read_archive(file: IO[bytes], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    _check_archive_directory(file)
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        members = set(archive.namelist())
        for name in names:
            if f'{name}.npy' in members:
                with archive.open(f'{name}.npy') as member:
                    arrays[name] = read_npy(member)
    return arrays


def _check_archive_directory(file: IO[bytes]) -> None:
    """Check the number of members before zipfile reads the list of them."""
    file_size = file.seek(0, 2)
    file.seek(-min(file_size, END_OF_ARCHIVE.size + 20), 2)
    tail = file.read()
    mark, _, _, _, members, _, _, _ = END_OF_ARCHIVE.unpack(tail[-END_OF_ARCHIVE.size:])
    has_long_directory = tail.startswith(b'PK\x06\x07')
    if mark != b'PK\x05\x06' or has_long_directory or members > MAX_ARCHIVE_MEMBERS:
        raise ValueError('not an archive of the kind that NumPy writes, or a damaged one')


def read_npy(file: IO[bytes]) -> np.ndarray:
    """Read one array of numbers from an open file in the .npy format, no more of it than its header says.

    Raises:
        ValueError: Not such a file, an array of something other than numbers, or one that is too large.
    """
    version = np.lib.format.read_magic(file)
    if version not in HEADER_READERS:
        raise ValueError(f'version {version} of the format is unknown')
    shape, fortran_order, dtype = HEADER_READERS[version](file)
    if dtype.str[1:] not in NUMBER_TYPES:
        raise ValueError('an array of something other than numbers')
    size = number_of_elements(shape) * dtype.itemsize
    data = file.read(size)
    if len(data) != size:
        raise ValueError('an array that ends too early')
    return np.frombuffer(data, dtype).reshape(shape, order='F' if fortran_order else 'C')


def write_npz(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as a compressed .npz without pickled objects; memory maps of whole files are copied in pieces.

    The same as numpy.savez_compressed, at the fastest level of compression: a third of the time for meshes.
    """
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f'{name}.npy', 'w', force_zip64=True) as file:
                if isinstance(array, np.memmap) and array.filename is not None:
                    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
                    with open(array.filename, 'rb') as source:  # pages of the map would stay in memory
                        shutil.copyfileobj(source, file, 2 ** 20)
                else:
                    np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
