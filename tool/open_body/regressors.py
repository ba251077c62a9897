"""Sparse joint regressors for a mesh that we made ourselves: each joint a weighted mean of vertices around it."""
import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from scipy.spatial import cKDTree

from common.human_model.body_model import HumanModel, JointLayout
from common.human_model.model_spec import BodyArrays
from common.utils.joint_set import JointSet

POSITION_WEIGHT = 200   # what a metre of error costs, beside a weight of one on a single vertex
SUM_WEIGHT = 100        # what it costs if the weights of a row do not sum to one


def fit_rows(meshes: np.ndarray, joints: np.ndarray, reach: float) -> np.ndarray:
    """Regressor rows that give the wanted joints on all meshes.

    The weights are kept even, so that the noise of predicted vertices averages out.

    Args:
        meshes: (N, V, 3) posed and shaped meshes, the first in the rest pose, metres.
        joints: (N, J, 3) where each joint should be on them, metres.
        reach: How much farther from the joint than twice the nearest vertex a vertex may be, metres: all round the
            limb or the trunk, but not on the next finger.
    Returns:
        (J, V) non-negative, each row sums to one, non-zero only around the joint.
    """
    rows = np.zeros((joints.shape[1], meshes.shape[1]))
    tree = cKDTree(meshes[0])
    distances, _ = tree.query(joints[0])
    scale = POSITION_WEIGHT / np.sqrt(len(meshes))
    for row, wanted, distance in zip(rows, joints.transpose(1, 0, 2), distances, strict=True):
        near = tree.query_ball_point(wanted[0], 2 * distance + reach)
        positions = meshes[:, near].transpose(0, 2, 1).reshape(-1, len(near))   # (N*3, vertices)
        system = np.concatenate((positions * scale, np.full((1, len(near)), SUM_WEIGHT), np.eye(len(near))))
        weights, _ = nnls(system, np.concatenate((wanted.ravel() * scale, [SUM_WEIGHT], np.zeros(len(near)))))
        weights[weights < .02 * weights.max()] = 0
        row[near] = weights / weights.sum()
    return rows


def surface_row(rest: np.ndarray, point: ArrayLike, count: int = 6) -> np.ndarray:
    """(V,) row that averages the vertices of the rest pose (V, 3) nearest to a point on its surface."""
    row = np.zeros(len(rest))
    row[cKDTree(rest).query(point, k=count)[1]] = 1 / count
    return row


def posed_meshes(model: dict[str, np.ndarray], joint_set: JointSet, spread: np.ndarray,
                 count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Random poses and shapes of a model, for fit_rows.

    Args:
        model: The arrays of an open model's file.
        joint_set: Of the model.
        spread: (K,) standard deviation of each joint's angles, radians. The root is never turned.
        count: N.
    Returns:
        Meshes (N, V, 3) and joints (N, K, 3), metres; the first in the rest pose and of the mean shape.
    """
    joint_num = len(spread)
    arrays = BodyArrays(
        v_template=model['v_template'], faces=model['f'].astype(np.int64),
        shapedirs=model['shapedirs'], posedirs=np.zeros((9 * (joint_num - 1), 3), np.float32),
        joint_regressor=model['J_regressor'], weights=model['weights'], parents=model['parents'],
        pose_mean=np.zeros(3 * joint_num, np.float32))
    rng = np.random.default_rng(0)
    pose = rng.normal(size=(count, joint_num, 3)) * spread[:, None]
    shape = rng.normal(size=(count, 10))
    pose[:, 0] = 0
    pose[0] = 0
    shape[0] = 0
    layout = JointLayout(joint_set, tuple(range(joint_num)), (), ())
    body = HumanModel('open', 'neutral', arrays, layout, {})
    vertices, joints = body(torch.from_numpy(pose).flatten(1), torch.from_numpy(shape))
    return vertices.double().numpy(), joints.double().numpy()
