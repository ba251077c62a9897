"""Meshes and cameras of glTF files."""

import numpy as np

from common.export.glb_builder import GlbBuilder
from common.export.motion import View
from common.utils.render import vertex_normals

NEAR = 0.05  # metres from the camera at which a viewer begins to draw


def add_mesh(
    builder: GlbBuilder,
    points: np.ndarray,
    faces: np.ndarray,
    name: str,
    color: tuple[int, ...],
    weights: np.ndarray | None = None,
    morphs: tuple[np.ndarray, np.ndarray] | None = None,
) -> int:
    """Add a mesh of one material and return its number.

    Args:
        builder: the file. name: of the mesh. color: RGB, 0..255.
        points: (V, 3) metres, in the axes of glTF. faces: (F, 3).
        weights: (V, K) skinning weights of a skinned mesh.
        morphs: targets (M, V, 3), metres, and their shares (T, M), of which the first frame's
            become those of the mesh.
    """
    lib = builder.lib
    linear = (np.array(color) / 255) ** 2.2  # colours of materials are linear in glTF
    surface = lib.PbrMetallicRoughness(
        baseColorFactor=[*linear.tolist(), 1.0], metallicFactor=0.0, roughnessFactor=0.8
    )
    builder.doc.materials.append(lib.Material(name='skin', pbrMetallicRoughness=surface))
    attributes = lib.Attributes(
        POSITION=builder.vertices(points.astype(np.float32), bounds=True),
        NORMAL=builder.vertices(_normals(points, faces)),
    )
    if weights is not None:
        for number, (joints, values) in enumerate(_influences(weights)):
            setattr(attributes, f'JOINTS_{number}', builder.vertices(joints))
            setattr(attributes, f'WEIGHTS_{number}', builder.vertices(values))
    part = lib.Primitive(
        attributes=attributes, indices=builder.faces(faces, len(points)), material=0
    )
    mesh = lib.Mesh(name=name, primitives=[part])
    if morphs is not None:
        targets, shares = morphs
        part.targets = [
            {'POSITION': builder.vertices(one.astype(np.float32), bounds=True)} for one in targets
        ]
        mesh.weights = shares[0].tolist()
    builder.doc.meshes.append(mesh)
    return len(builder.doc.meshes) - 1


def _normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(V, 3) unit normals; z for vertices without an area around them."""
    normals = vertex_normals(np.asarray(points, np.float64), faces)
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    unit = np.where(lengths > 0.5, normals / np.maximum(lengths, 0.5), [0.0, 0.0, 1.0])
    return unit.astype(np.float32)


def _influences(weights: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(V, K) skinning weights -> sets of joints (V, 4) uint8 and their weights (V, 4).

    The first set has the largest. As many sets as the vertex with most joints needs; many viewers
    use the first one alone.
    """
    order = np.argsort(-weights, axis=1, kind='stable')
    values = np.take_along_axis(np.asarray(weights, np.float64), order, axis=1)
    count = -(-int((values > 0).sum(1).max()) // 4)
    values = values[:, : 4 * count] / values.sum(1, keepdims=True)
    values = values.astype(np.float32)
    joints = np.where(values > 0, order[:, : 4 * count], 0).astype(np.uint8)
    return [(joints[:, i : i + 4], values[:, i : i + 4]) for i in range(0, 4 * count, 4)]


def add_camera(builder: GlbBuilder, view: View | None) -> None:
    """Add a camera node with the field of view of the image, if a view is given.

    Its pixels stand in the camera's extras, since glTF has no principal point.
    """
    if view is None:
        return
    height, width = view.size
    fx, fy = (float(value) for value in view.focal)
    lens = builder.lib.Perspective(
        yfov=float(2 * np.arctan(height / 2 / fy)),
        aspectRatio=width / fx / (height / fy),
        znear=NEAR,
        zfar=None,
    )
    pixels = {
        'focal': [fx, fy],
        'princpt': [float(value) for value in view.princpt],
        'width': width,
        'height': height,
    }
    camera = builder.lib.Camera(name='camera', type='perspective', perspective=lens, extras=pixels)
    builder.doc.cameras.append(camera)
    builder.node(name='camera', camera=0)
