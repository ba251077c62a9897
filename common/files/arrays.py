"""Arrays from a body model file that somebody downloaded: a pickle (.pkl) or a NumPy archive (.npz)."""
import mmap
import struct
import zipfile
from pathlib import Path

import numpy as np

from common.errors import UserError, one_line
from common.files.records import NUMBER_TYPES, number_of_elements, to_array
from common.files.safe_pickle import SafeUnpickler

MAX_FILE_BYTES = 2 ** 30   # SMPL v1.1.0 has a quarter of that
MAX_ARCHIVE_MEMBERS = 100
END_OF_ARCHIVE = struct.Struct('<4s4H2LH')   # the last 22 bytes of a zip file without a comment


def read_arrays(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The arrays of those `names` that the file has, sparse ones made dense, chumpy objects replaced by their values.

    Nothing in the file is executed, objects are refused, and sizes are checked before memory is taken.
    Raises UserError for a file that is too large, damaged, not a model file, or asks for something forbidden.
    """
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ValueError(f'{size} bytes are too many')
        with open(path, 'rb') as file:
            is_archive = file.read(2) == b'PK'
            return (_read_archive if is_archive else _read_pickle)(file, names)
    except (PermissionError, IsADirectoryError) as error:
        raise UserError(f'{path} cannot be read ({error.strerror}): see to its permissions') from error
    except Exception as error:   # a damaged or forged file can fail in any way
        raise UserError(f'{path} cannot be read as a body model: {one_line(error)}; download the file again') from error


def _read_pickle(file, names):
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        stored = SafeUnpickler(content).load()
    if not isinstance(stored, dict):
        raise ValueError('it does not hold a dictionary')
    return {name: to_array(stored[name]) for name in names if name in stored}


def _read_archive(file, names):
    _check_archive_directory(file)
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        members = set(archive.namelist())
        for name in names:
            if f'{name}.npy' in members:
                with archive.open(f'{name}.npy') as member:
                    arrays[name] = read_npy(member)
    return arrays


def _check_archive_directory(file):
    """Look at the length of the list of members before zipfile reads all of it."""
    file.seek(-min(file.seek(0, 2), END_OF_ARCHIVE.size + 20), 2)
    tail = file.read()
    mark, _, _, _, members, _, _, _ = END_OF_ARCHIVE.unpack(tail[-END_OF_ARCHIVE.size:])
    has_long_directory = tail.startswith(b'PK\x06\x07')
    if mark != b'PK\x05\x06' or has_long_directory or members > MAX_ARCHIVE_MEMBERS:
        raise ValueError('not an archive of the kind that NumPy writes, or a damaged one')


def read_npy(member):
    """One array of numbers from an open file in the .npy format; ValueError if it is none or too large.

    The header says how large it is; no more than that is read.
    """
    version = np.lib.format.read_magic(member)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read_header:
        raise ValueError(f'version {version} of the format is unknown')
    shape, fortran_order, dtype = read_header[version](member)
    if dtype.str[1:] not in NUMBER_TYPES:
        raise ValueError('an array of something other than numbers')
    size = number_of_elements(shape) * dtype.itemsize
    data = member.read(size)
    if len(data) != size:
        raise ValueError('an array that ends too early')
    return np.frombuffer(data, dtype).reshape(shape, order='F' if fortran_order else 'C')
