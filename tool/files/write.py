"""Files that the tools write, with a UserError that names the file."""
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import ArrayLike

from common.errors import UserError
from common.files.whole import write_text


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into a UserError that names `path`."""
    try:
        yield
    except OSError as error:
        raise UserError(f'cannot write {path} ({error.strerror or error}): choose another place') from error


def write_json(path: Path, content: object) -> None:
    """Write a JSON file whole or not at all; missing folders are made.

    Raises:
        UserError: The file cannot be written.
        ValueError: `content` has a number that is not finite.
    """
    text = json.dumps(content, allow_nan=False)
    with writing(path):
        write_text(path, text)


def write_image(path: Path, image: np.ndarray, quality: int = 95) -> None:
    """Write an image; missing folders are made.

    Args:
        path: The file to write; its ending names the format.
        image: (H, W, 3) uint8 RGB.
        quality: Of a JPEG, 0 to 100.
    Raises:
        UserError: The ending names no image format, or the file cannot be written.
    """
    try:
        _, data = cv2.imencode(path.suffix, image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    except cv2.error as error:
        raise UserError(f'cannot write {path}: the name must end with .png or .jpg') from error
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.tobytes())


def numbers(array: ArrayLike, digits: int = 6) -> list:
    """An array as nested lists for JSON, rounded: micrometres and microradians are enough, files are half as long."""
    return np.round(np.asarray(array, np.float64), digits).tolist()
