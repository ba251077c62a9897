"""The joint sets of the data sets; those of the body models are in `common/utils/joint_set.py`.

The lists of names are the whole conversion table: `convert_joints` moves values from one set to another by name.
"""
import numpy as np

from common.utils.joint_set import MANO, SMPL, JointSet, convert_joints

__all__ = ['COCO', 'HUMAN36M', 'MANO', 'MUCO', 'SMPL', 'JointSet', 'add_pelvis', 'convert_joints']

HUMAN36M = JointSet(
    name='Human3.6M',
    joints_name=(
        'Pelvis', 'R_Hip', 'R_Knee', 'R_Ankle', 'L_Hip', 'L_Knee', 'L_Ankle', 'Torso', 'Neck', 'Nose', 'Head_top',
        'L_Shoulder', 'L_Elbow', 'L_Wrist', 'R_Shoulder', 'R_Elbow', 'R_Wrist'),
    flip_pairs=((1, 4), (2, 5), (3, 6), (14, 11), (15, 12), (16, 13)),
    skeleton=(
        (0, 7), (7, 8), (8, 9), (9, 10), (8, 11), (11, 12), (12, 13), (8, 14), (14, 15), (15, 16), (0, 1), (1, 2),
        (2, 3), (0, 4), (4, 5), (5, 6)),
    root='Pelvis',
    # the 14 joints on which 3-D body methods are compared: without pelvis, torso and nose
    eval_joints=(1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 14, 15, 16),
)

MUCO = JointSet(
    name='MuCo',
    joints_name=(
        'Head_top', 'Thorax', 'R_Shoulder', 'R_Elbow', 'R_Wrist', 'L_Shoulder', 'L_Elbow', 'L_Wrist', 'R_Hip',
        'R_Knee', 'R_Ankle', 'L_Hip', 'L_Knee', 'L_Ankle', 'Pelvis', 'Spine', 'Head', 'R_Hand', 'L_Hand', 'R_Toe',
        'L_Toe'),
    flip_pairs=((2, 5), (3, 6), (4, 7), (8, 11), (9, 12), (10, 13), (17, 18), (19, 20)),
    skeleton=(
        (0, 16), (16, 1), (1, 15), (15, 14), (14, 8), (14, 11), (8, 9), (9, 10), (10, 19), (11, 12), (12, 13),
        (13, 20), (1, 2), (2, 3), (3, 4), (4, 17), (1, 5), (5, 6), (6, 7), (7, 18)),
    root='Pelvis',
)

# The pelvis is not annotated: the loader puts it in the middle of the hips.
COCO = JointSet(
    name='MS COCO',
    joints_name=(
        'Nose', 'L_Eye', 'R_Eye', 'L_Ear', 'R_Ear', 'L_Shoulder', 'R_Shoulder', 'L_Elbow', 'R_Elbow', 'L_Wrist',
        'R_Wrist', 'L_Hip', 'R_Hip', 'L_Knee', 'R_Knee', 'L_Ankle', 'R_Ankle', 'Pelvis'),
    flip_pairs=((1, 2), (3, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 14), (15, 16)),
    skeleton=(
        (1, 2), (0, 1), (0, 2), (2, 4), (1, 3), (6, 8), (8, 10), (5, 7), (7, 9), (12, 14), (14, 16), (11, 13),
        (13, 15), (5, 6), (11, 12)),
    root='Pelvis',
)


def add_pelvis(values: np.ndarray) -> np.ndarray:
    """The 17 annotated joints of MS COCO, (17, ...), followed by their pelvis, the middle of the hips: (18, ...)."""
    hips = [COCO.index('L_Hip'), COCO.index('R_Hip')]
    return np.concatenate([values, values[hips].mean(0, keepdims=True)])
