"""Errors of meshes: the joints that count, and from network outputs to millimetres."""
import numpy as np

from common import metrics
from common.errors import UserError
from common.utils.transforms import pixel2cam
from data.joint_set import HUMAN36M

MM = 1000.  # millimetres per metre


class EvalJoints:
    """The joints that count: regressed from a mesh, relative to the set's root.

    joint_set: all joints of the regressor (J, V) float32; indices: the evaluated ones, of which `annotated` (a
    JointSet or None) may lack some; root: row of the root joint. UserError: the root is not annotated.
    """

    def __init__(self, joint_set, regressor, annotated=None):
        self.joint_set, self.regressor, self.root = joint_set, regressor, joint_set.root_idx
        known = (annotated or joint_set).joints_name
        if joint_set.root not in known:
            raise UserError(f'{annotated.name} joints cannot be evaluated: they have no {joint_set.root}')
        indices = range(joint_set.joint_num) if joint_set.eval_joints is None else joint_set.eval_joints
        self.indices = [j for j in indices if joint_set.joints_name[j] in known]

    def regress(self, mesh):
        """Meshes (B, V, 3) -> all joints of the set (B, J, 3)."""
        return np.einsum('jv,bvc->bjc', self.regressor, mesh, optimize=True)

    def names(self):
        return [self.joint_set.joints_name[j] for j in self.indices]


def lixel_meshes(mesh_coord_img, bb2img_trans, root_depths, cameras, codec):
    """Predicted meshes (B, V, 3) in img space -> (B, V, 3) metres in camera space.

    bb2img_trans (B, 2, 3); root_depths (B,) metres; cameras: B Cameras.
    """
    pixels = codec.decode(mesh_coord_img, np.asarray(root_depths, np.float32), bb2img_trans)
    focal, princpt = (np.stack([getattr(c, k) for c in cameras])[:, None] for k in ('focal', 'princpt'))
    return pixel2cam(pixels, focal, princpt)


def mesh_errors(mesh, mesh_joints, target_joints, target_mesh, eval_joints):
    """Errors of a batch of meshes, millimetres: {metric: (B,)} and `joint_error`, (B, number of evaluated joints).

    mesh (B, V, 3) metres with its joints mesh_joints (B, J, 3); target_joints (B, J, 3) metres. target_mesh: (B, V, 3)
    metres of the same topology, or None: then without vertex errors.
    """
    root, target_root = mesh_joints[:, eval_joints.root], target_joints[:, eval_joints.root]
    pred, target = mesh_joints[:, eval_joints.indices], target_joints[:, eval_joints.indices]
    joint_error = metrics.root_aligned_errors(pred, target, root, target_root) * MM
    errors = {'mpjpe': joint_error.mean(1), 'pa_mpjpe': metrics.aligned_errors(pred, target).mean(1) * MM,
              'joint_error': joint_error}
    if target_mesh is not None:
        errors['mpvpe'] = one_by_one(metrics.root_aligned_errors, mesh, target_mesh, root, target_root) * MM
        errors['pa_mpvpe'] = one_by_one(metrics.aligned_errors, mesh, target_mesh) * MM
    return {name: value.astype(np.float32) for name, value in errors.items()}


def one_by_one(errors, *arrays):
    """Means (B,) of errors(*arrays), (B, N). What a single mesh takes stays in the cache: faster than a whole batch."""
    return np.array([errors(*(array[i:i + 1] for array in arrays)).mean() for i in range(len(arrays[0]))])


def annotated_joints(samples, joint_set, eval_joints):
    """(B, J, 3) metres of the samples' own joints in the evaluated set; NaN where they are not annotated."""
    target = np.full((len(samples), eval_joints.joint_set.joint_num, 3), np.nan)
    shared = [n for n in eval_joints.joint_set.joints_name if n in joint_set.joints_name]
    own, rows = ([s.index(n) for n in shared] for s in (joint_set, eval_joints.joint_set))
    for joints, sample in zip(target, samples, strict=True):
        if sample.joint_cam is not None:
            valid = 1 if sample.joint_valid is None else np.where(sample.joint_valid[own] > 0, 1, np.nan)
            joints[rows] = sample.joint_cam[own] * valid
    return target


def default_eval_joints(human_model, regressor, annotated=None):
    """EvalJoints of a body model: 14 Human3.6M joints of bodies, all 21 of hands.

    regressor: 'h36m' -> (17, V). annotated: JointSet of the truth, only its joints count; None: all.
    """
    if human_model.is_hand:
        return EvalJoints(human_model.joint_set, human_model.joint_regressor.numpy(), annotated)
    return EvalJoints(HUMAN36M, regressor('h36m'), annotated)
