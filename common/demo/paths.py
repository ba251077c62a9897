"""Paths as text: for messages, and for OpenCV's videos."""
from pathlib import Path

from common.errors import UserError


def printable(path: str | Path) -> str:
    """A path as text that every terminal can show: bytes of a file name that are not UTF-8 become escapes."""
    return str(path).encode(errors='backslashreplace').decode()


def opencv_path(path: str | Path) -> str:
    """A path as text for OpenCV's video functions.

    Raises:
        UserError: the name is not UTF-8; OpenCV 5.0 would crash the process.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise UserError(f'{printable(path)}: OpenCV needs names in UTF-8 for videos; rename it') from error
    return str(path)
