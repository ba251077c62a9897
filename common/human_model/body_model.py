"""HumanModel: pose and shape parameters to a mesh, the same for SMPL, MANO and the embedded models."""
from dataclasses import dataclass

import numpy as np
import torch
from smplx.lbs import lbs
from torch import Tensor, nn

from common.errors import UserError
from common.human_model.model_spec import BodyArrays
from common.utils.joint_set import JointSet


@dataclass(frozen=True)
class JointLayout:
    """How the J joints of a joint set come from the K joints of the skeleton and some points on the surface.

    Attributes:
        joint_set: The joint set.
        order: (J,) indices into the K kinematic joints followed by the surface points.
        mesh_points: The vertex of each surface point, for joints computed from a mesh (a row of the joint regressor).
        fit_points: The same for the joints of a fitted body. The two differ in one fingertip of MANO.
    """
    joint_set: JointSet
    order: tuple[int, ...]
    mesh_points: tuple[int, ...]
    fit_points: tuple[int, ...]


class Parents:
    """The parents (K,) of the joints, in the form that smplx's lbs reads without a copy to or from the GPU.

    It reads single ones, which should be numbers, and slices, which should be tensors.
    """

    def __init__(self, numbers: list[int], tensor: Tensor) -> None:
        self.numbers = numbers
        self.tensor = tensor
        self.shape = tensor.shape

    def __getitem__(self, index: int | slice) -> int | Tensor:
        if isinstance(index, slice):
            return self.tensor[index]
        return self.numbers[index]


class HumanModel(nn.Module):
    """A parametric body or hand: linear blend skinning of a template mesh, computed by smplx.

    Its tensors are non-persistent buffers: they follow `.to(device)` and `.double()` and never enter a snapshot.
    V vertices, F faces, K joints of the skeleton, J joints of `joint_set`; metres and radians.

    Args:
        name: 'smpl', 'mano', 'open_body' or 'open_hand'.
        gender: 'neutral', 'male' or 'female'.
        arrays: The constants of the model.
        layout: Where the joints of its joint set come from.
        regressors: {'h36m' | 'coco': (17, V) array} of joints in the sets of those data sets, may be empty.
    Attributes:
        is_hand: Whether the root is a wrist.
        vertex_num: V.
        joint_num: J.
        kinematic_joint_num: K.
        joint_set: The names of the J joints.
        root_joint_idx: Row of the root in the joint set.
        face: (F, 3) int64 array of vertex indices.
        joint_regressor: (J, V) buffer: `joint_regressor @ mesh` are the joints.
        pose_mean: (K*3,) buffer added to every pose: MANO's mean hand (flat_hand_mean=False), zero for bodies.
    """
    v_template: Tensor
    shapedirs: Tensor
    posedirs: Tensor
    weights: Tensor
    kinematic_regressor: Tensor
    pose_mean: Tensor
    joint_regressor: Tensor
    joint_order: Tensor
    fit_points: Tensor
    parent_index: Tensor

    def __init__(self, name: str, gender: str, arrays: BodyArrays, layout: JointLayout,
                 regressors: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.name = name
        self.gender = gender
        self.joint_set = layout.joint_set
        self.root_joint_idx = layout.joint_set.root_idx
        self.is_hand = layout.joint_set.root == 'Wrist'
        self.face = arrays.faces
        self.parents: list[int] = arrays.parents.tolist()
        self.regressors = dict(regressors)
        self.kinematic_joint_num, self.vertex_num = arrays.joint_regressor.shape
        self.joint_num = len(layout.order)
        constants = {
            'v_template': arrays.v_template,
            'shapedirs': arrays.shapedirs,
            'posedirs': arrays.posedirs,
            'weights': arrays.weights,
            'kinematic_regressor': arrays.joint_regressor,
            'pose_mean': arrays.pose_mean,
            'joint_regressor': self._joint_regressor(arrays.joint_regressor, layout),
            'joint_order': np.array(layout.order),
            'fit_points': np.array(layout.fit_points),
            'parent_index': arrays.parents,
        }
        for buffer, value in constants.items():
            self.register_buffer(buffer, torch.from_numpy(value), persistent=False)

    @staticmethod
    def _joint_regressor(kinematic_regressor: np.ndarray, layout: JointLayout) -> np.ndarray:
        points = np.zeros((len(layout.mesh_points), kinematic_regressor.shape[1]), np.float32)
        points[np.arange(len(points)), layout.mesh_points] = 1
        return np.concatenate((kinematic_regressor, points))[list(layout.order)]

    def forward(self, pose: Tensor, shape: Tensor,
                trans: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mesh and kinematic joints of B people.

        Args:
            pose: (B, K*3) axis-angle, radians, the root first.
            shape: (B, 10) shape coefficients.
            trans: (B, 3) metres, or None for zero.
        Returns:
            vertices (B, V, 3) and joints (B, K, 3), in metres and in the type of the model's buffers, whatever the
            type of the input and under autocast too.
        Raises:
            UserError: The pose or shape has another length.
        """
        self._check_length('pose', pose, 3 * self.kinematic_joint_num)
        self._check_length('shape', shape, 10)
        dtype = self.v_template.dtype
        if pose.shape[0] == 0:   # lbs cannot reshape an empty batch
            vertices = pose.new_zeros((0, self.vertex_num, 3), dtype=dtype)
            return vertices, pose.new_zeros((0, self.kinematic_joint_num, 3), dtype=dtype)
        with torch.autocast(pose.device.type, enabled=False):
            vertices, joints = lbs(
                shape.to(dtype), pose.to(dtype) + self.pose_mean, self.v_template, self.shapedirs, self.posedirs,
                self.kinematic_regressor, Parents(self.parents, self.parent_index), self.weights)
            if trans is not None:
                offset = trans.to(dtype).unsqueeze(1)
                vertices = vertices + offset
                joints = joints + offset
        return vertices, joints

    def _check_length(self, what: str, values: Tensor, length: int) -> None:
        if values.shape[1:] != (length,):
            raise UserError(f'{self.name} needs a {what} of (B, {length}) values, not {tuple(values.shape)}')

    def fit_joints(self, vertices: Tensor, joints: Tensor) -> Tensor:
        """The joints of a fitted body in the order of `joint_set`, from what forward returned.

        Kinematic joints are taken as they are and surface points from the mesh. (A mesh without parameters has only
        `joint_regressor @ vertices`.)

        Args:
            vertices: (B, V, 3).
            joints: (B, K, 3).
        Returns:
            (B, J, 3).
        """
        return torch.cat((joints, vertices[:, self.fit_points]), dim=1)[:, self.joint_order]

    def regressor(self, joint_set_name: str) -> np.ndarray:
        """(17, V) float32 regressor of the 'h36m' or 'coco' joints. UserError if the model has none."""
        if joint_set_name not in self.regressors:
            raise UserError(f'the body model {self.name} has no joint regressor for {joint_set_name}; for smpl it is '
                            'a file among the data set\'s own')
        return self.regressors[joint_set_name]
