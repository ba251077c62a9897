"""Face points and the Human3.6M and COCO joint regressors of the open body, from its own skeleton and surface."""
import numpy as np
import torch
from scipy.spatial import cKDTree

from common.human_model.body_model import HumanModel, JointLayout
from common.human_model.model_spec import BodyArrays
from common.utils.joint_set import SMPL
from tool.open_body.regressors import fit_rows, surface_rows

# Read off renderings of the body in its rest pose; metres, x to its left, y up, z forward.
NOSE, EYE, EAR, HEAD_TOP = (0, .560, .153), (.030, .603, .130), (.083, .576, .027), (0, .708, .03)
# The bodies that the regressors are fitted on: their number, spread of the joint angles (radians) and of the shape.
POSE_NUM, LIMB_STD, TRUNK_STD, SHAPE_STD = 40, .4, .12, 1
TRUNK = ('Torso', 'Spine', 'Chest', 'L_Thorax', 'R_Thorax')
# Each joint as a mean of skeleton joints; a text instead names a point on the surface.
H36M = (('L_Hip', 'R_Hip'), ('R_Hip',), ('R_Knee',), ('R_Ankle',), ('L_Hip',), ('L_Knee',), ('L_Ankle',),
        ('Chest',), ('L_Shoulder', 'R_Shoulder', 'Neck', 'Neck'), 'nose', 'head_top',
        ('L_Shoulder',), ('L_Elbow',), ('L_Wrist',), ('R_Shoulder',), ('R_Elbow',), ('R_Wrist',))
COCO = ('nose', 'l_eye', 'r_eye', 'l_ear', 'r_ear') + tuple(
    (f'{side}_{part}',) for part in ('Shoulder', 'Elbow', 'Wrist', 'Hip', 'Knee', 'Ankle') for side in 'LR')


def add_joints(body: dict) -> dict:
    """The body with `surface_points` (5,) face vertices, `h36m` (17, V) and `coco` (17, V) float32 added."""
    rest = body['v_template'].astype(np.float64)
    mirror = np.array([-1, 1, 1])
    points = np.array([NOSE, EYE, mirror * EYE, EAR, mirror * EAR])
    _, face = cKDTree(rest).query(points)
    surface = dict(zip(('nose', 'l_eye', 'r_eye', 'l_ear', 'r_ear'), rest[face], strict=True), head_top=HEAD_TOP)
    meshes, joints = _posed_bodies(body)
    result = dict(body, surface_points=face.astype(np.int64))
    for name, table in (('h36m', H36M), ('coco', COCO)):
        regressor = np.zeros((17, len(rest)))
        for row, source in enumerate(table):
            if isinstance(source, str):
                regressor[row] = surface_rows(rest, np.array([surface[source]]), 6)
            else:
                wanted = joints[:, [SMPL.index(joint) for joint in source]].mean(axis=1, keepdims=True)
                regressor[row] = fit_rows(meshes, wanted, rest, wanted[0])
        result[name] = regressor.astype(np.float32)
    return result


def _posed_bodies(body):
    """(N, V, 3) meshes and (N, 24, 3) joints, metres; the first is the rest pose."""
    from common.human_model.smpl import PARENTS
    joint_num = len(PARENTS)
    arrays = BodyArrays(
        v_template=body['v_template'], faces=body['f'].astype(np.int64), shapedirs=body['shapedirs'],
        posedirs=np.zeros((9 * (joint_num - 1), 3), np.float32), joint_regressor=body['J_regressor'],
        weights=body['weights'], parents=np.array(PARENTS), pose_mean=np.zeros(3 * joint_num, np.float32))
    layout = JointLayout(SMPL, tuple(range(joint_num)), (), ())
    rng = np.random.default_rng(0)
    spread = np.full(joint_num, LIMB_STD)
    spread[[SMPL.index(joint) for joint in TRUNK]] = TRUNK_STD
    pose, shape = rng.normal(size=(POSE_NUM, joint_num, 3)) * spread[:, None], rng.normal(size=(POSE_NUM, 10)) * SHAPE_STD
    pose[:, 0] = 0
    pose[0] = shape[0] = 0
    model = HumanModel('open_body', 'neutral', arrays, layout, {})
    vertices, joints = model(torch.from_numpy(pose).flatten(1), torch.from_numpy(shape))
    return vertices.double().numpy(), joints.double().numpy()
