"""Writing images."""
from pathlib import Path

import cv2
import numpy as np

from common.errors import UserError
from common.files.whole import whole_file


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
