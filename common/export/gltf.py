"""glTF 2.0 files (.glb) of results: a skinned figure that may move, and a plain mesh.

    glb = person_glb(human_model, motion)        # Motion: a person's parameters over time
    glb = mesh_glb(vertices, faces, view)        # a mesh in camera space

Units are metres, axes those of glTF (x right, y up). The camera stands in the origin and looks along -z, so a person
who faces it faces along +z. What a file says about itself stands in the `extras` of its scene.
"""
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from common.errors import UserError
from common.export.figure import (
    FROM_CAMERA,
    LICENCES,
    Figure,
    correction_sizes,
    joint_motion,
    make_figure,
    pose_features,
)
from common.export.glb_builder import GlbBuilder
from common.export.motion import Motion, View
from common.human_model.body_model import HumanModel
from common.utils.render import vertex_normals

COLOR = (166, 189, 219)
NEAR = 0.05  # metres from the camera at which a viewer begins to draw
POSEDIRS = ('leave_out', 'morph')


@dataclass
class Glb:
    """A file's bytes, the extras of its scene, and a line to print about it, or ''."""
    content: bytes
    extras: dict
    note: str = ''


def mesh_glb(vertices: np.ndarray, faces: np.ndarray, view: View | None = None, name: str = 'mesh',
             color: tuple[int, ...] = COLOR, body_model: str | None = None) -> Glb:
    """A plain mesh, such as the lixel mesh of an image.

    Args:
        vertices: (V, 3) metres, camera space. faces: (F, 3). view: the camera, for a camera node. name: of the node.
        color: RGB, 0..255. body_model: whose faces these are, for the licence.
    Raises:
        UserError: pygltflib is missing.
    """
    builder = GlbBuilder(LICENCES.get(body_model or ''))
    points = np.asarray(vertices, np.float64) @ FROM_CAMERA
    mesh = _mesh(builder, points, faces, name, color)
    builder.node(name=name, mesh=mesh)
    _camera(builder, view)
    extras = {'units': 'metres'}
    return Glb(builder.content(extras), extras)


def person_glb(human_model: HumanModel, motion: Motion, name: str = 'person', posedirs: str = 'leave_out',
               color: tuple[int, ...] = COLOR) -> Glb:
    """A skinned figure in the pose of the first frame, with an animation if there are more frames.

    Args:
        human_model: the body model that the parameters are of.
        motion: the parameters. Frames left out in between are gaps: the person holds still, and `gaps` of the extras
            lists their first and last frame.
        posedirs: the body model's pose-dependent corrections, which skinning lacks: 'leave_out', or 'morph' for morph
            targets (one for an image; for more frames one for each pose feature, 207 of SMPL: 17 MB). How far they
            move vertices stands in `posedirs` of the extras, in mm.
        name, color (RGB, 0..255): of the figure.
    Raises:
        UserError: pygltflib is missing, or the parameters do not fit the body model.
    """
    if posedirs not in POSEDIRS:
        raise UserError(f'posedirs {posedirs}: there is {" and ".join(POSEDIRS)}')
    figure = make_figure(human_model, motion.betas, motion.left_hand)
    features = pose_features(human_model, motion.poses)
    extras = _extras(human_model, motion, figure, features, posedirs)
    builder = GlbBuilder(LICENCES.get(human_model.name))
    rotations, root = joint_motion(human_model, figure, motion)
    quaternions = _quaternions(rotations)
    morphs = None
    if posedirs == 'morph' and figure.posedirs is not None:
        morphs = _morphs(figure.posedirs, features)
    mesh = _mesh(builder, figure.vertices, figure.faces, name, color, figure.weights, morphs)
    joints = _joints(builder, figure, quaternions[0], root[0])
    inverse = np.tile(np.eye(4, dtype=np.float32), (len(joints), 1, 1))
    inverse[:, 3, :3] = -figure.joints  # glTF's matrices are stored column by column
    skin = builder.lib.Skin(joints=joints, skeleton=joints[0], inverseBindMatrices=builder.array(inverse))
    builder.doc.skins.append(skin)
    node = builder.node(name=name, mesh=mesh, skin=0)
    _camera(builder, motion.view)
    if len(root) > 1:
        _animation(builder, motion, node, joints, quaternions, root, morphs)
    return Glb(builder.content(extras), extras, _note(extras))


def _extras(human_model: HumanModel, motion: Motion, figure: Figure, features: np.ndarray, posedirs: str) -> dict:
    largest, mean = correction_sizes(figure, features)
    return {'units': 'metres', 'body_model': human_model.name, 'gender': human_model.gender,
            'left_hand': motion.left_hand, 'betas': np.asarray(motion.betas, float).tolist(),
            'frames': [int(motion.frames[0]), int(motion.frames[-1])], 'gaps': [list(gap) for gap in motion.gaps],
            'posedirs': {'kept_as': 'morph targets' if posedirs == 'morph' else 'nothing',
                         'mm_max': round(largest * 1000, 3), 'mm_mean': round(mean * 1000, 3)}}


def _note(extras: dict) -> str:
    """A line about corrections that a file leaves out, '' if there are none."""
    found = extras['posedirs']
    if found['kept_as'] != 'nothing' or not found['mm_max']:
        return ''
    return (f'without the pose-dependent corrections of {extras["body_model"]}, vertices are up to '
            f'{found["mm_max"]:.1f} mm off, {found["mm_mean"]:.1f} mm on average')


def _quaternions(rotations: np.ndarray) -> np.ndarray:
    """(T, K, 3, 3) -> unit quaternions (T, K, 4), x y z w, without changes of sign from frame to frame."""
    values = Rotation.from_matrix(rotations.reshape(-1, 3, 3)).as_quat().reshape(*rotations.shape[:2], 4)
    turned = (values[1:] * values[:-1]).sum(-1) < 0
    sign = np.cumprod(np.where(turned, -1., 1.), axis=0)
    values[1:] *= sign[..., None]
    return values.astype(np.float32)


def _morphs(posedirs: np.ndarray, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Morph targets (M, V, 3) and their weights (T, M) that add up to the pose-dependent corrections."""
    if len(features) > 1:
        return posedirs, features.astype(np.float32)
    return np.tensordot(features, posedirs, 1), np.ones((1, 1), np.float32)


def _mesh(builder: GlbBuilder, points: np.ndarray, faces: np.ndarray, name: str, color: tuple[int, ...],
          weights: np.ndarray | None = None, morphs: tuple[np.ndarray, np.ndarray] | None = None) -> int:
    """Add a mesh of one material, with skinning weights (V, K) and morph targets where given; returns its number."""
    lib = builder.lib
    linear = (np.array(color) / 255) ** 2.2  # colours of materials are linear in glTF
    surface = lib.PbrMetallicRoughness(baseColorFactor=[*linear.tolist(), 1.], metallicFactor=0., roughnessFactor=0.8)
    builder.doc.materials.append(lib.Material(name='skin', pbrMetallicRoughness=surface))
    attributes = lib.Attributes(POSITION=builder.vertices(points.astype(np.float32), bounds=True),
                                NORMAL=builder.vertices(_normals(points, faces)))
    if weights is not None:
        for number, (joints, values) in enumerate(_influences(weights)):
            setattr(attributes, f'JOINTS_{number}', builder.vertices(joints))
            setattr(attributes, f'WEIGHTS_{number}', builder.vertices(values))
    part = lib.Primitive(attributes=attributes, indices=builder.faces(faces, len(points)), material=0)
    mesh = lib.Mesh(name=name, primitives=[part])
    if morphs is not None:
        targets, shares = morphs
        part.targets = [{'POSITION': builder.vertices(one.astype(np.float32), bounds=True)} for one in targets]
        mesh.weights = shares[0].tolist()
    builder.doc.meshes.append(mesh)
    return len(builder.doc.meshes) - 1


def _normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(V, 3) unit normals; z for vertices without an area around them."""
    normals = vertex_normals(np.asarray(points, np.float64), faces)
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.where(lengths > 0.5, normals / np.maximum(lengths, 0.5), [0., 0., 1.]).astype(np.float32)


def _influences(weights: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(V, K) skinning weights -> sets of joints (V, 4) uint8 and their weights (V, 4), the largest in the first set.

    As many sets as the vertex with most joints needs; many viewers use the first one alone.
    """
    order = np.argsort(-weights, axis=1, kind='stable')
    values = np.take_along_axis(np.asarray(weights, np.float64), order, axis=1)
    count = -(-int((values > 0).sum(1).max()) // 4)
    values = values[:, :4 * count] / values.sum(1, keepdims=True)
    values = values.astype(np.float32)
    joints = np.where(values > 0, order[:, :4 * count], 0).astype(np.uint8)
    return [(joints[:, i:i + 4], values[:, i:i + 4]) for i in range(0, 4 * count, 4)]


def _joints(builder: GlbBuilder, figure: Figure, quaternions: np.ndarray, root: np.ndarray) -> list[int]:
    """Add a node for every joint, posed by quaternions (K, 4) and root (3,); returns their numbers."""
    places = figure.offsets
    places[0] = root
    numbers: list[int] = []
    for joint, parent in enumerate(figure.parents):
        number = builder.node(in_scene=parent < 0, name=figure.names[joint], rotation=quaternions[joint].tolist(),
                              translation=places[joint].astype(np.float32).tolist())
        if parent >= 0:
            builder.doc.nodes[numbers[parent]].children.append(number)
        numbers.append(number)
    return numbers


def _camera(builder: GlbBuilder, view: View | None) -> None:
    """Add a camera node with the field of view of the image; its pixels stand in the camera's extras, since glTF has
    no principal point."""
    if view is None:
        return
    height, width = view.size
    fx, fy = (float(value) for value in view.focal)
    lens = builder.lib.Perspective(yfov=float(2 * np.arctan(height / 2 / fy)), aspectRatio=width / fx / (height / fy),
                                   znear=NEAR, zfar=None)
    pixels = {'focal': [fx, fy], 'princpt': [float(value) for value in view.princpt], 'width': width,
              'height': height}
    camera = builder.lib.Camera(name='camera', type='perspective', perspective=lens, extras=pixels)
    builder.doc.cameras.append(camera)
    builder.node(name='camera', camera=0)


def _animation(builder: GlbBuilder, motion: Motion, mesh_node: int, joints: list[int], quaternions: np.ndarray,
               root: np.ndarray, morphs: tuple[np.ndarray, np.ndarray] | None) -> None:
    """Add the motion: rotations of all joints, the root's place, and the weights of morph targets."""
    rows, times = motion.keys()
    lib = builder.lib
    animation = lib.Animation(name='motion')
    clock = builder.array(times.astype(np.float32), bounds=True)

    def add(node: int, path: str, values: np.ndarray) -> None:
        output = builder.array(values.astype(np.float32))
        sampler = lib.AnimationSampler(input=clock, output=output, interpolation='LINEAR')
        animation.samplers.append(sampler)
        target = lib.AnimationChannelTarget(node=node, path=path)
        animation.channels.append(lib.AnimationChannel(sampler=len(animation.samplers) - 1, target=target))

    add(joints[0], 'translation', root[rows])
    for joint, node in enumerate(joints):
        add(node, 'rotation', quaternions[rows, joint])
    if morphs is not None:
        add(mesh_node, 'weights', morphs[1][rows].reshape(-1))
    builder.doc.animations.append(animation)
