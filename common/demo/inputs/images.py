"""Reading and writing pictures of any kind, with the path in every complaint."""
from pathlib import Path

import cv2
import numpy as np

from common.errors import UserError

IMAGE_SUFFIXES = frozenset('.jpg .jpeg .png .bmp .gif .webp .tif .tiff .ppm .pgm .jp2 .avif .heic .heif'.split())


def decode_image(data, name):
    """The picture in the bytes `data` as (H, W, 3) uint8 RGB.

    Grey becomes three equal channels, alpha is dropped, 16 bits become 8, and the EXIF orientation is applied: boxes
    are given in the picture as people see it. (The data sets, whose annotations belong to the stored pixels, ignore
    the orientation; see `common.utils.preprocessing`.) UserError, naming `name`, if this is no picture.
    """
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) if data else None
    except cv2.error as error:  # for example beyond OpenCV's limit on the number of pixels
        raise UserError(f'{name}: cannot be decoded ({error.err})') from error
    if image is None:
        raise UserError(f'{name}: not a picture that OpenCV can read (or broken); give a JPEG or PNG file')
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def read_image(path):
    """`decode_image` of a file. The file is opened by Python, so every path that the system allows works."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f'{path}: cannot be read ({error.strerror})') from error
    return decode_image(data, path)


def frame_count(path):
    """Number of pictures in a readable picture file: more than one in an animation, or in a TIFF with pages."""
    return max(cv2.imcount(str(path)), 1) if str(path).isprintable() else 1  # OpenCV takes names in UTF-8 only


def encode_jpeg(image, quality=92):
    """(H, W, 3) uint8 RGB -> JPEG bytes."""
    return cv2.imencode('.jpg', image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def write_image(path, image):
    """Write an RGB picture as JPEG."""
    Path(path).write_bytes(encode_jpeg(image))
