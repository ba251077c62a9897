"""Errors of meshes: the joints that count, and from network outputs to millimetres."""
from collections.abc import Callable, Sequence

import numpy as np

from common import metrics
from common.errors import UserError
from common.human_model.body_model import HumanModel
from common.utils.transforms import pixel2cam
from data.codec import LixelCodec
from data.joint_set import HUMAN36M, JointSet
from data.sample import Camera, Sample

MM = 1000.  # millimetres per metre


class EvalJoints:
    """The joints that count: regressed from a mesh, relative to the set's root.

    Args:
        joint_set: All joints of the regressor.
        regressor: (J, V) float32.
        annotated: The joints of the truth, which may lack some; None: it has all.
    Attributes:
        indices: Rows of the evaluated joints.
        root: Row of the root joint.
    Raises:
        UserError: The root is not annotated.
    """

    def __init__(self, joint_set: JointSet, regressor: np.ndarray,
                 annotated: JointSet | None = None) -> None:
        self.joint_set = joint_set
        self.regressor = regressor
        self.root = joint_set.root_idx
        truth = annotated or joint_set
        if joint_set.root not in truth.joints_name:
            raise UserError(f'{truth.name} joints cannot be evaluated: they have no {joint_set.root}')
        counted: Sequence[int] = range(joint_set.joint_num)
        if joint_set.eval_joints is not None:
            counted = joint_set.eval_joints
        self.indices = [row for row in counted if joint_set.joints_name[row] in truth.joints_name]

    def regress(self, mesh: np.ndarray) -> np.ndarray:
        """Meshes (B, V, 3) -> all joints of the set (B, J, 3)."""
        return np.einsum('jv,bvc->bjc', self.regressor, mesh, optimize=True)

    def names(self) -> list[str]:
        """Names of the evaluated joints."""
        return [self.joint_set.joints_name[row] for row in self.indices]


def default_eval_joints(human_model: HumanModel, regressor: Callable[[str], np.ndarray],
                        annotated: JointSet | None = None) -> EvalJoints:
    """The EvalJoints of a body model: 14 Human3.6M joints of bodies, all 21 of hands.

    Args:
        human_model: The body model.
        regressor: 'h36m' -> (17, V).
        annotated: Joints of the truth: only these count. None: all.
    """
    if human_model.is_hand:
        return EvalJoints(human_model.joint_set, human_model.joint_regressor.numpy(), annotated)
    return EvalJoints(HUMAN36M, regressor('h36m'), annotated)


def lixel_meshes(mesh_coord_img: np.ndarray, bb2img_trans: np.ndarray, root_depths: Sequence[float],
                 cameras: Sequence[Camera], codec: LixelCodec) -> np.ndarray:
    """Predicted meshes in camera space.

    Args:
        mesh_coord_img: (B, V, 3), img space.
        bb2img_trans: (B, 2, 3) affine from crop to image.
        root_depths: (B,) metres.
        cameras: B of them.
        codec: Img space to pixels and metres.
    Returns:
        (B, V, 3) metres.
    """
    pixels = codec.decode(mesh_coord_img, np.asarray(root_depths, np.float32), bb2img_trans)
    focal = np.stack([camera.focal for camera in cameras])
    princpt = np.stack([camera.princpt for camera in cameras])
    return pixel2cam(pixels, focal[:, None], princpt[:, None])


def mesh_errors(mesh: np.ndarray, mesh_joints: np.ndarray, target_joints: np.ndarray,
                target_mesh: np.ndarray | None, eval_joints: EvalJoints) -> dict[str, np.ndarray]:
    """Errors of a batch of meshes.

    Args:
        mesh: (B, V, 3) metres.
        mesh_joints: (B, J, 3) metres, its joints.
        target_joints: (B, J, 3) metres.
        target_mesh: (B, V, 3) metres of the same topology, or None: then without vertex errors.
        eval_joints: The joints that count.
    Returns:
        {metric: (B,)} and `joint_error`, (B, number of evaluated joints), millimetres.
    """
    root = mesh_joints[:, eval_joints.root]
    target_root = target_joints[:, eval_joints.root]
    pred = mesh_joints[:, eval_joints.indices]
    target = target_joints[:, eval_joints.indices]
    joint_error = metrics.root_aligned_errors(pred, target, root, target_root) * MM
    errors = {'mpjpe': joint_error.mean(1),
              'pa_mpjpe': metrics.aligned_errors(pred, target).mean(1) * MM,
              'joint_error': joint_error}
    if target_mesh is not None:
        errors['mpvpe'] = one_by_one(metrics.root_aligned_errors, mesh, target_mesh, root, target_root) * MM
        errors['pa_mpvpe'] = one_by_one(metrics.aligned_errors, mesh, target_mesh) * MM
    return {name: value.astype(np.float32) for name, value in errors.items()}


def one_by_one(errors: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """Means (B,) of errors(*arrays), (B, N). What a single mesh takes stays in the cache: faster than a whole batch."""
    means = []
    for row in range(len(arrays[0])):
        single = [array[row:row + 1] for array in arrays]
        means.append(errors(*single).mean())
    return np.array(means)


def annotated_joints(samples: Sequence[Sample], joint_set: JointSet,
                     eval_joints: EvalJoints) -> np.ndarray:
    """The samples' own joints in the evaluated set.

    Args:
        samples: B samples.
        joint_set: Of their joints.
        eval_joints: The joints that count.
    Returns:
        (B, J, 3) metres, NaN where they are not annotated.
    """
    evaluated = eval_joints.joint_set
    target = np.full((len(samples), evaluated.joint_num, 3), np.nan)
    shared = [name for name in evaluated.joints_name if name in joint_set.joints_name]
    own = [joint_set.index(name) for name in shared]
    rows = [evaluated.index(name) for name in shared]
    for joints, sample in zip(target, samples, strict=True):
        if sample.joint_cam is None:
            continue
        joints[rows] = sample.joint_cam[own]
        if sample.joint_valid is not None:
            joints[rows] *= np.where(sample.joint_valid[own] > 0, 1, np.nan)
    return target
