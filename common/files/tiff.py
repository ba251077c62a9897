"""The orientation that a TIFF image states: OpenCV's decoder always follows it.

The file begins with its byte order, 42 and the place of a directory: the number of its entries, then 12 bytes each,
with tag, type, count and value (TIFF 6.0, section 2).
"""
import struct

ORIENTATION = 274  # tag
UPRIGHT = 1
BYTE_ORDERS = {b'II*\0': '<', b'MM\0*': '>'}


def without_orientation(data: bytes) -> bytes:
    """The content of a TIFF file that states no orientation; anything else, and damaged files, as they are."""
    order = BYTE_ORDERS.get(data[:4])
    if order is None:
        return data
    try:
        start = struct.unpack_from(f'{order}I', data, 4)[0]
        count = struct.unpack_from(f'{order}H', data, start)[0]
        for entry in range(start + 2, start + 2 + 12 * count, 12):
            if struct.unpack_from(f'{order}H', data, entry)[0] == ORIENTATION:
                value = struct.pack(f'{order}H', UPRIGHT)
                return data[:entry + 8] + value + data[entry + 10:]
    except struct.error:
        pass
    return data
