"""Reading annotation files: one clear line for a file that is missing, broken, or holds something else.

What is read here, or asked for, is noted: an index of samples (data/index.py) is as good as the files it was made of.
"""
import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from tqdm import tqdm

from common.errors import UserError, one_line
from common.files import json_text
from common.files.arrays import read_npy

Item = TypeVar('Item')
Stamp = list[int] | None  # size, times of the last changes of content and of anything, ns; folder: []; None: absent
_notes: list[dict[str, Stamp]] = []  # of the blocks of `noting` that are under way


@contextlib.contextmanager
def noting() -> Iterator[dict[str, Stamp]]:
    """Within the block, collect {path: stamp} of all files that the functions here read or look for."""
    notes: dict[str, Stamp] = {}
    _notes.append(notes)
    try:
        yield notes
    finally:
        _notes.remove(notes)


def stamp(path: Path | str) -> Stamp:
    """What tells that a file is still the one it was."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return []
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def is_there(path: Path | str) -> bool:
    """Whether a file or folder is there; noted, like a file that is read."""
    found = stamp(path)
    for notes in _notes:
        notes.setdefault(str(path), found)
    return found is not None


def require(path: Path | str, holds: str, avoid: str = '') -> Path:
    """The path, if the file is there. UserError: what it holds, and `avoid`, how to do without it."""
    path = Path(path)
    is_there(path)
    if path.is_dir():
        raise UserError(f'{path} is a folder, where a file belongs that holds {holds}: move it away. Where to get the '
                        f'file: python tool/check_assets.py')
    if not path.is_file():
        raise UserError(f'{path} is missing: it holds {holds}{"; " + avoid if avoid else ""}. Where to get it: '
                        f'python tool/check_assets.py')
    return path


def read_json(path: Path | str, holds: str, avoid: str = '',
              decode: Callable[[bytes], Any] = json_text.decode) -> Any:
    """Content of a JSON file, as `decode` gives it. UserError: missing (see `require`), not to be read, or no JSON."""
    try:
        with open(require(path, holds, avoid), 'rb') as file:
            return decode(json_text.without_mark(file.read()))
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:  # a number of 5000 digits is a ValueError of its own
        raise not_json(path, error) from error


def not_json(place: Path | str, error: Exception) -> UserError:
    """The UserError for a file, or a record in it, that is no JSON; `error` says why."""
    return UserError(f'{place} is not a JSON file ({one_line(error)}): download it again')


def unreadable(path: Path | str, error: OSError) -> UserError:
    """The UserError for a file that is there, and that the system does not let us read (OSError)."""
    return UserError(f'{path} cannot be read ({error.strerror or error}): see to its permissions, and to the disk')


def read_records(path: Path | str, kind: type, holds: str, avoid: str = '',
                 decode: Callable[[bytes], Any] = json_text.decode) -> Any:
    """What read_json reads, if it is a `kind`: dict or list. UserError otherwise."""
    content = read_json(path, holds, avoid, decode)
    if not isinstance(content, kind):
        names: dict[type, str] = {dict: 'dictionary', list: 'list'}
        raise UserError(f'{path} holds a {type(content).__name__} where a {names[kind]} belongs ({holds}): is it '
                        'another file under this name? Download it again')
    return content


def read_array(path: Path | str, shape: tuple[int, ...], holds: str) -> np.ndarray:
    """A float32 array of a .npy file. UserError: missing, unreadable, of another shape, or not finite."""
    path = require(path, holds)
    try:
        with open(path, 'rb') as file:
            array = read_npy(file)
    except OSError as error:
        raise unreadable(path, error) from error
    except Exception as error:  # NumPy parses the header as Python text: forged, it can fail in any way
        raise UserError(f'{path} is not an array file ({one_line(error)}): download it again') from error
    if array.shape != shape:
        raise UserError(f'{path} has the shape {array.shape}, expected {shape}: it belongs to another body model')
    if not np.isfinite(array).all():
        raise UserError(f'{path} has values that are not finite: download it again')
    return array.astype(np.float32)


def read_regressor(data_dir: Path | str, name: str, vertex_num: int) -> np.ndarray:
    """(17, V) joint regressor 'h36m' or 'coco' of SMPL, from the folder of its data set."""
    folder, file, joints = {'h36m': ('Human36M', 'J_regressor_h36m_correct.npy', 'Human3.6M'),
                            'coco': ('MSCOCO', 'J_regressor_coco_hip_smpl.npy', 'MS COCO')}[name]
    return read_array(Path(data_dir) / folder / file, (17, vertex_num), f'the {joints} joints of a mesh')


def progress(items: Sequence[Item], title: str) -> Iterable[Item]:
    """The items, with a progress bar on a terminal once they take more than a moment."""
    return tqdm(items, desc=title, unit='', unit_scale=True, delay=2, mininterval=1, leave=False, disable=None)
