"""A body model for one person at a time, as a loader process needs it: HumanModel's mesh in a quarter of the time."""
import functools

import numpy as np
import torch
from torch.nn.functional import embedding_bag

from common.human_model.body_model import HumanModel


class OneBody:
    """Linear blend skinning of one body on the CPU; the same as HumanModel.forward up to float32 rounding.

    What does not depend on the pose is summed up beforehand, small things are float64 and large ones float32, and the
    vertices are moved by whole columns. PyTorch's functions, since those of NumPy would start threads in every process.

    Args:
        model: The body model; V vertices, K joints.
    """

    def __init__(self, model: HumanModel) -> None:
        regressor = model.kinematic_regressor.cpu().double()
        template = model.v_template.cpu()
        shapedirs = model.shapedirs.cpu()
        self.levels = tree_levels(model.parents)
        self.pose_mean = model.pose_mean.cpu().numpy().astype(np.float64)
        self.template = template.reshape(-1)
        self.shapedirs = shapedirs.reshape(-1, shapedirs.shape[-1])
        self.posedirs = model.posedirs.cpu().T
        self.has_pose_shapes = len(self.posedirs) == len(self.template)  # else 3 zeros stand for all vertices
        most = int((model.weights != 0).sum(1).max())  # joints that move one vertex: four of SMPL's 24
        weights, joints = model.weights.cpu().topk(most)
        self.weights = weights.contiguous()
        self.movers = joints.to(torch.int32)
        self.joints = (regressor @ template.double()).numpy()
        self.joint_dirs = torch.einsum('kv,vcs->kcs', regressor, shapedirs.double()).numpy()

    def __call__(self, pose: np.ndarray, shape: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Mesh (V, 3) and kinematic joints (K, 3), float32 metres, of a pose (K*3,) in radians and a shape (10,)."""
        rotations = rodrigues((pose + self.pose_mean).reshape(-1, 3))
        rest = self.joints + self.joint_dirs @ shape
        world = np.concatenate([rotations, rest[:, :, None]], 2)  # (K, 3, 4): rotations and joints
        for children, parents in self.levels:
            above = world[parents]
            world[children, :, 3] -= rest[parents]
            world[children] = above[:, :, :3] @ world[children]
            world[children, :, 3] += above[:, :, 3]
        joints = world[:, :, 3].copy()
        world[:, :, 3] -= (world[:, :, :3] @ rest[:, :, None])[:, :, 0]
        moves = _float32(world.transpose(0, 2, 1)).reshape(len(world), 12)  # three columns and a shift
        vertices = torch.addmv(self.template, self.shapedirs, _float32(shape))
        if self.has_pose_shapes:
            feature = _float32(rotations[1:] - np.eye(3)).reshape(-1)
            vertices = torch.addmv(vertices, self.posedirs, feature)
        vertices = vertices.view(-1, 3)
        blended = embedding_bag(self.movers, moves, mode='sum', per_sample_weights=self.weights).view(-1, 4, 3)
        mesh = blended[:, 3]
        for axis in range(3):
            mesh = torch.addcmul(mesh, blended[:, axis], vertices[:, axis:axis + 1])
        return mesh, _float32(joints)


@functools.lru_cache(maxsize=8)
def one_body(model: HumanModel) -> OneBody:
    """The OneBody of a model, made once."""
    return OneBody(model)


def tree_levels(parents: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The joints but the root, by their distance from it: (joints, their parents) of each distance."""
    depths = [0]
    for parent in parents[1:]:
        depths.append(depths[parent] + 1)
    levels = []
    for depth in range(1, max(depths) + 1):
        joints = np.flatnonzero(np.array(depths) == depth)
        levels.append((joints, np.array(parents)[joints]))
    return levels


def rodrigues(vectors: np.ndarray) -> np.ndarray:
    """Rotation vectors (N, 3), radians, float64 -> matrices (N, 3, 3)."""
    angles = np.sqrt((vectors * vectors).sum(1))[:, None, None]
    x, y, z = (vectors / np.maximum(angles[:, 0], 1e-12)).T
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], 1).reshape(-1, 3, 3)
    return np.eye(3) + np.sin(angles) * cross + (1 - np.cos(angles)) * (cross @ cross)


def _float32(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))
