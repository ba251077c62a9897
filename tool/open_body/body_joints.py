"""Face points and the Human3.6M and COCO joint regressors of the open body, from its own skeleton and surface."""
import numpy as np
from scipy.spatial import cKDTree

from common.utils.joint_set import SMPL
from tool.open_body.regressors import fit_rows, posed_meshes, surface_row

# Read off renderings of anny's default body at rest; metres, x to its left, y up, z forward.
FACE = {'nose': (0, .560, .153), 'l_eye': (.030, .603, .130), 'r_eye': (-.030, .603, .130),
        'l_ear': (.083, .576, .027), 'r_ear': (-.083, .576, .027)}
HEAD_TOP = (0, .708, .03)
# Each joint of Human3.6M and COCO as the mean of skeleton joints; a text instead names a point on the surface.
H36M = (('L_Hip', 'R_Hip'), ('R_Hip',), ('R_Knee',), ('R_Ankle',), ('L_Hip',), ('L_Knee',), ('L_Ankle',), ('Chest',),
        ('L_Shoulder', 'R_Shoulder', 'Neck', 'Neck'), 'nose', 'head_top',
        ('L_Shoulder',), ('L_Elbow',), ('L_Wrist',), ('R_Shoulder',), ('R_Elbow',), ('R_Wrist',))
COCO_LIMBS = ('Shoulder', 'Elbow', 'Wrist', 'Hip', 'Knee', 'Ankle')
COCO = (*FACE, *((f'{side}_{part}',) for part in COCO_LIMBS for side in 'LR'))
# The bodies that the regressors are fitted on: spread of the joint angles in radians.
LIMB_SPREAD = .4
TRUNK_SPREAD = .12
TRUNK = ('Torso', 'Spine', 'Chest', 'L_Thorax', 'R_Thorax')
REACH = .06   # metres, see fit_rows


def add_joints(body: dict[str, np.ndarray], rest: np.ndarray) -> dict[str, np.ndarray]:
    """The body with `surface_points` (5,) face vertices, `h36m` (17, V) and `coco` (17, V) float32 added.

    Args:
        body: Arrays of open_body.npz.
        rest: Vertices (V, 3) of anny's default body at rest, metres.
    """
    _, face = cKDTree(rest).query(list(FACE.values()))
    surface = dict(zip(FACE, rest[face], strict=True), head_top=HEAD_TOP)
    spread = np.full(24, LIMB_SPREAD)
    spread[[SMPL.index(joint) for joint in TRUNK]] = TRUNK_SPREAD
    meshes, joints = posed_meshes(body, SMPL, spread)
    result = dict(body, surface_points=face)
    for name, table in (('h36m', H36M), ('coco', COCO)):
        regressor = np.zeros((17, len(rest)), np.float32)
        for row, source in zip(regressor, table, strict=True):
            if isinstance(source, str):
                row[:] = surface_row(rest, surface[source])
            else:
                wanted = joints[:, [SMPL.index(joint) for joint in source]].mean(axis=1, keepdims=True)
                row[:] = fit_rows(meshes, wanted, REACH)[0]
        result[name] = regressor
    return result
