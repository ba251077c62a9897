"""Mesh surgery: the main component, fewer faces, and values carried over to the new vertices."""
from collections import Counter

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree


def compact(faces: np.ndarray, *per_vertex: np.ndarray) -> tuple[np.ndarray, ...]:
    """Drop unused vertices. faces (F, 3), arrays (V, ...) -> faces (F, 3), arrays (V', ...)."""
    used, faces = np.unique(faces, return_inverse=True)
    return faces.reshape(-1, 3), *(values[used] for values in per_vertex)


def main_component(faces: np.ndarray, vertex_num: int) -> np.ndarray:
    """The faces of the largest connected piece."""
    edges = faces[:, [[0, 1], [1, 2]]].reshape(-1, 2)
    graph = coo_matrix((np.ones(len(edges)), edges.T), shape=(vertex_num, vertex_num))
    _, piece = connected_components(graph, directed=False)
    return faces[piece[faces[:, 0]] == np.bincount(piece[faces[:, 0]]).argmax()]


def boundary_edges(faces: np.ndarray) -> list[tuple[int, int]]:
    """Edges (i, j), i < j, that only one face has: the rim of a hole."""
    edges = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    counts = Counter((i, j) for i, j in edges.tolist())
    return [edge for edge, count in counts.items() if count == 1]


def shrink_boundary(vertices: np.ndarray, faces: np.ndarray,
                    edge_num: int) -> tuple[np.ndarray, np.ndarray]:
    """Collapse the shortest edges of the rim until `edge_num` are left. Returns new vertices and faces."""
    vertices = vertices.copy()
    while len(edges := boundary_edges(faces)) > edge_num:
        keep, drop = min(edges, key=lambda edge: np.linalg.norm(vertices[edge[0]] - vertices[edge[1]]))
        vertices[keep] = (vertices[keep] + vertices[drop]) / 2
        faces = np.where(faces == drop, keep, faces)
        distinct = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
        faces = faces[distinct]
    faces, vertices = compact(faces, vertices)
    return vertices, faces


class Carry:
    """Carries values from the vertices of one mesh to the points of another: mean of four, by inverse distance."""

    def __init__(self, old: np.ndarray, new: np.ndarray) -> None:
        """old: (V, 3) and new: (V', 3), metres."""
        distances, self.indices = cKDTree(old).query(new, k=4)
        weights = 1 / (distances + 1e-5)
        self.weights = weights / weights.sum(axis=1, keepdims=True)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """(V, ...) -> (V', ...)"""
        return np.einsum('vk,vk...->v...', self.weights, values[self.indices])


def shape_basis(differences: np.ndarray, deviation: float, smallest: float = 0.) -> np.ndarray:
    """Shape components from example displacements, as SMPL has them.

    Args:
        differences: (V, 3, N) displacements.
        deviation: Displacement of the vertices per unit of the first parameter, metres (root mean square).
        smallest: Least displacement by the other parameters, as a share of the first one's.
    Returns:
        (V, 3, 10) orthogonal directions, each as large as its share in the examples; zero beyond the N-th.
    """
    flat = differences.reshape(-1, differences.shape[2])
    directions, sizes, _ = np.linalg.svd(flat, full_matrices=False)
    sizes = sizes[:10] / sizes[0]
    directions = directions[:, :10].reshape(*differences.shape[:2], -1)
    spread = np.sqrt((directions ** 2).sum(axis=1).mean(axis=0))
    basis = np.zeros((*differences.shape[:2], 10))
    basis[:, :, :len(sizes)] = directions / spread * deviation * np.maximum(sizes, smallest)
    return basis


def principal_components(examples: np.ndarray, count: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Shape space of example meshes, as SMPL has it.

    Args:
        examples: (N, V, 3) vertices in metres.
        count: number of components.
    Returns:
        Their mean (V, 3) and components (V, 3, count), orthogonal, the largest first, each as large as one standard
        deviation of the examples: shapes are `mean + components @ betas` with betas of unit variance. Positive ones
        move the vertices away from the origin on the whole: taller, stouter.
    """
    mean = examples.mean(axis=0)
    _, sizes, directions = np.linalg.svd((examples - mean).reshape(len(examples), -1), full_matrices=False)
    components = directions[:count] * sizes[:count, None] / np.sqrt(len(examples))
    components = components.reshape(count, *mean.shape)
    growth = (components * mean).sum(axis=(1, 2))
    components *= np.where(growth < 0, -1, 1)[:, None, None]
    return mean, np.moveaxis(components, 0, -1)
