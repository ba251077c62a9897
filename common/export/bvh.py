"""BVH files of a person's motion, for animation tools: a skeleton by names and offsets, and frames.

Units are metres, y is up. Every frame number from the first to the last has a line, gaps hold
still, and all are equally far apart in time, since the format has one frame time.
"""

import warnings

import numpy as np
from scipy.spatial.transform import Rotation

from common.errors import UserError
from common.export.figure import Figure, joint_motion, make_figure
from common.export.motion import Motion
from common.human_model.body_model import HumanModel

STILL_SECONDS = 1 / 30  # frame time of a motion of a single frame
MAX_LINES = 1_000_000  # of frames: nine hours of video


def person_bvh(human_model: HumanModel, motion: Motion) -> str:
    """The text of a BVH file.

    Raises UserError if the parameters do not fit the body model, or for too long a motion.
    """
    count = int(motion.frames[-1]) - int(motion.frames[0]) + 1
    if count > MAX_LINES:
        raise UserError(f'a BVH file has a line for each of {count} frames: {MAX_LINES} at most')
    figure = make_figure(human_model, motion.betas, motion.left_hand)
    rotations, root = joint_motion(human_model, figure, motion)
    frames = motion.frames[0] + np.arange(count)
    rows = np.searchsorted(motion.frames, frames, side='right') - 1  # of gaps: the frame before
    seconds = STILL_SECONDS
    if count > 1:
        seconds = (motion.times[-1] - motion.times[0]) / (count - 1)
    order = _depth_first(figure.parents)
    angles = _euler_angles(rotations[:, order])
    values = np.concatenate([root, angles.reshape(len(root), -1)], axis=1)[rows]
    lines = [' '.join(f'{value:.6f}' for value in line) for line in values.tolist()]
    head = [
        'HIERARCHY',
        *_skeleton(figure, 0, 0),
        'MOTION',
        f'Frames: {count}',
        f'Frame Time: {seconds:.9f}',
    ]
    return '\n'.join(head + lines) + '\n'


def _euler_angles(rotations: np.ndarray) -> np.ndarray:
    """(T, K, 3, 3) -> (T, K, 3) degrees about z, x and y, without jumps of 360."""
    with warnings.catch_warnings():
        # a turn of 90 degrees about x has many pairs of the other two angles; any one will do
        warnings.simplefilter('ignore', UserWarning)
        angles = Rotation.from_matrix(rotations.reshape(-1, 3, 3)).as_euler('ZXY', degrees=True)
    return np.unwrap(angles.reshape(*rotations.shape[:2], 3), period=360.0, axis=0)


def _depth_first(parents: tuple[int, ...], joint: int = 0) -> list[int]:
    """Joint numbers in the order in which a BVH file lists them: each followed by all below it."""
    found = [joint]
    for child, parent in enumerate(parents):
        if parent == joint:
            found += _depth_first(parents, child)
    return found


def _skeleton(figure: Figure, joint: int, depth: int) -> list[str]:
    """The lines of one joint and all below it.

    The root's offset is zero: its place is in the frames.
    """
    indent = '  ' * depth
    offset = figure.offsets[joint] if joint else np.zeros(3)
    channels = 'CHANNELS 3 Zrotation Xrotation Yrotation'
    if not joint:
        channels = 'CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation'
    lines = [
        f'{indent}{"JOINT" if joint else "ROOT"} {figure.names[joint]}',
        f'{indent}{{',
        f'{indent}  OFFSET {_numbers(offset)}',
        f'{indent}  {channels}',
    ]
    children = [child for child, parent in enumerate(figure.parents) if parent == joint]
    for child in children:
        lines += _skeleton(figure, child, depth + 1)
    if not children:
        lines += [
            f'{indent}  End Site',
            f'{indent}  {{',
            f'{indent}    OFFSET {_numbers(_end(figure, joint))}',
            f'{indent}  }}',
        ]
    return [*lines, f'{indent}}}']


def _end(figure: Figure, joint: int) -> np.ndarray:
    """(3,) metres from a joint without children to where its bone ends: amid what it moves."""
    weights = figure.weights[:, joint].astype(np.float64)
    return weights @ figure.vertices / max(weights.sum(), 1e-9) - figure.joints[joint]


def _numbers(values: np.ndarray) -> str:
    return ' '.join(f'{value:.6f}' for value in values.tolist())
