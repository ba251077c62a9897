"""Reading image files of any kind; every message names the file."""
from pathlib import Path

import cv2
import numpy as np

from common.demo.inputs import avif
from common.errors import UserError
from common.files.images import check_end

IMAGE_SUFFIXES = frozenset(('.jpg', '.jpeg', '.jfif', '.png', '.bmp', '.gif', '.webp', '.tif', '.tiff', '.ppm',
                            '.pgm', '.jp2', '.avif', '.heic', '.heif'))


def decode_image(data: bytes, name: str | Path) -> np.ndarray:
    """Decode an image.

    Grey becomes three equal channels, alpha is dropped, 16 bits become 8, and the orientation that the file states is
    applied: boxes are given in the image as people see it. (The data sets, whose annotations belong to the stored
    pixels, ignore the orientation; see `common.utils.preprocessing`.)

    Args:
        data: the content of an image file.
        name: its name, for messages.
    Returns:
        (H, W, 3) uint8 RGB.
    Raises:
        UserError: OpenCV cannot read it, it is cut off, or it has too many pixels (limit: `common/__init__.py`).
    """
    try:
        check_end(data, name)
    except ValueError as error:
        raise UserError(str(error)) from error
    image = None
    try:
        if data:
            flags = cv2.IMREAD_COLOR
            if avif.is_avif(data):
                flags |= cv2.IMREAD_IGNORE_ORIENTATION
            image = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error as error:
        raise UserError(f'{name}: cannot be decoded ({error.err})') from error
    if image is None:
        raise UserError(f'{name}: not an image that OpenCV can read (or broken); give a JPEG or PNG file')
    image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    if avif.is_avif(data):
        image = avif.upright(image, data)
    return image


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
