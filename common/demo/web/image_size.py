"""Width and height of a JPEG or PNG from its first bytes, before anything is decoded."""
import struct

PNG = b'\x89PNG\r\n\x1a\n'
# Start-of-frame markers of JPEG: all of 0xC0..0xCF but DHT, JPG and DAC.
FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def picture_size(data):
    """(width, height) in pixels of the JPEG or PNG in `data`, or None for anything else."""
    if data.startswith(PNG) and len(data) >= 24:
        return struct.unpack('>II', data[16:24])
    if data.startswith(b'\xff\xd8'):
        return _jpeg_size(data)
    return None


def _jpeg_size(data):
    """Walk the segments up to the one that starts the frame."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in FRAME_MARKERS:
            height, width = struct.unpack('>HH', data[at + 5:at + 9])
            return width, height
        else:
            at += 2 + struct.unpack('>H', data[at + 2:at + 4])[0]
    return None
