"""Sparse joint regressors for a mesh that we made ourselves: each joint a weighted mean of vertices around it."""
import numpy as np
from scipy.optimize import nnls
from scipy.spatial import cKDTree

POSITION_WEIGHT = 200   # what a metre of error costs, beside a weight of one on a single vertex
SUM_WEIGHT = 100        # what it costs if the weights of a row do not sum to one


def fit_rows(meshes, joints, rest, targets):
    """Regressor rows that give the wanted joints on all posed meshes.

    meshes: (N, V, 3) posed and shaped meshes, joints: (N, J, 3) where each joint should be on them, rest: (V, 3)
    rest pose, targets: (J, 3) the joints in it; metres. Returns (J, V): non-negative, each row sums to one, non-zero
    only around the joint. The weights are kept even, so that the noise of predicted vertices averages out.
    """
    rows = np.zeros((joints.shape[1], rest.shape[0]))
    tree = cKDTree(rest)
    distances, _ = tree.query(targets)
    for row, wanted, target, distance in zip(rows, joints.transpose(1, 0, 2), targets, distances, strict=True):
        near = tree.query_ball_point(target, 2 * distance + .06)   # all round the limb or the trunk
        positions = meshes[:, near].transpose(0, 2, 1).reshape(-1, len(near))   # (N*3, vertices)
        scale = POSITION_WEIGHT / np.sqrt(len(meshes))
        system = np.concatenate((positions * scale, np.full((1, len(near)), SUM_WEIGHT), np.eye(len(near))))
        weights, _ = nnls(system, np.concatenate((wanted.ravel() * scale, [SUM_WEIGHT], np.zeros(len(near)))))
        weights[weights < .02 * weights.max()] = 0
        row[near] = weights / weights.sum()
    return rows


def surface_rows(rest, points, count):
    """(P, V) rows that average the `count` vertices nearest to each of the (P, 3) points on the surface."""
    rows = np.zeros((len(points), len(rest)))
    _, near = cKDTree(rest).query(points, k=count)
    for row, vertices in zip(rows, near, strict=True):
        row[vertices] = 1 / count
    return rows
