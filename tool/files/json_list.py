"""Long lists in JSON files, read one element at a time."""
import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from common.errors import UserError

CHUNK = 1 << 22  # characters that are read at a time
LONGEST = 16 * CHUNK  # characters of one element
NO_SEPARATOR = re.compile(r'[^\s,]')


def iter_json_list(path: Path, what: str) -> Iterator[Any]:
    """Yield the elements of the list in a JSON file, in the memory of a few elements.

    FreiHAND's vertex file has 76 million numbers: read at once it would take more than 3 GB.

    Args:
        path: The JSON file.
        what: What the file is and where it comes from, for the message.
    Raises:
        UserError: The file is missing, cannot be read, or is not a whole list.
    """
    try:
        with open(path, encoding='utf-8-sig') as file:
            yield from _elements(file)
    except FileNotFoundError:
        raise UserError(f'{path} is missing: {what}') from None
    except (OSError, ValueError) as error:
        raise UserError(f'{path} cannot be read ({error}): {what}') from error


def _elements(file: TextIO) -> Iterator[Any]:
    """Yield the elements of a list in JSON. ValueError: the text is not a whole list."""
    decoder = json.JSONDecoder()
    text = file.read(CHUNK).lstrip()
    if not text.startswith('['):
        raise ValueError('not a list')
    position = 1
    while True:
        end = len(text)
        start = NO_SEPARATOR.search(text, position)
        if start:
            if start[0] == ']':
                return
            position = start.start()
            with contextlib.suppress(ValueError):
                element, end = decoder.raw_decode(text, position)
        if end < len(text):  # a comma or a bracket follows: the last digits of a number are there
            yield element
            position = end
            continue
        piece = file.read(CHUNK)
        if not piece or len(text) - position > LONGEST:
            raise ValueError('cut off or broken')
        text = text[position:] + piece
        position = 0
