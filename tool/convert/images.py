"""The size of the images that a release holds."""
from collections.abc import Iterable
from pathlib import Path

from common.files.images import read_image
from tool.convert.damaged import DamagedItem


def first_image_size(paths: Iterable[Path]) -> tuple[int, int] | None:
    """(width, height), pixels, of the first image that can be read; None if there are no files.

    DamagedItem: there are some, and none of them can be read.
    """
    error = None
    for path in paths:
        try:
            image = read_image(path)
        except (OSError, ValueError) as problem:
            error = error or problem
            continue
        return image.shape[1], image.shape[0]
    if error is None:
        return None
    raise DamagedItem(f'none of the images there can be read: {error}; unpack them again') from error
