"""Joint sets by name, and the move from one set to another: every data set has its own."""
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class JointSet:
    """A named, ordered list of joints.

    Attributes:
        name: Of the set.
        joints_name: The J names in order.
        flip_pairs: Index pairs (left, right) that change places when the image is mirrored.
        skeleton: Index pairs joined by a bone, for drawing.
        root: Name of the joint that depths are relative to.
        eval_joints: Indices of the joints that count in the metrics; None means all of them.
    """
    name: str
    joints_name: tuple[str, ...]
    flip_pairs: tuple[tuple[int, int], ...] = ()
    skeleton: tuple[tuple[int, int], ...] = ()
    root: str = 'Pelvis'
    eval_joints: tuple[int, ...] | None = None

    @property
    def joint_num(self) -> int:
        """J."""
        return len(self.joints_name)

    @property
    def root_idx(self) -> int:
        """Row of the root joint."""
        return self.joints_name.index(self.root)

    def index(self, joint_name: str) -> int:
        """Row of a joint. ValueError for a name that the set lacks."""
        return self.joints_name.index(joint_name)

    def flip_order(self) -> np.ndarray:
        """(J,) indices with every left and right joint exchanged: `joints[set.flip_order()]` after a mirror flip."""
        order = np.arange(self.joint_num)
        for left, right in self.flip_pairs:
            order[left] = right
            order[right] = left
        return order


def convert_joints(values: np.ndarray, source: JointSet, target: JointSet) -> np.ndarray:
    """Reorder rows from one joint set to another by name.

    Convert the validity as well: the joints that `source` lacks then come out invalid.

    Args:
        values: (J_source, ...) one row per joint of `source`.
        source: The joint set of the rows.
        target: The joint set of the result.
    Returns:
        (J_target, ...) of the same type, zero in the rows of joints that `source` lacks.
    Raises:
        ValueError: `values` has another number of rows than `source` has joints.
    """
    if len(values) != source.joint_num:
        raise ValueError(f'{source.name} has {source.joint_num} joints, the array has {len(values)} rows')
    result = np.zeros((target.joint_num, *values.shape[1:]), dtype=values.dtype)
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
    joints_name=(
        'Wrist', 'Thumb_1', 'Thumb_2', 'Thumb_3', 'Thumb_4', 'Index_1', 'Index_2', 'Index_3', 'Index_4', 'Middle_1',
        'Middle_2', 'Middle_3', 'Middle_4', 'Ring_1', 'Ring_2', 'Ring_3', 'Ring_4', 'Pinky_1', 'Pinky_2', 'Pinky_3',
        'Pinky_4'),
    skeleton=(
        (0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 6), (6, 7), (7, 8), (0, 9), (9, 10), (10, 11), (11, 12), (0, 13),
        (13, 14), (14, 15), (15, 16), (0, 17), (17, 18), (18, 19), (19, 20)),
    root='Wrist',
)
