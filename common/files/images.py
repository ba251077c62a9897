"""Reading and writing images."""
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from common.errors import UserError
from common.files import avif, tiff
from common.files.whole import whole_file

JPEG_START = b'\xff\xd8'
JPEG_END = b'\xff\xd9'
JPEG_SCAN = 0xda  # the marker before the compressed pixels
STORED = cv2.IMREAD_IGNORE_ORIENTATION | cv2.IMREAD_COLOR_RGB


def read_image(path: str | Path, shape: Sequence[float] | None = None) -> np.ndarray:
    """Read a whole image as it is stored, whatever orientation it states: annotations count stored pixels.

    Args:
        path: The file.
        shape: (height, width) that the annotations state, if they do. Where only the image turned as its file says
            has that size, that is the one they belong to.
    Returns:
        (H, W, 3) uint8 RGB.
    Raises:
        FileNotFoundError: The file is missing.
        ValueError: The file is not an image, is cut off, has too many pixels, or another size than stated. The message
            names the path.
    """
    with open(path, 'rb') as file:
        data = file.read()
    image = decode(data, path)
    if shape is not None and image.shape[:2] != tuple(shape):
        turned = image
        if image.shape[1::-1] == tuple(shape):
            turned = decode(data, path, upright=True)
        check_size(turned, shape, path)
        image = turned
    return image


def decode(data: bytes, name: str | Path, upright: bool = False) -> np.ndarray:
    """Decode a whole image. Grey becomes three equal channels, alpha is dropped, 16 bits become 8.

    Args:
        data: The content of its file.
        name: Of the file, for messages.
        upright: Turn it as its file says; otherwise it stays as it is stored.
    Returns:
        (H, W, 3) uint8 RGB.
    Raises:
        ValueError: It is not an image, is cut off or has too many pixels (limit: `common/__init__.py`).
    """
    check_end(data, name)
    flags = STORED
    if not upright:
        data = tiff.without_orientation(data)
    elif not avif.is_avif(data):
        flags = cv2.IMREAD_COLOR_RGB
    image = None
    try:
        if data:
            image = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error as error:  # beyond the limit on the number of pixels
        raise ValueError(f'{name} cannot be decoded ({" ".join(error.err.split())})') from error
    if image is None:
        raise ValueError(f'{name} is not an image that OpenCV can read (or broken): give a JPEG or PNG file')
    if upright and avif.is_avif(data):
        image = avif.upright(image, data)
    return image


def check_end(data: bytes, path: str | Path) -> None:
    """ValueError for a JPEG (the content of its file) that has no end: decoders make what is missing grey.

    The other formats need no such check: their decoders refuse a file that is cut off.
    """
    if data[:2] != JPEG_START or data[-2:] == JPEG_END:
        return
    start = _scan_start(data)
    if start is None or data.find(JPEG_END, start) < 0:  # some cameras put more after the end
        raise ValueError(f'{path} is cut off: a JPEG without its end; get it again')


def _scan_start(data: bytes) -> int | None:
    """Where the pixels of a JPEG begin: after its header, which may hold a thumbnail with an end of its own."""
    position = 2
    while position + 4 <= len(data) and data[position] == 0xff:
        marker = data[position + 1]
        if marker == JPEG_SCAN:
            return position
        if marker == 0xff:  # padding
            position += 1
        else:
            position += 2 + int.from_bytes(data[position + 2:position + 4], 'big')
    return None


def check_size(image: np.ndarray, shape: Sequence[float], path: str | Path) -> None:
    """ValueError for an image (H, W, 3) of another (height, width) than the annotations state."""
    height, width = image.shape[:2]
    if (height, width) != tuple(shape):
        raise ValueError(f'{path} is {width} x {height} pixels large, the annotations say {shape[1]} x {shape[0]}')


def write_image(path: str | Path, image: np.ndarray, quality: int = 95) -> None:
    """Write an image whole or not at all, in the format that the file name's ending names.

    Args:
        path: The file to write; missing folders are made.
        image: (H, W, 3) uint8 RGB.
        quality: Of a JPEG, 0 to 100.
    Raises:
        UserError: The ending names no image format, or the file cannot be written.
    """
    path = Path(path)
    options = []
    if path.suffix in ('.jpg', '.jpeg'):
        options = [cv2.IMWRITE_JPEG_QUALITY, quality]
    try:
        _, data = cv2.imencode(path.suffix, image[..., ::-1], options)
    except cv2.error as error:
        raise UserError(f'cannot write {path}: the name must end with .png or .jpg') from error
    try:
        with whole_file(path, sync=False) as file:
            file.write(data.tobytes())
    except OSError as error:
        raise UserError(f'cannot write {path} ({error.strerror or error}): choose another place') from error
