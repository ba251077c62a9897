"""Motions from what the demo has written: person_<n>.npz of a video, result.npz of an image."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from common.errors import UserError, one_line
from common.export.amass import BETAS, SHAPE
from common.export.motion import Motion, View, still
from common.files.arrays import read_npy

NUMBERS = (
    'poses',
    'betas',
    'trans',
    'trans_camera',
    'fps',
    'frames',
    'times',
    'left_hand',
    'focal',
    'princpt',
    'size',
    'pose',
    'frame',
)
TEXTS = ('gender', 'body_model', 'meta')
MAX_TEXT = 2**22  # bytes of a text in a file


@dataclass
class SavedPerson:
    """A person of a file: a name for new files, the body model and gender, and the motion."""

    name: str
    body_model: str
    gender: str
    motion: Motion


def read_people(path: str | Path) -> list[SavedPerson]:
    """The people of a file. UserError: it cannot be read, or has no pose."""
    path = Path(path)
    arrays = _read(path)
    try:
        if 'poses' in arrays:
            return [_person_of_video(path, arrays)]
        if 'pose' in arrays:
            return _people_of_image(path, arrays)
    except KeyError as error:
        raise UserError(
            f'{path}: not a result of this demo, or damaged: it has no {error}'
        ) from error
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(
            f'{path}: not a result of this demo, or damaged: {one_line(error)}'
        ) from error
    if 'meta' in arrays:
        raise UserError(
            f'{path} has no pose: it is a result of the lixel stage; run the demo with a snapshot '
            'of the param stage'
        )
    raise UserError(
        f'{path} has no pose: give a person_<n>.npz of a video or the result.npz of an image'
    )


def _person_of_video(path: Path, arrays: dict[str, np.ndarray]) -> SavedPerson:
    poses = arrays.get('pose', arrays['poses'])  # files of earlier versions have the latter alone
    frames = arrays.get('frames', np.arange(len(poses)))
    times = arrays.get('times')
    if times is None:
        fps = float(arrays['fps'])
        if not fps > 0:
            raise ValueError(f'{fps:g} frames per second')
        times = frames / fps
    betas = arrays['betas']
    if betas.shape == (BETAS,):
        betas = betas[:SHAPE]  # zeros are behind them
    view = None
    if 'focal' in arrays:
        height, width = (int(value) for value in arrays['size'])
        view = View(arrays['focal'], arrays['princpt'], (height, width))
    motion = Motion(
        poses,
        arrays.get('trans_camera', arrays['trans']),
        betas,
        times,
        frames,
        bool(arrays.get('left_hand', False)),
        view,
    )
    return SavedPerson(path.stem, str(arrays['body_model']), str(arrays['gender']), motion)


def _people_of_image(path: Path, arrays: dict[str, np.ndarray]) -> list[SavedPerson]:
    if 'frame' in arrays:
        raise UserError(
            f'{path} holds all people of a video: give one of the person_<n>.npz beside it'
        )
    head = json.loads(str(arrays['meta']))
    model = head['model']
    view = View(arrays['focal'], arrays['princpt'], (int(head['height']), int(head['width'])))
    left_hand = bool(model['left_hand'])
    rows = zip(arrays['pose'], arrays['trans'], arrays['betas'], strict=True)
    return [
        SavedPerson(
            f'person_{number}',
            str(model['body_model']),
            str(model['gender']),
            still(pose, trans, betas, left_hand, view),
        )
        for number, (pose, trans, betas) in enumerate(rows)
    ]


def _read(path: Path) -> dict[str, np.ndarray]:
    """The arrays that matter here, of a file that somebody may have sent."""
    try:
        with zipfile.ZipFile(path) as archive:
            there = set(archive.namelist())
            found = {}
            for name in (*NUMBERS, *TEXTS):
                if f'{name}.npy' in there:
                    with archive.open(f'{name}.npy') as member:
                        found[name] = read_npy(member) if name in NUMBERS else _read_text(member)
        return found
    except FileNotFoundError as error:
        raise UserError(f'{path}: no such file') from error
    except (PermissionError, IsADirectoryError) as error:
        raise UserError(
            f'{path} cannot be read ({error.strerror}): see to its permissions'
        ) from error
    except Exception as error:  # a damaged or forged file can fail in any way
        raise UserError(
            f'{path} cannot be read as an npz of this demo: {one_line(error)}'
        ) from error


def _read_text(member: IO[bytes]) -> np.ndarray:
    """A single text from an open file in the .npy format. ValueError: something else, or long."""
    np.lib.format.read_magic(member)
    shape, _, dtype = np.lib.format.read_array_header_1_0(member)
    if shape or dtype.kind != 'U' or dtype.itemsize > MAX_TEXT:
        raise ValueError('a text was expected')
    return np.frombuffer(member.read(dtype.itemsize), dtype).reshape(())
