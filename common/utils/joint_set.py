"""Joint sets by name, and the move from one set to another: every data set has its own."""
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class JointSet:
    """A named, ordered list of joints.

    joints_name: the J names in order. flip_pairs: index pairs (left, right) that change places when the picture is
    mirrored. skeleton: index pairs joined by a bone, for drawing. root: name of the joint that depths are relative
    to. eval_joints: indices of the joints that count in the metrics; None means all of them.
    """
    name: str
    joints_name: tuple[str, ...]
    flip_pairs: tuple[tuple[int, int], ...] = ()
    skeleton: tuple[tuple[int, int], ...] = ()
    root: str = 'Pelvis'
    eval_joints: tuple[int, ...] | None = None

    @property
    def joint_num(self) -> int:
        return len(self.joints_name)

    @property
    def root_idx(self) -> int:
        return self.joints_name.index(self.root)

    def index(self, joint_name: str) -> int:
        """Row of a joint. Raises ValueError for a name the set lacks."""
        return self.joints_name.index(joint_name)

    def flip_order(self) -> np.ndarray:
        """(J,) indices with every left and right joint exchanged: `joints[set.flip_order()]` after a mirror flip."""
        order = np.arange(self.joint_num)
        for left, right in self.flip_pairs:
            order[left], order[right] = right, left
        return order


def convert_joints(values: np.ndarray, source: JointSet, target: JointSet) -> np.ndarray:
    """Reorder rows from one joint set to another by name.

    values: (J_source, ...) one row per joint of `source`. Returns (J_target, ...) of the same type; the rows of
    joints that `source` lacks are zero. Apply it to the validity as well: those joints then come out invalid.
    """
    if len(values) != source.joint_num:
        raise ValueError(f'{source.name} has {source.joint_num} joints, the array has {len(values)} rows')
    result = np.zeros((target.joint_num,) + values.shape[1:], dtype=values.dtype)
    for row, joint_name in enumerate(target.joints_name):
        if joint_name in source.joints_name:
            result[row] = values[source.index(joint_name)]
    return result


# 24 kinematic joints, in the order of the SMPL model, and five points on the face.
SMPL = JointSet(
    name='SMPL',
    joints_name=(
        'Pelvis', 'L_Hip', 'R_Hip', 'Torso', 'L_Knee', 'R_Knee', 'Spine', 'L_Ankle', 'R_Ankle', 'Chest', 'L_Toe',
        'R_Toe', 'Neck', 'L_Thorax', 'R_Thorax', 'Head', 'L_Shoulder', 'R_Shoulder', 'L_Elbow', 'R_Elbow', 'L_Wrist',
        'R_Wrist', 'L_Hand', 'R_Hand', 'Nose', 'L_Eye', 'R_Eye', 'L_Ear', 'R_Ear'),
    flip_pairs=(
        (1, 2), (4, 5), (7, 8), (10, 11), (13, 14), (16, 17), (18, 19), (20, 21), (22, 23), (25, 26), (27, 28)),
    skeleton=(
        (0, 1), (1, 4), (4, 7), (7, 10), (0, 2), (2, 5), (5, 8), (8, 11), (0, 3), (3, 6), (6, 9), (9, 14), (14, 17),
        (17, 19), (19, 21), (21, 23), (9, 13), (13, 16), (16, 18), (18, 20), (20, 22), (9, 12), (12, 24), (24, 15),
        (24, 25), (24, 26), (25, 27), (26, 28)),
    root='Pelvis',
)

# Wrist and, per finger, the chain from the palm to the tip. A hand has no left and right half.
MANO = JointSet(
    name='MANO',
    joints_name=('Wrist',) + tuple(
        f'{finger}_{i}' for finger in ('Thumb', 'Index', 'Middle', 'Ring', 'Pinky') for i in (1, 2, 3, 4)),
    skeleton=tuple(
        bone for first in (1, 5, 9, 13, 17)
        for bone in ((0, first), (first, first + 1), (first + 1, first + 2), (first + 2, first + 3))),
    root='Wrist',
)
