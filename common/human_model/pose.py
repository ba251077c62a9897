"""Axis-angle pose vectors: taking them apart, and the two conventions for hands."""
import numpy as np

from common.errors import UserError

JOINT_NUMS = {'smpl': 24, 'open_body': 24, 'mano': 16, 'open_hand': 16}


def pack_pose(root_pose, joint_pose, name: str):
    """Join the root's rotation (..., 3) and those of the other joints (..., (K-1)*3) to a pose (..., K*3), radians.

    NumPy arrays; `name` is the body model, which says K: 24 joints for smpl, 16 for mano. The inverse of unpack_pose.
    Raises UserError for other lengths.
    """
    _check_length('root pose', root_pose, 3, name)
    _check_length('joint pose', joint_pose, 3 * JOINT_NUMS[name] - 3, name)
    return np.concatenate((root_pose, joint_pose), axis=-1)


def unpack_pose(pose, name: str):
    """Split a pose (..., K*3) into the root's rotation (..., 3) and the other joints' (..., (K-1)*3).

    Raises UserError unless the pose has the length that the body model `name` needs: 72 for smpl, 48 for mano.
    """
    _check_length('pose', pose, 3 * JOINT_NUMS[name], name)
    return pose[..., :3], pose[..., 3:]


def to_flat_hand_pose(pose, pose_mean):
    """Our hand pose (48,), relative to the mean hand, as the pose of a layer with flat_hand_mean=True.

    This project always uses flat_hand_mean=False, as FreiHAND's annotations do: a zero pose is the mean, slightly
    curled hand. `pose_mean` (48,) is HumanModel.pose_mean, whose root part is zero. No PCA in either convention.
    """
    return pose + pose_mean


def from_flat_hand_pose(pose, pose_mean):
    """The inverse of to_flat_hand_pose."""
    return pose - pose_mean


def _check_length(what, values, expected, name):
    if values.shape[-1:] != (expected,):
        raise UserError(f'the {what} of {name} has {expected} values, but this one has the shape {tuple(values.shape)}')
