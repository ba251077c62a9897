"""Annotated joints that cannot be."""
import numpy as np

from data.checks.limits import LARGEST_DEPTH
from data.joint_set import JointSet
from data.sample import Sample


def mask_joints(sample: Sample, joint_set: JointSet | None) -> str | None:
    """Take the joints out of a sample that cannot be; returns what was wrong, or None. joint_set: of its joints."""
    present = [array for array in (sample.joint_img, sample.joint_cam) if array is not None]
    if not present:
        return None
    finite: np.ndarray = np.all([(np.abs(array) <= LARGEST_DEPTH).all(1) for array in present], axis=0)
    valid = finite
    if sample.joint_valid is not None:
        finite = finite & np.isfinite(np.ravel(sample.joint_valid))
        valid = finite & (np.ravel(sample.joint_valid) > 0)
    if sample.joint_cam is not None and (sample.joint_cam[valid, 2] <= 0).any():
        sample.joint_img = None
        sample.joint_cam = None
        sample.joint_valid = None
        return 'joints behind the camera, masked'
    if not finite.all():
        sample.joint_valid = valid.astype(np.float32)[:, None]
        for joints in present:
            joints[~finite] = 0
    if joint_set is not None and not valid[joint_set.root_idx]:
        sample.joint_cam = None  # its depths are relative to the root
    if finite.all():
        return None
    return 'joints not finite, masked'
