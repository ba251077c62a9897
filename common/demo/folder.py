"""Result folders that appear whole or not at all, and never on top of another picture's results."""
import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from common.errors import UserError

RECORD = 'result.json'


def printable(path):
    """A path as text that every terminal takes: what is no UTF-8 in a file's name is written as an escape."""
    return str(path).encode(errors='backslashreplace').decode()


def free_name(parent, name, source, taken=()):
    """A folder name for the results of the file `source`: `name`, or `name_2`, `name_3`, ... if that one is taken.

    A folder whose result.json names the same source is a former run's and may be replaced; one of another source, one
    that holds no result, and the names in `taken` may not. Dots at the ends go: `.` and `..` are no names.
    """
    name = name.strip('.') or 'picture'
    number = 1
    while True:
        candidate = name if number == 1 else f'{name}_{number}'
        if candidate not in taken and _replaceable(Path(parent) / candidate, source):
            return candidate
        number += 1


def _replaceable(folder, source):
    if not os.path.lexists(folder):
        return True
    try:
        return json.loads((folder / RECORD).read_text(encoding='utf-8'))['source'] == str(source)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def opencv_path(path):
    """A path as text for OpenCV's videos, which crash the process (5.0) over a name that is not UTF-8: UserError."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise UserError(f'{printable(path)}: OpenCV needs names in UTF-8 for videos; rename it') from error
    return str(path)


@contextlib.contextmanager
def whole_folder(parent, name):
    """A new folder to write into, which becomes `parent/name` when the block ends, in place of one that is there.

    After an exception nothing is left behind. UserError if the folder cannot be made.
    """
    parent = Path(parent)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix='.writing-', dir=parent))
    except OSError as error:
        raise UserError(f'{parent}: cannot write there ({error.strerror})') from error
    try:
        (work / 'new').mkdir()
        yield work / 'new'
        target = parent / name
        if target.exists():
            target.rename(work / 'old')
        (work / 'new').rename(target)
    except OSError as error:
        raise UserError(f'{parent / name}: cannot write there ({error.strerror or error})') from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
