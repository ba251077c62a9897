"""A person's parameters over time, and the camera that saw them: what figures are made of."""

from dataclasses import dataclass

import numpy as np

from common.errors import UserError

POSEDIRS = ('leave_out', 'morph')  # what figures do with the pose-dependent corrections


@dataclass
class View:
    """A pinhole camera at the origin of camera space.

    Attributes:
        focal, princpt: (2,) pixels. size: (height, width) of the image, pixels.
    """

    focal: np.ndarray
    princpt: np.ndarray
    size: tuple[int, int]

    def __post_init__(self) -> None:
        numbers = (*self.focal, *self.princpt, *self.size)
        if not np.isfinite(numbers).all() or len(numbers) != 6:
            raise UserError('a camera needs two focal lengths, a principal point and a size')
        if min(*self.focal, *self.size) <= 0:
            raise UserError('the focal lengths and the size of a camera must be positive')


@dataclass
class Motion:
    """One person in T frames: a body model's parameters, in camera space.

    Attributes:
        poses: (T, K * 3) axis-angle, radians; the root's rotation is in camera space (x right,
            y down, z forward).
        trans: (T, 3) metres: body_model(pose, betas) + trans is the mesh in camera space.
        betas: (10,) the person's shape.
        times: (T,) seconds, increasing. frames: (T,) integers, the numbers of the frames,
            increasing; those left out are gaps.
        left_hand: the parameters are of the mirrored image; x of what they give is negated.
        view: the camera, None if it is not known.
    """

    poses: np.ndarray
    trans: np.ndarray
    betas: np.ndarray
    times: np.ndarray
    frames: np.ndarray
    left_hand: bool = False
    view: View | None = None

    def __post_init__(self) -> None:
        rows = 0
        if np.ndim(self.frames) == 1 and np.asarray(self.frames).dtype.kind in 'iu':
            rows = len(self.frames)
        shapes = {
            'frames': (rows,),
            'times': (rows,),
            'trans': (rows, 3),
            'poses': (rows, *np.shape(self.poses)[1:2]),
        }
        for what, shape in shapes.items():
            if np.shape(getattr(self, what)) != shape or not rows:
                raise UserError(
                    'a motion needs numbers of frames, and a time, translation (3) and pose for '
                    f'each; its {what} have the shape {np.shape(getattr(self, what))}'
                )
        for what in ('poses', 'trans', 'betas', 'times'):
            if not np.isfinite(getattr(self, what)).all():
                raise UserError(f'the motion has {what} that are not finite numbers')
        if (np.diff(self.times) <= 0).any() or (np.diff(self.frames) <= 0).any():
            raise UserError(
                'the frames of a motion must be in the order of their times, each of them once'
            )

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """(first, last) number of the frames of each gap inside the motion."""
        after = np.flatnonzero(np.diff(self.frames) > 1)
        return [(int(self.frames[i]) + 1, int(self.frames[i + 1]) - 1) for i in after]

    def keys(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and times (seconds) of the key frames.

        They are all frames, and at the end of each gap the frame before it once more, so that the
        person holds still in the gap.
        """
        rows: list[int] = []
        times: list[float] = []
        for row, time in enumerate(self.times):
            steps = int(self.frames[row] - self.frames[row - 1]) if row else 1
            if steps > 1:
                rows.append(row - 1)
                times.append(time - (time - self.times[row - 1]) / steps)
            rows.append(row)
            times.append(time)
        return np.array(rows), np.array(times)


def still(
    pose: np.ndarray,
    trans: np.ndarray,
    betas: np.ndarray,
    left_hand: bool = False,
    view: View | None = None,
) -> Motion:
    """The Motion of one image: pose (K * 3,), trans (3,), betas (10,)."""
    return Motion(
        np.asarray(pose)[None],
        np.asarray(trans)[None],
        np.asarray(betas),
        np.zeros(1),
        np.zeros(1, int),
        left_hand,
        view,
    )
