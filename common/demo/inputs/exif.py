"""The one thing of an image's EXIF block that the demo needs besides the orientation: how wide the lens was."""
import struct

FOCAL_IN_35MM_FILM = 0xa405
EXIF_DIRECTORY = 0x8769
FORMATS = {3: 'H', 4: 'I'}  # types of single whole numbers: 2 and 4 bytes
LONGEST = 5000  # mm; no lens is longer
BYTE_ORDERS = {b'II': '<', b'MM': '>'}


def film_focal(block: bytes) -> float | None:
    """FocalLengthIn35mmFilm.

    Args:
        block: an EXIF block, which is laid out as a TIFF file.
    Returns:
        Millimetres: the focal length with which 35 mm film (36 x 24 mm) has the same field of view over the diagonal.
        None: not stated, 0 (which means unknown), too long for a lens, or the block is damaged.
    """
    order = BYTE_ORDERS.get(block[:2])
    if order is None:
        return None
    try:
        start, = struct.unpack_from(f'{order}I', block, 4)
        exif = _entries(block, start, order).get(EXIF_DIRECTORY)
        if exif is None:
            return None
        focal = _entries(block, exif, order).get(FOCAL_IN_35MM_FILM)
    except struct.error:  # it ends too early
        return None
    if not focal or focal > LONGEST:
        return None
    return float(focal)


def _entries(block: bytes, start: int, order: str) -> dict[int, int]:
    """{tag: value} of the single whole numbers of a directory. struct.error: the block ends before."""
    count, = struct.unpack_from(f'{order}H', block, start)
    found = {}
    for number in range(count):
        at = start + 2 + 12 * number
        tag, kind = struct.unpack_from(f'{order}HH', block, at)
        if kind in FORMATS:
            found[tag] = struct.unpack_from(f'{order}{FORMATS[kind]}', block, at + 8)[0]
    return found
