"""What a sample's numbers tell about their layout and their units: metres, or millimetres; radians, or degrees."""
import numpy as np

from data.checks.limits import FARTHEST
from data.joint_set import JointSet
from data.sample import Sample

Part = tuple[str, np.ndarray | None, list[tuple[int, ...]]]  # name, array, its allowed shapes
NEAREST = 0.05
JOINT_SPREAD = (.02, 5.)  # the same unit: how far the joints of somebody may be apart
LARGEST_ANGLE = 4 * np.pi  # radians of one joint; a fit may well go once round


def wrong_shape(sample: Sample, joint_set: JointSet | None) -> str | None:
    """The first array of a Sample that is not laid out as data/sample.py says.

    Args:
        sample: The sample.
        joint_set: Of its joints, or None.
    Returns:
        'its pose has the shape (71,), expected (72,)', or None.
    """
    for name, array, shapes in _arrays(sample, joint_set):
        if array is not None and np.shape(array) not in shapes:
            return f'its {name} has the shape {np.shape(array)}, expected {" or ".join(map(str, shapes))}'
    return None


def _arrays(sample: Sample, joint_set: JointSet | None) -> list[Part]:
    """Everything that a sample may hold."""
    parts: list[Part] = [('bbox', sample.bbox, [(4,)])]
    if joint_set is not None:
        number = joint_set.joint_num
        parts.append(('joint_img', sample.joint_img, [(number, 2)]))
        parts.append(('joint_cam', sample.joint_cam, [(number, 3)]))
        parts.append(('joint_valid', sample.joint_valid, [(number, 1)]))
    for camera in (sample.camera, sample.fit_camera):
        if camera is not None:
            parts.append(('focal', camera.focal, [(2,)]))
            parts.append(('princpt', camera.princpt, [(2,)]))
    fit = sample.fit
    if fit is not None:
        parts.append(('pose', fit.pose, [(72,), (48,)]))
        parts.append(('shape', fit.shape, [(10,)]))
        parts.append(('trans', fit.trans, [(3,)]))
        parts.append(('R', fit.R, [(3, 3)]))
        parts.append(('t', fit.t, [(3,)]))
    return parts


def odd_unit(sample: Sample, size: float) -> str | None:
    """What looks like another unit in a Sample, or None. size: metres, of the cube around a body or hand."""
    depth = sample.root_depth
    fit = sample.fit
    if depth is not None and not NEAREST * size <= depth <= FARTHEST * size:
        return 'root depth of impossible size: is it in another unit (metres, millimetres)?'
    if not JOINT_SPREAD[0] <= _joint_spread(sample, size) <= JOINT_SPREAD[1]:
        return 'joints of impossible size: are they in another unit (metres, millimetres)?'
    if fit is not None and np.linalg.norm(np.reshape(fit.pose, (-1, 3)), axis=1).max() > LARGEST_ANGLE:
        return 'pose beyond two whole turns: is it in degrees, not radians?'
    return None


def _joint_spread(sample: Sample, size: float) -> float:
    """How far the annotated joints are apart, in units of `size`; 1 where half of them or more are unknown."""
    joints = sample.joint_cam
    if joints is None:
        return 1.
    total = len(joints)
    if sample.joint_valid is not None:
        joints = joints[np.ravel(sample.joint_valid) > 0]
    if 2 * len(joints) <= total:
        return 1.
    return float(np.ptp(joints, axis=0).max() / size)
