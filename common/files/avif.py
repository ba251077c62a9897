"""How an AVIF image has to be turned to be upright: OpenCV decodes the pixels as they are stored.

The file is a tree of boxes (ISO/IEC 14496-12): a length of 4 bytes, a type of 4 letters, the content. The properties
`irot` and `imir` (ISO/IEC 23008-12) of the primary item turn and mirror it; the orientation of its EXIF block does not
count.
"""
import struct
from collections.abc import Iterator

import numpy as np

BRANDS = (b'avif', b'avis')
FULL_BOX = 4  # bytes of version and flags, before the content of some boxes


def is_avif(data: bytes) -> bool:
    """Whether the content of a file begins as an AVIF image does."""
    if data[4:8] != b'ftyp':
        return False
    brands = data[8:int.from_bytes(data[:4], 'big')]
    return any(brand in brands for brand in BRANDS)


def upright(image: np.ndarray, data: bytes) -> np.ndarray:
    """Turn and mirror an image as its file says.

    Args:
        image: (H, W, 3), as it is stored.
        data: the content of the AVIF file. Where its boxes are damaged, the image stays as it is.
    Returns:
        (H, W, 3) or (W, H, 3).
    """
    try:
        properties = _properties(data)
    except (struct.error, IndexError, KeyError):
        return image
    for kind, content in properties:
        if kind == b'irot':
            image = np.rot90(image, content[0] & 3)  # quarter turns, anticlockwise
        if kind == b'imir':
            image = np.flip(image, content[0] & 1)  # 0: top and bottom change places
    return np.ascontiguousarray(image)


def _properties(data: bytes) -> list[tuple[bytes, bytes]]:
    """(type, content) of the properties of the primary item, in the order in which they apply."""
    meta = dict(_boxes(dict(_boxes(data))[b'meta'][FULL_BOX:]))
    primary = _number(meta[b'pitm'], FULL_BOX, 4 if meta[b'pitm'][0] else 2)
    described = list(_boxes(meta[b'iprp']))
    properties = list(_boxes(dict(described)[b'ipco']))
    found = []
    for kind, content in described:
        if kind == b'ipma':
            found += [properties[index - 1] for index in _associations(content, primary) if index]
    return found


def _associations(ipma: bytes, item: int) -> list[int]:
    """Numbers, from 1, of the properties that an `ipma` box gives to an item."""
    id_size = 4 if ipma[0] else 2
    index_size = 2 if ipma[3] & 1 else 1
    essential = 1 << (8 * index_size - 1)  # the highest bit of each number
    at = FULL_BOX + 4
    found = []
    for _ in range(_number(ipma, FULL_BOX, 4)):
        this = _number(ipma, at, id_size)
        count = ipma[at + id_size]
        at += id_size + 1
        for _ in range(count):
            if this == item:
                found.append(_number(ipma, at, index_size) % essential)
            at += index_size
    return found


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(type, content) of the boxes that lie one after the other."""
    at = 0
    while at + 8 <= len(data):
        size, kind = struct.unpack_from('>I4s', data, at)
        start = at + 8
        if size == 1:
            size = struct.unpack_from('>Q', data, start)[0]
            start += 8
        end = at + size
        if size == 0:  # up to the end
            end = len(data)
        if end < start:
            return
        yield kind, data[start:end]
        at = end


def _number(data: bytes, at: int, size: int) -> int:
    """The big-endian number of so many bytes. IndexError: the data end before."""
    if at + size > len(data):
        raise IndexError
    return int.from_bytes(data[at:at + size], 'big')
