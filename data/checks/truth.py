"""What a training set has to learn from, and what a stage of the training needs of it."""
import enum
from collections.abc import Mapping

import numpy as np

from common.errors import UserError
from data.joint_set import JointSet, convert_joints
from data.sample import Sample
from data.target import has_joints


class Truth(enum.Flag):
    """Parts of a sample that losses compare with."""
    FIT = enum.auto()  # parameters of a body model
    JOINTS = enum.auto()  # joints that the body model has, too, in the image
    JOINTS_3D = enum.auto()  # the same in camera space


NOTHING = Truth(0)
ALL = Truth.FIT | Truth.JOINTS | Truth.JOINTS_3D


def truth_of(sample: Sample, joint_set: JointSet | None, model_set: JointSet, has_3d: bool) -> Truth:
    """What a sample has.

    Args:
        sample: The sample, without the parts that cannot be used.
        joint_set: Of its joints; None: they are not looked at.
        model_set: The joints of the body model.
        has_3d: Its data set has 3-D joints.
    """
    truth = NOTHING
    if sample.fit is not None:
        truth |= Truth.FIT
    if joint_set is None or not has_joints(sample):
        return truth
    valid = sample.joint_valid
    if valid is None:
        valid = np.ones((joint_set.joint_num, 1))
    if convert_joints(valid, joint_set, model_set).any():
        truth |= Truth.JOINTS
        if has_3d and sample.joint_cam is not None:
            truth |= Truth.JOINTS_3D
    return truth


def refuse_nothing_to_learn(sets: Mapping[str, Truth | None], stage: str, orig_joint_loss: bool) -> None:
    """UserError if all losses of a stage would be zero, whatever the network predicts, or there is no training set.

    Args:
        sets: Of each training set, by its name, what any of its samples has; None: that is known once they are read.
        stage: 'lixel' or 'param'.
        orig_joint_loss: Whether the lixel stage learns from annotated joints, too.
    """
    if not sets:
        raise UserError('no training set: name some in trainset_3d and trainset_2d')
    needed = Truth.FIT
    names = 'a fit that can be used'
    if stage == 'param':
        needed |= Truth.JOINTS_3D
        names += ' or 3-D joints'
    elif orig_joint_loss:
        needed |= Truth.JOINTS
        names += ' or joints of the body model'
    for truth in sets.values():
        if truth is None or truth & needed:
            return
    raise UserError(f'there is nothing to learn: no sample of {", ".join(sets)} has {names}, so that all losses of '
                    f'the {stage} stage are 0; add a training set that has some, or see to the fits of these')
