"""Reading image files of any kind; every message names the file."""
from pathlib import Path

import cv2
import numpy as np

from common.errors import UserError
from common.files.images import decode

IMAGE_SUFFIXES = frozenset(('.jpg', '.jpeg', '.jfif', '.png', '.bmp', '.gif', '.webp', '.tif', '.tiff', '.ppm',
                            '.pgm', '.jp2', '.avif', '.heic', '.heif'))


def decode_image(data: bytes, name: str | Path) -> np.ndarray:
    """Decode an image, turned as its file says: boxes are given in the image as people see it.

    Args:
        data: the content of an image file.
        name: its name, for messages.
    Returns:
        (H, W, 3) uint8 RGB.
    Raises:
        UserError: it is no image, is cut off, or has too many pixels.
    """
    try:
        return decode(data, name, upright=True)
    except ValueError as error:
        raise UserError(str(error)) from error


def read_image(path: str | Path) -> np.ndarray:
    """`decode_image` of a file. Python opens it, so every path that the system allows works."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f'{path}: cannot be read ({error.strerror})') from error
    return decode_image(data, path)


def frame_count(path: str | Path) -> int:
    """The number of images in a readable image file: more than one in an animation, or in a TIFF with pages."""
    if not str(path).isprintable():  # OpenCV takes names in UTF-8 only
        return 1
    return max(cv2.imcount(str(path)), 1)
