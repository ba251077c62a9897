"""The open body: anny's default body with SMPL's 24 joints, 6890 vertices and 13776 faces."""
import numpy as np
from scipy.optimize import nnls
from scipy.spatial import cKDTree

from common.errors import optional_import
from common.human_model.smpl import PARENTS
from common.utils.joint_set import SMPL
from tool.open_body.mesh import Carry, compact, main_component, shape_basis
from tool.open_body.source import AXES, PACKAGES, STEP, Source

FACE_NUM = 13776
DEVIATION = .02                         # metres of displacement per unit of the first shape parameter
PELVIS_HEIGHT = .06                     # of the root above the middle of the hips, metres
SMALLEST_WEIGHT = .01                   # skinning weights below are dropped
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


def joint_rows(vertices: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """(J, V) regressor with a handful of non-zeros a row that gives the rest joints exactly."""
    rows = np.zeros((len(joints), len(vertices)))
    _, near = cKDTree(vertices).query(joints, k=120)
    for row, candidates, joint in zip(rows, near, joints, strict=True):
        system = np.vstack((vertices[candidates].T, np.ones(len(candidates))))
        weights, _ = nnls(10 * system, 10 * np.append(joint, 1))
        row[candidates] = weights / weights.sum()
    return rows


def build_body() -> dict[str, np.ndarray]:
    """Arrays of open_body.npz but for the points and regressors of body_joints.py."""
    simplification = optional_import('fast_simplification', PACKAGES)
    source = Source()
    vertices, heads = source.rest()
    joints = joint_heads(heads, source.labels)
    varied_vertices = [variation[0] for variation in source.variations()]
    faces, part, weights, *varied = compact(
        main_component(source.faces, len(vertices)), vertices, source.joint_weights(owner, 24), *varied_vertices)
    new_vertices, new_faces = simplification.simplify(
        part.astype(np.float32), faces.astype(np.int32), target_count=FACE_NUM)
    new_vertices = new_vertices.astype(np.float64)
    carry = Carry(part, new_vertices)
    weights = carry(weights)
    weights[weights < SMALLEST_WEIGHT] = 0
    shapes = shape_basis(np.stack([carry(other - part) / STEP for other in varied], axis=-1), DEVIATION)
    v_template = (new_vertices - joints[0]) @ AXES.T
    joints = (joints - joints[0]) @ AXES.T
    return {'v_template': v_template.astype(np.float32), 'f': new_faces.astype(np.uint32),
            'shapedirs': np.einsum('ij,vjk->vik', AXES, shapes).astype(np.float32),
            'J_regressor': joint_rows(v_template, joints).astype(np.float32),
            'weights': (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32),
            'parents': np.array(PARENTS)}
