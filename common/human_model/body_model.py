"""HumanModel: pose and shape parameters to a mesh, the same for SMPL, MANO and the embedded models."""
from dataclasses import dataclass

import numpy as np
import torch
from smplx.lbs import lbs
from torch import nn

from common.errors import UserError
from common.human_model.model_spec import BodyArrays
from common.utils.joint_set import JointSet


@dataclass(frozen=True)
class JointLayout:
    """How the J joints of a joint set come from the K joints of the skeleton and some points on the surface.

    order: (J,) indices into the K kinematic joints followed by the surface points.
    mesh_points: the vertex of each surface point, for joints computed from a mesh (a row of the joint regressor).
    fit_points: the same for the joints of a fitted body. The two differ in one fingertip of MANO.
    """
    joint_set: JointSet
    order: tuple[int, ...]
    mesh_points: tuple[int, ...]
    fit_points: tuple[int, ...]


class Parents:
    """The parents (K,) of the joints as smplx's lbs reads them: single ones as numbers, since an element of a GPU's
    tensor would be fetched from there, and a slice as a tensor, since an array would be sent there; at every call."""

    def __init__(self, numbers, tensor):
        self.numbers, self.tensor, self.shape = numbers, tensor, tensor.shape

    def __getitem__(self, index):
        return (self.tensor if isinstance(index, slice) else self.numbers)[index]


class HumanModel(nn.Module):
    """A parametric body or hand: linear blend skinning of a template mesh, computed by smplx.

    Its tensors are non-persistent buffers: they follow `.to(device)` and `.double()` and never enter a snapshot.
    V vertices, F faces, K joints of the skeleton, J joints of `joint_set`; metres and radians.

    Attributes: name; gender; is_hand; vertex_num V; joint_num J; kinematic_joint_num K; joint_set; root_joint_idx
    (row of the joint set); face (F, 3) int64 array; joint_regressor (J, V) buffer: `joint_regressor @ mesh` are the
    joints; pose_mean (K*3,) buffer added to every pose (MANO's mean hand: flat_hand_mean=False; zero for bodies).
    """
    def __init__(self, name: str, gender: str, arrays: BodyArrays, layout: JointLayout, regressors: dict):
        """regressors: {'h36m' | 'coco': (17, V) array} of joints in the sets of those data sets, may be empty."""
        super().__init__()
        self.name, self.gender = name, gender
        self.joint_set, self.root_joint_idx = layout.joint_set, layout.joint_set.root_idx
        self.is_hand = layout.joint_set.root == 'Wrist'
        self.face, self.parents, self.regressors = arrays.faces, arrays.parents.tolist(), dict(regressors)
        self.kinematic_joint_num, self.vertex_num = arrays.joint_regressor.shape
        self.joint_num = len(layout.order)
        constants = {
            'v_template': arrays.v_template, 'shapedirs': arrays.shapedirs, 'posedirs': arrays.posedirs,
            'weights': arrays.weights, 'kinematic_regressor': arrays.joint_regressor, 'pose_mean': arrays.pose_mean,
            'joint_regressor': self._joint_regressor(arrays.joint_regressor, layout),
            'joint_order': np.array(layout.order), 'fit_points': np.array(layout.fit_points),
            'parent_index': arrays.parents}
        for buffer, value in constants.items():
            self.register_buffer(buffer, torch.from_numpy(value), persistent=False)

    @staticmethod
    def _joint_regressor(kinematic_regressor, layout):
        points = np.zeros((len(layout.mesh_points), kinematic_regressor.shape[1]), np.float32)
        points[np.arange(len(points)), layout.mesh_points] = 1
        return np.concatenate((kinematic_regressor, points))[list(layout.order)]

    def forward(self, pose, shape, trans=None):
        """Mesh and kinematic joints of B people.

        pose: (B, K*3) axis-angle, radians, the root first. shape: (B, 10). trans: (B, 3) metres, or None for zero.
        Returns vertices (B, V, 3) and joints (B, K, 3), in metres and in the type of the model's buffers, whatever
        the type of the input and under autocast too. Raises UserError for a pose or shape of another length.
        """
        for what, values, length in (('pose', pose, 3 * self.kinematic_joint_num), ('shape', shape, 10)):
            if values.shape[1:] != (length,):
                raise UserError(f'{self.name} needs a {what} of (B, {length}) values, not {tuple(values.shape)}')
        dtype = self.v_template.dtype
        if pose.shape[0] == 0:   # lbs cannot reshape an empty batch
            return pose.new_zeros((0, self.vertex_num, 3), dtype=dtype), pose.new_zeros(
                (0, self.kinematic_joint_num, 3), dtype=dtype)
        with torch.autocast(pose.device.type, enabled=False):
            vertices, joints = lbs(
                shape.to(dtype), pose.to(dtype) + self.pose_mean, self.v_template, self.shapedirs, self.posedirs,
                self.kinematic_regressor, Parents(self.parents, self.parent_index), self.weights)
            if trans is not None:
                offset = trans.to(dtype).unsqueeze(1)
                vertices, joints = vertices + offset, joints + offset
        return vertices, joints

    def fit_joints(self, vertices, joints):
        """The joints of a fitted body in the order of `joint_set`, from what forward returned.

        vertices: (B, V, 3), joints: (B, K, 3) -> (B, J, 3). Kinematic joints are taken as they are and surface
        points from the mesh. (A mesh without parameters has only `joint_regressor @ vertices`.)
        """
        return torch.cat((joints, vertices[:, self.fit_points]), dim=1)[:, self.joint_order]

    def regressor(self, joint_set_name: str) -> np.ndarray:
        """(17, V) float32 regressor of the 'h36m' or 'coco' joints. UserError if the model has none."""
        if joint_set_name not in self.regressors:
            raise UserError(f'the body model {self.name} has no joint regressor for {joint_set_name}; for smpl it is '
                            'a file among the data set\'s own')
        return self.regressors[joint_set_name]
