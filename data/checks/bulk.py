"""The samples that need no closer look, found many at a time: the rules of load_check.py, limits.py and units.py.

A sample passes here only if none of them would skip it, mask a part of it or report it. What does not pass is looked at
one by one, and gets its message there.
"""
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from data.checks.limits import (
    BOX_SIDE,
    CENTRE,
    FARTHEST,
    FOCAL,
    LARGEST_ANGLE,
    LARGEST_DEPTH,
    LARGEST_SHAPE,
    UNROUND,
)
from data.checks.units import JOINT_SPREAD, LARGEST_TURN, NEAREST, wrong_shape
from data.joint_set import JointSet
from data.sample import ARRAYS, Sample, arrays_of

FEW = 8  # samples with the same arrays; for fewer it does not pay


def unsuspicious(samples: Sequence[Sample], joint_set: JointSet | None, size: float | None,
                 needs_camera: bool) -> np.ndarray:
    """Which samples pass all checks but that of their image file and that of their mesh.

    Args:
        samples: The samples.
        joint_set: Of their joints, or None.
        size: Metres, of a body or hand; None: unknown, and so are wrong units.
        needs_camera: A sample without a camera is of no use.
    Returns:
        (len(samples),) bool.
    """
    alike: dict[tuple, list[int]] = defaultdict(list)  # the same arrays and shapes -> numbers of the samples
    for number, sample in enumerate(samples):
        shapes = [getattr(array, 'shape', array is not None) for array in arrays_of(sample)]
        alike[(sample.root_depth is None, *shapes)].append(number)
    good = np.zeros(len(samples), bool)
    for numbers in alike.values():
        group = [samples[number] for number in numbers]
        if len(group) >= FEW and wrong_shape(group[0], joint_set) is None:
            with np.errstate(invalid='ignore', over='ignore'):
                good[numbers] = _Group(group, size).good(joint_set, needs_camera)
    return good


class _Group:
    """Samples that have the same arrays. Its methods give a bool per sample; a value that is not finite is not good."""

    def __init__(self, samples: list[Sample], size: float | None) -> None:
        self.size = size
        self.has_fit = samples[0].fit is not None
        self.sides = np.array([sample.img_shape for sample in samples], np.float64)  # height, width
        columns = zip(*map(arrays_of, samples), strict=True)
        self.arrays = {name: np.stack(column) for name, column in zip(ARRAYS, columns, strict=True)
                       if column[0] is not None}
        self.depth = None
        if samples[0].root_depth is not None:
            self.depth = np.array([sample.root_depth for sample in samples], np.float64)

    def good(self, joint_set: JointSet | None, needs_camera: bool) -> np.ndarray:
        """Those that pass all checks."""
        good = self.boxes()
        has_camera = 'focal' in self.arrays
        if needs_camera and not has_camera:
            good[:] = False
        if has_camera:
            good &= self.cameras('focal', 'princpt') & self.worlds('R', 't')
        if self.depth is not None:
            good &= self.depths(self.depth)
        if 'joint_img' in self.arrays or 'joint_cam' in self.arrays:
            good &= joint_set is not None and self.joints(joint_set)
        if self.has_fit:
            good &= self.fits()
        return good

    def boxes(self) -> np.ndarray:
        """Boxes on the image that do not look like two corners."""
        x, y, w, h = self.arrays['bbox'].astype(np.float64).T
        height, width = self.sides.T
        on_image = (w > 0) & (h > 0) & (-w < x) & (x < width) & (-h < y) & (y < height)
        smallest = np.minimum(w, h)
        largest = np.maximum(w, h)
        good = on_image & (smallest >= BOX_SIDE[0]) & (largest <= BOX_SIDE[1] * np.maximum(width, height))
        return good & (x + w - width <= w / 2) & (y + h - height <= h / 2)

    def cameras(self, focal_name: str, princpt_name: str) -> np.ndarray:
        """Cameras that can be: see camera_fault."""
        side = self.sides.max(1, keepdims=True)
        focal = self.arrays[focal_name]
        centre = self.arrays[princpt_name] - self.sides[:, ::-1] / 2
        good = (focal >= FOCAL[0] * side) & (focal <= FOCAL[1] * side) & (np.abs(centre) <= CENTRE * side)
        return good.all(1)

    def worlds(self, R_name: str, t_name: str) -> np.ndarray:
        """Rotations and translations from a world to a camera that can be: see world_fault."""
        good = self.within(R_name, 2) & self.within(t_name, LARGEST_DEPTH)
        if R_name in self.arrays:
            R = self.arrays[R_name]
            squares = R @ R.transpose(0, 2, 1) - np.eye(3)
            good &= (np.abs(squares) <= UNROUND).all((1, 2)) & (np.linalg.det(R) >= 0)
        return good

    def depths(self, depth: np.ndarray) -> np.ndarray:
        """Root depths that can be."""
        good = (depth > 0) & (depth <= LARGEST_DEPTH)
        if self.size is not None:
            good &= (depth >= NEAREST * self.size) & (depth <= FARTHEST * self.size)
        return good

    def joints(self, joint_set: JointSet) -> np.ndarray:
        """Joints that are finite, in front of the camera and not too far apart, the root among them."""
        good = self.within('joint_img', LARGEST_DEPTH) & self.within('joint_cam', LARGEST_DEPTH)
        valid = np.ones((len(good), joint_set.joint_num), bool)
        if 'joint_valid' in self.arrays:
            valid = self.arrays['joint_valid'][..., 0] > 0
            good &= valid[:, joint_set.root_idx] & self.within('joint_valid', LARGEST_DEPTH)
        if 'joint_cam' not in self.arrays:
            return good
        joints = self.arrays['joint_cam']
        good &= (~valid | (joints[..., 2] > 0)).all(1)
        if self.size is not None:
            good &= spread_of_a_person(joints, valid, self.size)
        return good

    def fits(self) -> np.ndarray:
        """Fits that can be, with the camera that they were made with: see fit_fault."""
        good = self.within('pose', LARGEST_ANGLE) & self.within('shape', LARGEST_SHAPE)
        good &= self.within('trans', FARTHEST * (self.size or LARGEST_DEPTH))
        good &= self.worlds('fit_R', 'fit_t')
        if 'fit_focal' in self.arrays:
            good &= self.cameras('fit_focal', 'fit_princpt') & self.worlds('fit_camera_R', 'fit_camera_t')
        elif 'focal' not in self.arrays:
            good[:] = False
        if self.size is not None:
            pose = self.arrays['pose']
            good &= np.linalg.norm(pose.reshape(len(pose), -1, 3), axis=2).max(1) <= LARGEST_TURN
        return good

    def within(self, name: str, limit: float) -> np.ndarray:
        """Whether all values of an array are finite and no larger than a limit; also where there is none."""
        if name not in self.arrays:
            return np.ones(len(self.sides), bool)
        values = self.arrays[name]
        return (np.abs(values) <= limit).reshape(len(values), -1).all(1)


def spread_of_a_person(joints: np.ndarray, valid: np.ndarray, size: float) -> np.ndarray:
    """Whether the valid (n, J) of the joints (n, J, 3) are as far apart as a person's: see odd_unit. Returns (n,)."""
    few = 2 * valid.sum(1) <= joints.shape[1]
    highest = np.where(valid[..., None], joints, -np.inf).max(1)
    lowest = np.where(valid[..., None], joints, np.inf).min(1)
    extent = (highest - lowest).max(1) / size
    return few | ((extent >= JOINT_SPREAD[0]) & (extent <= JOINT_SPREAD[1]))
