"""What a sample's numbers tell about their layout and their units: metres, or millimetres; radians, or degrees."""
import numpy as np

from data.checks.limits import FARTHEST

NEAREST = 0.05
JOINT_SPREAD = .02, 5.  # the same unit: how far the joints of somebody may be apart
LARGEST_ANGLE = 4 * np.pi  # radians of one joint; a fit may well go once round


def wrong_shape(sample, joint_set):
    """'its pose has the shape (71,), expected (72,)' for the first array of a Sample that is not laid out as
    data/sample.py says, or None. joint_set: of its joints, or None."""
    parts = [('bbox', sample.bbox, [(4,)])]
    if joint_set is not None:
        number = joint_set.joint_num
        parts += [('joint_img', sample.joint_img, [(number, 2)]), ('joint_cam', sample.joint_cam, [(number, 3)]),
                  ('joint_valid', sample.joint_valid, [(number, 1)])]
    for camera in (sample.camera, sample.fit_camera):
        if camera is not None:
            parts += [('focal', camera.focal, [(2,)]), ('princpt', camera.princpt, [(2,)])]
    fit = sample.fit
    if fit is not None:
        parts += [('pose', fit.pose, [(72,), (48,)]), ('shape', fit.shape, [(10,)]), ('trans', fit.trans, [(3,)]),
                  ('R', fit.R, [(3, 3)]), ('t', fit.t, [(3,)])]
    for name, array, shapes in parts:
        if array is not None and np.shape(array) not in shapes:
            return f'its {name} has the shape {np.shape(array)}, expected {" or ".join(map(str, shapes))}'
    return None


def odd_unit(sample, size):
    """What looks like another unit in a Sample, or None. size: metres, of the cube around a body or hand."""
    depth, fit = sample.root_depth, sample.fit
    if depth is not None and not NEAREST * size <= depth <= FARTHEST * size:
        return 'root depth of impossible size: is it in another unit (metres, millimetres)?'
    if sample.joint_cam is not None:
        known = slice(None) if sample.joint_valid is None else np.ravel(sample.joint_valid) > 0
        joints = sample.joint_cam[known]
        spread = np.ptp(joints, axis=0).max() / size if 2 * len(joints) > len(sample.joint_cam) else 1.
        if not JOINT_SPREAD[0] <= spread <= JOINT_SPREAD[1]:
            return 'joints of impossible size: are they in another unit (metres, millimetres)?'
    if fit is not None and np.linalg.norm(np.reshape(fit.pose, (-1, 3)), axis=1).max() > LARGEST_ANGLE:
        return 'pose beyond two whole turns: is it in degrees, not radians?'
    return None
