"""Arrays in one file that processes map into memory: they share its pages, and only what is touched is read.

    8 bytes   MAGIC
    8 bytes   length of the header, and its CRC-32 (little-endian, 4 bytes each)
    header    JSON: {"size": of the file, "content": of the caller, "arrays": [[name, type, shape, start, CRC-32], ...]}
    arrays    each at a multiple of 64 bytes

Opening a file checks all of it, so that no damage passes as numbers.
"""
import json
import math
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from common.errors import one_line
from common.files.records import NUMBER_TYPES
from common.files.whole import whole_file

MAGIC = b'I2LMAP1\n'
LENGTHS = struct.Struct('<II')
START = len(MAGIC) + LENGTHS.size
MAX_HEADER = 2 ** 26  # bytes
ALIGNMENT = 64
PIECE = 2 ** 20  # bytes read at once; mapped pages would count as memory of the process
DAMAGED = (ValueError, LookupError, TypeError, OverflowError, RecursionError, struct.error)


def write_mapped(path: Path, content: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file whole or not at all.

    Args:
        path: The file.
        content: Plain values that go into its header.
        arrays: Of numbers, by name.
    Raises:
        OSError: The disk is full, failing or read-only.
    """
    places: list[tuple[str, str, tuple[int, ...], int, int]] = []
    position = 0  # counted from the end of the header, whose length depends on these numbers
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        places.append((name, array.dtype.str, array.shape, position, zlib.crc32(array.data)))
        position = _aligned(position + array.nbytes)
    header = json.dumps({'size': position, 'content': content, 'arrays': places}).encode()
    first = _aligned(START + len(header))
    with whole_file(path) as file:
        file.write(MAGIC + LENGTHS.pack(len(header), zlib.crc32(header)) + header)
        for (_, _, _, start, _), array in zip(places, arrays.values(), strict=True):
            _fill(file, first + start)
            file.write(np.ascontiguousarray(array).data)
        _fill(file, first + position)


def read_mapped(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """The content of the header and the arrays, mapped and read-only.

    The map outlives the file's name: a file that is replaced or deleted can be read to the end of the process.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is damaged, or another kind of file.
        OSError: It cannot be read.
    """
    with open(path, 'rb') as file:
        try:
            header, first = _read_header(file)
            whole = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
            arrays = {}
            for name, dtype, shape, start, checksum in header['arrays']:
                size = math.prod(shape) * np.dtype(dtype).itemsize
                if dtype[1:] not in NUMBER_TYPES or min(start, *shape) < 0 or start + size > header['size']:
                    raise ValueError(f'the array {name} is not within the file')
                if _checksum(file, first + start, size) != checksum:
                    raise ValueError(f'the array {name} is damaged')
                arrays[name] = whole[first + start:first + start + size].view(dtype).reshape(shape)
            return header['content'], arrays
        except DAMAGED as error:
            raise ValueError(f'{path} is damaged: {one_line(error)}') from error


def _read_header(file: IO[bytes]) -> tuple[Any, int]:
    """The header of an open file, and where its arrays begin. ValueError: it is damaged, or its size is another."""
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError('another kind of file')
    length, checksum = LENGTHS.unpack(file.read(LENGTHS.size))
    if length > MAX_HEADER:
        raise ValueError('its header is too long')
    text = file.read(length)
    if len(text) != length or zlib.crc32(text) != checksum:
        raise ValueError('its header')
    header = json.loads(text)
    first = _aligned(START + length)
    if first + header['size'] != os.fstat(file.fileno()).st_size:
        raise ValueError('its size')
    return header, first


def _checksum(file: IO[bytes], start: int, size: int) -> int:
    """CRC-32 of a part of an open file."""
    file.seek(start)
    checksum = 0
    while size > 0:
        piece = file.read(min(size, PIECE))
        if not piece:
            raise ValueError('it ends too early')
        checksum = zlib.crc32(piece, checksum)
        size -= len(piece)
    return checksum


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _fill(file: IO[bytes], position: int) -> None:
    """Write zeros up to a position."""
    file.write(bytes(position - file.tell()))
