"""glTF 2.0 files (.glb) of results: a skinned figure that may move, and a plain mesh.

    glb = person_glb(human_model, motion)        # Motion: a person's parameters over time
    glb = mesh_glb(vertices, faces, view)        # a mesh in camera space

Units are metres, axes those of glTF (x right, y up). The camera stands in the origin and looks
along -z, so a person who faces it faces along +z. What a file says about itself stands in the
`extras` of its scene.
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
from common.export.glb_parts import add_camera, add_mesh
from common.export.motion import POSEDIRS, Motion, View
from common.human_model.body_model import HumanModel

COLOR = (166, 189, 219)
UNITS = 'metres; x right, y up, z towards the camera, which stands in the origin'


@dataclass
class Glb:
    """A file's bytes, the extras of its scene, and a line to print about it, or ''."""

    content: bytes
    extras: dict
    note: str = ''


def mesh_glb(
    vertices: np.ndarray,
    faces: np.ndarray,
    view: View | None = None,
    name: str = 'mesh',
    color: tuple[int, ...] = COLOR,
    body_model: str | None = None,
) -> Glb:
    """A plain mesh, such as the lixel mesh of an image.

    Args:
        vertices: (V, 3) metres, camera space. faces: (F, 3). view: the camera, for a camera node.
            name: of the node.
        color: RGB, 0..255. body_model: whose faces these are, for the licence.
    Raises:
        UserError: pygltflib is missing.
    """
    builder = GlbBuilder(LICENCES.get(body_model or ''))
    points = np.asarray(vertices, np.float64) @ FROM_CAMERA
    mesh = add_mesh(builder, points, faces, name, color)
    builder.node(name=name, mesh=mesh)
    add_camera(builder, view)
    extras = {'units': UNITS}
    return Glb(builder.content(extras), extras)


def person_glb(
    human_model: HumanModel,
    motion: Motion,
    name: str = 'person',
    posedirs: str = 'leave_out',
    color: tuple[int, ...] = COLOR,
) -> Glb:
    """A skinned figure in the pose of the first frame, with an animation if there are more frames.

    Args:
        human_model: the body model that the parameters are of.
        motion: the parameters. Frames left out in between are gaps: the person holds still, and
            `gaps` of the extras lists their first and last frame.
        posedirs: the body model's pose-dependent corrections, which skinning lacks: 'leave_out', or
            'morph' for morph targets (one for an image; for more frames one for each pose feature,
            207 of SMPL: 17 MB). `posedirs` of the extras says how far they move vertices, in mm.
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
    mesh = add_mesh(builder, figure.vertices, figure.faces, name, color, figure.weights, morphs)
    joints = _joints(builder, figure, quaternions[0], root[0])
    inverse = np.tile(np.eye(4, dtype=np.float32), (len(joints), 1, 1))
    inverse[:, 3, :3] = -figure.joints  # glTF's matrices are stored column by column
    skin = builder.lib.Skin(
        joints=joints, skeleton=joints[0], inverseBindMatrices=builder.array(inverse)
    )
    builder.doc.skins.append(skin)
    node = builder.node(name=name, mesh=mesh, skin=0)
    add_camera(builder, motion.view)
    if len(root) > 1:
        _animation(builder, motion, node, joints, quaternions, root, morphs)
    return Glb(builder.content(extras), extras, _note(extras))


def _extras(
    human_model: HumanModel, motion: Motion, figure: Figure, features: np.ndarray, posedirs: str
) -> dict:
    largest, mean = correction_sizes(figure, features)
    kept_as = 'nothing'
    if posedirs == 'morph' and figure.posedirs is not None:
        kept_as = 'morph targets'
    return {
        'units': UNITS,
        'body_model': human_model.name,
        'gender': human_model.gender,
        'left_hand': motion.left_hand,
        'betas': np.asarray(motion.betas, float).tolist(),
        'frames': [int(motion.frames[0]), int(motion.frames[-1])],
        'gaps': [list(gap) for gap in motion.gaps],
        'posedirs': {
            'kept_as': kept_as,
            'mm_max': round(largest * 1000, 3),
            'mm_mean': round(mean * 1000, 3),
        },
    }


def _note(extras: dict) -> str:
    """A line about corrections that a file leaves out, '' if there are none."""
    found = extras['posedirs']
    if found['kept_as'] != 'nothing' or not found['mm_max']:
        return ''
    return (
        f'without the pose-dependent corrections of {extras["body_model"]}, vertices are up to '
        f'{found["mm_max"]:.1f} mm off, {found["mm_mean"]:.1f} mm on average'
    )


def _quaternions(rotations: np.ndarray) -> np.ndarray:
    """(T, K, 3, 3) -> unit quaternions (T, K, 4), x y z w, without changes of sign over time."""
    values = Rotation.from_matrix(rotations.reshape(-1, 3, 3)).as_quat()
    values = values.reshape(*rotations.shape[:2], 4)
    turned = (values[1:] * values[:-1]).sum(-1) < 0
    sign = np.cumprod(np.where(turned, -1.0, 1.0), axis=0)
    values[1:] *= sign[..., None]
    return values.astype(np.float32)


def _morphs(posedirs: np.ndarray, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Morph targets (M, V, 3) and their shares (T, M): together the pose-dependent corrections."""
    if len(features) > 1:
        return posedirs, features.astype(np.float32)
    return np.tensordot(features, posedirs, 1), np.ones((1, 1), np.float32)


def _joints(
    builder: GlbBuilder, figure: Figure, quaternions: np.ndarray, root: np.ndarray
) -> list[int]:
    """Add a node for every joint, posed by quaternions (K, 4) and root (3,); return them."""
    places = figure.offsets
    places[0] = root
    numbers: list[int] = []
    for joint, parent in enumerate(figure.parents):
        number = builder.node(
            in_scene=parent < 0,
            name=figure.names[joint],
            rotation=quaternions[joint].tolist(),
            translation=places[joint].astype(np.float32).tolist(),
        )
        if parent >= 0:
            builder.doc.nodes[numbers[parent]].children.append(number)
        numbers.append(number)
    return numbers


def _animation(
    builder: GlbBuilder,
    motion: Motion,
    mesh_node: int,
    joints: list[int],
    quaternions: np.ndarray,
    root: np.ndarray,
    morphs: tuple[np.ndarray, np.ndarray] | None,
) -> None:
    """Add the motion: rotations of joints, the root's place, and the shares of morph targets."""
    rows, times = motion.keys()
    lib = builder.lib
    animation = lib.Animation(name='motion')
    clock = builder.array(times.astype(np.float32), bounds=True)

    def add(node: int, path: str, values: np.ndarray) -> None:
        output = builder.array(values.astype(np.float32))
        sampler = lib.AnimationSampler(input=clock, output=output, interpolation='LINEAR')
        animation.samplers.append(sampler)
        target = lib.AnimationChannelTarget(node=node, path=path)
        animation.channels.append(
            lib.AnimationChannel(sampler=len(animation.samplers) - 1, target=target)
        )

    add(joints[0], 'translation', root[rows])
    for joint, node in enumerate(joints):
        add(node, 'rotation', quaternions[rows, joint])
    if morphs is not None:
        add(mesh_node, 'weights', morphs[1][rows].reshape(-1))
    builder.doc.animations.append(animation)
