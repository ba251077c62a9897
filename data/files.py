"""Reading annotation files: one clear line for a file that is missing, broken, or holds something else."""
import json
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError, one_line
from common.files.arrays import read_npy


def require(path: Path | str, holds: str, avoid: str = '') -> Path:
    """The path, if the file is there. UserError: what it holds, and `avoid`, how to do without it."""
    path = Path(path)
    if path.is_dir():
        raise UserError(f'{path} is a folder, where a file belongs that holds {holds}: move it away. Where to get the '
                        f'file: python tool/check_assets.py')
    if not path.is_file():
        raise UserError(f'{path} is missing: it holds {holds}{"; " + avoid if avoid else ""}. Where to get it: '
                        f'python tool/check_assets.py')
    return path


def read_json(path: Path | str, holds: str, avoid: str = '') -> Any:
    """Content of a JSON file. UserError: missing (see `require`), not to be read, or no JSON."""
    try:
        with open(require(path, holds, avoid), encoding='utf-8-sig') as file:
            return json.load(file)
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:  # a number of 5000 digits is a ValueError of its own
        raise UserError(f'{path} is not a JSON file ({error}): download it again') from error


def unreadable(path: Path | str, error: OSError) -> UserError:
    """The UserError for a file that is there, and that the system does not let us read (OSError)."""
    return UserError(f'{path} cannot be read ({error.strerror or error}): see to its permissions, and to the disk')


def read_records(path: Path | str, kind: type, holds: str, avoid: str = '') -> Any:
    """What read_json reads, if it is a `kind`: dict or list. UserError otherwise."""
    content = read_json(path, holds, avoid)
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
