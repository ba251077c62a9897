"""The open body: anny's default body with SMPL's 24 joints, 6890 vertices and 13776 faces."""
import numpy as np
from scipy.optimize import nnls
from scipy.spatial import cKDTree

from common.errors import optional_import
from common.human_model.smpl import PARENTS
from common.utils.joint_set import SMPL
from tool.open_body.mesh import Carry, compact, main_component, principal_components
from tool.open_body.population import CHANGES, people
from tool.open_body.source import AXES, PACKAGES, Source

FACE_NUM = 13776
PELVIS_HEIGHT = .06                     # of the root above the middle of the hips, metres
SMALLEST_WEIGHT = .01                   # skinning weights below are dropped
CANDIDATES = 120                        # of the joint regressor: vertices per joint
FITTED = 40                             # of the joint regressor: meshes
# The bone whose head is the joint; {} stands for the side, L or R.
HEADS = {'Torso': 'spine04', 'Spine': 'spine03', 'Chest': 'spine02', 'Neck': 'neck01', 'Head': 'head'}
SIDE_HEADS = {'Hip': 'upperleg01', 'Knee': 'lowerleg01', 'Ankle': 'foot', 'Toe': 'toe3-1', 'Thorax': 'clavicle',
              'Shoulder': 'upperarm01', 'Elbow': 'lowerarm01', 'Wrist': 'wrist', 'Hand': 'finger3-1'}
# The joint that moves the skin of a bone, by the first of these beginnings of the bone's name.
OWNERS = (('root', 'Pelvis'), ('pelvis', 'Pelvis'), ('spine05', 'Pelvis'), ('spine04', 'Torso'), ('spine03', 'Spine'),
          ('spine0', 'Chest'), ('neck', 'Neck'), ('head', 'Head'), ('eye', 'Head'))
SIDE_OWNERS = (('upperleg', 'Hip'), ('lowerleg', 'Knee'), ('foot', 'Ankle'), ('toe', 'Toe'), ('clavicle', 'Thorax'),
               ('shoulder', 'Thorax'), ('upperarm', 'Shoulder'), ('lowerarm', 'Elbow'), ('wrist', 'Wrist'),
               ('metacarpal', 'Hand'), ('finger', 'Hand'))


def joint_heads(heads: np.ndarray, labels: list[str]) -> np.ndarray:
    """(24, 3) joints from the heads of anny's bones (bones, 3)."""
    bones = dict(HEADS)
    bones |= {f'{side}_{part}': f'{bone}.{side}' for part, bone in SIDE_HEADS.items() for side in 'LR'}
    joints = {name: heads[labels.index(bone)] for name, bone in bones.items()}
    joints['Pelvis'] = (joints['L_Hip'] + joints['R_Hip']) / 2 + [0, 0, PELVIS_HEIGHT]
    return np.array([joints[name] for name in SMPL.joints_name[:24]])


def owner(bone: str) -> int:
    """Index of the joint that a bone of anny's belongs to."""
    for start, joint in OWNERS:
        if bone.startswith(start):
            return SMPL.index(joint)
    for start, joint in SIDE_OWNERS:
        if bone.startswith(start):
            return SMPL.index(f'{bone[-1]}_{joint}')
    raise KeyError(bone)


def joint_rows(meshes: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """Regressor of the rest joints, with a handful of non-zeros a row.

    Args:
        meshes: (N, V, 3) vertices of people at rest, metres; the first is the mean person.
        joints: (N, J, 3) their joints.
    Returns:
        (J, V) non-negative rows that sum to one: nearly exact for the mean person, and as good as can be for the rest.
    """
    rows = np.zeros((joints.shape[1], meshes.shape[1]))
    _, near = cKDTree(meshes[0]).query(joints[0], k=CANDIDATES)
    importance = np.r_[10, np.full(len(meshes) - 1, 1 / np.sqrt(len(meshes)))][:, None]
    for row, candidates, wanted in zip(rows, near, joints.transpose(1, 0, 2), strict=True):
        positions = (meshes[:, candidates].transpose(0, 2, 1) * importance[..., None]).reshape(-1, len(candidates))
        system = np.vstack((positions, np.full(len(candidates), 10.)))
        weights, _ = nnls(system, np.append((wanted * importance).ravel(), 10.))
        row[candidates] = weights / weights.sum()
    return rows


class Person:
    """One of the source's people at rest, with the pelvis at the origin: vertices (V, 3), joints (24, 3), metres."""

    def __init__(self, source: Source, values: dict[str, float]) -> None:
        vertices, heads = source.rest(**values)
        joints = joint_heads(heads, source.labels)
        self.pelvis = joints[0]  # in anny's axes
        self.vertices = (vertices - self.pelvis) @ AXES.T
        self.joints = (joints - self.pelvis) @ AXES.T


def mean_first(values: np.ndarray) -> np.ndarray:
    """(N, ...) -> (N + 1, ...): the mean, then the values."""
    return np.concatenate([values.mean(axis=0, keepdims=True), values])


def build_body() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Arrays of open_body.npz but for the points and regressors of body_joints.py.

    Also the vertices (6890, 3) of anny's default body, on which the points were read off.
    """
    simplification = optional_import('fast_simplification', PACKAGES)
    source = Source(CHANGES)
    default = Person(source, {})
    varied = [Person(source, values) for values in people()]
    shapes = [person.vertices for person in varied]
    faces, part, weights, *others = compact(
        main_component(source.faces, len(default.vertices)), default.vertices, source.joint_weights(owner, 24),
        *shapes)
    new_vertices, new_faces = simplification.simplify(  # where anny puts it: its rounding decides on the faces
        (part @ AXES + default.pelvis).astype(np.float32), faces.astype(np.int32), target_count=FACE_NUM)
    new_vertices = (new_vertices.astype(np.float64) - default.pelvis) @ AXES.T
    carry = Carry(part, new_vertices)
    weights = carry(weights)
    weights[weights < SMALLEST_WEIGHT] = 0
    meshes = np.array([new_vertices + carry(other - part) for other in others])
    v_template, shapedirs = principal_components(meshes)
    joints = np.array([person.joints for person in varied])
    meshes = mean_first(meshes)
    joints = mean_first(joints)
    body = {'v_template': v_template.astype(np.float32), 'f': new_faces.astype(np.uint32),
            'shapedirs': shapedirs.astype(np.float32),
            'J_regressor': joint_rows(meshes[:FITTED], joints[:FITTED]).astype(np.float32),
            'weights': (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32),
            'parents': np.array(PARENTS)}
    return body, new_vertices
