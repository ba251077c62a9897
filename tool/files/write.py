"""Files that the tools write, with a UserError that names the file."""
import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from common.errors import UserError
from common.files import whole


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
    with writing(path):
        whole.write_json(path, content)


def numbers(array: ArrayLike, digits: int = 6) -> list:
    """An array as nested lists for JSON, rounded: micrometres and microradians are enough, files are half as long."""
    return np.round(np.asarray(array, np.float64), digits).tolist()
