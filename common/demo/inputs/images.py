"""Reading image files of any kind; every message names the file."""
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from common.demo.inputs import avif
from common.demo.inputs.exif import film_focal
from common.errors import UserError
from common.files.images import check_end

IMAGE_SUFFIXES = frozenset(('.jpg', '.jpeg', '.jfif', '.png', '.bmp', '.gif', '.webp', '.tif', '.tiff', '.ppm',
                            '.pgm', '.jp2', '.avif', '.heic', '.heif'))


@dataclass
class Photo:
    """A decoded image file."""
    image: np.ndarray  # (H, W, 3) uint8 RGB
    film_focal: float | None = None  # EXIF FocalLengthIn35mmFilm, millimetres


def decode_image(data: bytes, name: str | Path) -> Photo:
    """Decode an image file.

    Grey becomes three equal channels, alpha is dropped, 16 bits become 8, and the orientation that the file states is
    applied: boxes are given in the image as people see it. (The data sets, whose annotations belong to the stored
    pixels, ignore the orientation; see `common.utils.preprocessing`.)

    Args:
        data: the content of an image file.
        name: its name, for messages.
    Raises:
        UserError: OpenCV cannot read it, it is cut off, or it has too many pixels (limit: `common/__init__.py`).
    """
    try:
        check_end(data, name)
    except ValueError as error:
        raise UserError(str(error)) from error
    image = None
    focal = None
    try:
        if data:
            flags = cv2.IMREAD_COLOR
            if avif.is_avif(data):
                flags |= cv2.IMREAD_IGNORE_ORIENTATION
            image, kinds, blocks = cv2.imdecodeWithMetadata(np.frombuffer(data, np.uint8), flags=flags)
            for kind, block in zip(kinds, blocks, strict=True):
                if kind == cv2.IMAGE_METADATA_EXIF:
                    focal = film_focal(np.asarray(block, np.uint8).tobytes())
    except cv2.error as error:
        raise UserError(f'{name}: cannot be decoded ({error.err})') from error
    if image is None:
        raise UserError(f'{name}: not an image that OpenCV can read (or broken); give a JPEG or PNG file')
    image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    if avif.is_avif(data):
        image = avif.upright(image, data)
    return Photo(image, focal)


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
