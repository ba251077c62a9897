"""The official sequence files of 3DPW, checked."""
import mmap
from pathlib import Path
from typing import Any

import numpy as np

from common.files.records import Record, kind_of, to_array
from common.files.safe_pickle import SafeUnpickler
from data.checks.limits import fit_fault
from data.sample import Fit
from tool.convert.damaged import DamagedItem

GENDERS = {'m': 'male', 'f': 'female', 'n': 'neutral', 'male': 'male', 'female': 'female',
           'neutral': 'neutral'}
FIELDS = ('poses', 'trans', 'betas', 'genders', 'cam_poses', 'cam_intrinsics', 'campose_valid')


def plain(value: Any) -> Any:
    """A value of a sequence file, or the values of a list, with its arrays as NumPy arrays."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Record):
        return to_array(value)
    return value


def read_sequence(path: Path) -> dict[str, Any]:
    """Read and check one official sequence file; nothing in the pickle is executed.

    Returns:
        FIELDS, `sequence` (its name) and `poses2d` (None where the file has none). Lists have one entry per person.
    Raises:
        DamagedItem: The file is broken, or not a 3DPW sequence.
    """
    try:
        with open(path, 'rb') as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            stored = SafeUnpickler(content).load()
        if not isinstance(stored, dict):
            raise ValueError(f'it holds {kind_of(stored)}')
        sequence = {field: plain(stored[field]) for field in FIELDS}
        sequence['poses2d'] = plain(stored.get('poses2d'))
    except KeyError as error:
        raise DamagedItem(f'{path} is not a 3DPW sequence: it lacks {error}') from error
    except Exception as error:  # a damaged or forged file can fail in any way
        raise DamagedItem(f'{path} is broken ({error}): unpack sequenceFiles.zip of 3DPW again') from error
    sequence['sequence'] = str(stored.get('sequence', path.stem))
    try:
        _check_sequence(sequence, path)
    except (TypeError, IndexError, AttributeError) as error:
        raise DamagedItem(f'{path} is not laid out as a 3DPW sequence ({error})') from error
    return sequence


def _check_sequence(sequence: dict[str, Any], path: Path) -> None:
    """DamagedItem: an array of a sequence has another shape than it should have."""
    frames = len(sequence['cam_poses'])
    shapes = {'poses': (frames, 72), 'trans': (frames, 3), 'campose_valid': (frames,)}
    for field, shape in {'cam_poses': (frames, 4, 4), 'cam_intrinsics': (3, 3)}.items():
        if np.shape(sequence[field]) != shape:
            raise DamagedItem(f'{path}: {field} has the shape {np.shape(sequence[field])}, not {shape}')
    for person, gender in enumerate(sequence['genders']):
        if gender not in GENDERS:
            raise DamagedItem(f'{path}: person {person} has the gender "{gender}", known are m and f')
        for field, shape in shapes.items():
            found = np.shape(sequence[field][person])
            if found != shape:
                raise DamagedItem(f'{path}: {field} of person {person} has the shape {found}, not {shape}')
        if sequence['poses2d'] is not None:
            found = np.shape(sequence['poses2d'][person])
            if len(found) != 3 or found[0] != frames or 3 not in found[1:]:
                raise DamagedItem(f'{path}: poses2d of person {person} has the shape {found}, not ({frames}, 3, 18)')
        fault = fit_fault(Fit(np.zeros(72), body_shape(sequence, person), np.zeros(3)), None)
        if fault:
            raise DamagedItem(f'{path}: betas of person {person}: {fault}')


def body_shape(sequence: dict[str, Any], person: int) -> np.ndarray:
    """The shape coefficients (10,) of a person; some files hold 300. IndexError: there are fewer."""
    return np.asarray(sequence['betas'][person], np.float64).reshape(-1)[np.arange(10)]


def visible_frames(sequence: dict[str, Any], person: int) -> np.ndarray:
    """Indices of the frames with a valid camera pose in which the person was seen (one 2-D keypoint or more).

    Frames with impossible values (data/checks/limits.py) are left out. Where all 2-D keypoints of a sequence are zero
    or absent, who is visible is unknown, and all frames count.
    """
    valid = np.asarray(sequence['campose_valid'][person]).astype(bool)
    for frame in np.flatnonzero(valid):
        camera = sequence['cam_poses'][frame]
        fit = Fit(sequence['poses'][person][frame], np.zeros(10), sequence['trans'][person][frame],
                  R=camera[:3, :3], t=camera[:3, 3])
        valid[frame] = fit_fault(fit, None) is None
    poses2d = sequence['poses2d']
    if poses2d is not None and any(np.any(points) for points in poses2d):
        points = np.asarray(poses2d[person])  # (frames, 3, 18): x, y, confidence
        confidence = points[:, 2] if points.shape[1] == 3 else points[:, :, 2]
        valid &= (confidence > 0).any(1)
    return np.flatnonzero(valid)
