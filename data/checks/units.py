"""What a sample's numbers tell about their layout and their units: metres, or millimetres; radians, or degrees."""
import numpy as np

from data.checks.limits import FARTHEST
from data.joint_set import JointSet
from data.sample import ARRAYS, Sample, arrays_of

Shapes = list[tuple[int, ...]]
NEAREST = 0.05
JOINT_SPREAD = (.02, 5.)  # the same unit: how far the joints of somebody may be apart
LARGEST_TURN = 4 * np.pi  # radians of one joint; a fit may well go once round


def wrong_shape(sample: Sample, joint_set: JointSet | None) -> str | None:
    """The first array of a Sample that is not laid out as data/sample.py says.

    Args:
        sample: The sample.
        joint_set: Of its joints, or None.
    Returns:
        'its pose has the shape (71,), expected (72,)', or None.
    """
    for name, shapes, array in zip(ARRAYS, _shapes(joint_set), arrays_of(sample), strict=True):
        if array is not None and shapes and np.shape(array) not in shapes:
            shown = name.removeprefix('fit_').removeprefix('camera_')
            return f'its {shown} has the shape {np.shape(array)}, expected {" or ".join(map(str, shapes))}'
    return None


def _shapes(joint_set: JointSet | None) -> list[Shapes]:
    """The shapes that each array of ARRAYS may have; none where any will do."""
    joints: list[Shapes] = [[], [], []]
    if joint_set is not None:
        number = joint_set.joint_num
        joints = [[(number, 2)], [(number, 3)], [(number, 1)]]
    camera: list[Shapes] = [[(2,)], [(2,)], [(3, 3)], [(3,)]]
    return [[(4,)], *joints, *camera, *camera, [(72,), (48,)], [(10,)], [(3,)], [(3, 3)], [(3,)]]


def odd_unit(sample: Sample, size: float) -> str | None:
    """What looks like another unit in a Sample, or None. size: metres, of the cube around a body or hand."""
    depth = sample.root_depth
    fit = sample.fit
    if depth is not None and not NEAREST * size <= depth <= FARTHEST * size:
        return 'root depth of impossible size: is it in another unit (metres, millimetres)?'
    if not JOINT_SPREAD[0] <= _joint_spread(sample, size) <= JOINT_SPREAD[1]:
        return 'joints of impossible size: are they in another unit (metres, millimetres)?'
    if fit is not None and np.linalg.norm(np.reshape(fit.pose, (-1, 3)), axis=1).max() > LARGEST_TURN:
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
