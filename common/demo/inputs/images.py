"""Reading image files of any kind; every message names the file."""
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from common.demo.inputs.exif import film_focal
from common.errors import UserError
from common.files.images import decode

IMAGE_SUFFIXES = frozenset(('.jpg', '.jpeg', '.jfif', '.png', '.bmp', '.gif', '.webp', '.tif', '.tiff', '.ppm',
                            '.pgm', '.jp2', '.avif', '.heic', '.heif'))


@dataclass
class Photo:
    """A decoded image file."""
    image: np.ndarray  # (H, W, 3) uint8 RGB
    film_focal: float | None = None  # EXIF FocalLengthIn35mmFilm, millimetres


def decode_image(data: bytes, name: str | Path) -> Photo:
    """Decode an image, turned as its file says: boxes are given in the image as people see it.

    Args:
        data: the content of an image file.
        name: its name, for messages.
    Raises:
        UserError: it is no image, is cut off, or has too many pixels.
    """
    try:
        image = decode(data, name, upright=True)
    except ValueError as error:
        raise UserError(str(error)) from error
    return Photo(image, stated_film_focal(data))


def stated_film_focal(data: bytes) -> float | None:
    """EXIF FocalLengthIn35mmFilm of an image file, millimetres; None where there is none."""
    array = np.frombuffer(data, np.uint8)
    try:  # the pixels are not needed
        _, kinds, blocks = cv2.imdecodeWithMetadata(array, flags=cv2.IMREAD_REDUCED_GRAYSCALE_8)
    except cv2.error:  # an eighth of fewer than eight pixels is nothing
        _, kinds, blocks = cv2.imdecodeWithMetadata(array, flags=cv2.IMREAD_GRAYSCALE)
    for kind, block in zip(kinds, blocks, strict=True):
        if kind == cv2.IMAGE_METADATA_EXIF:
            return film_focal(np.asarray(block, np.uint8).tobytes())
    return None


def read_image(path: str | Path) -> Photo:
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
