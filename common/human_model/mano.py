"""The MANO right hand: 778 vertices, 16 joints and five fingertips."""
from common.human_model.body_model import JointLayout
from common.human_model.model_spec import ModelSpec
from common.utils.joint_set import MANO

PARENTS = (-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11, 0, 13, 14)   # wrist, index, middle, pinky, ring, thumb
# Fingertip vertices: thumb, index, middle, ring, pinky. The published system takes the middle tip of a fitted hand
# from vertex 444 and that of a predicted mesh from 445; its numbers depend on both.
FIT_TIPS = (745, 317, 444, 556, 673)
MESH_TIPS = (745, 317, 445, 556, 673)
# Rows of the joint set (wrist; thumb, index, middle, ring, pinky from palm to tip) among the 16 joints and 5 tips.
JOINT_ORDER = (0, 13, 14, 15, 16, 1, 2, 3, 17, 4, 5, 6, 18, 10, 11, 12, 19, 7, 8, 9, 20)

SPEC = ModelSpec(
    title='MANO',
    folder='mano',
    stems={'neutral': ('MANO_RIGHT',)},
    urls={'neutral': 'https://mano.is.tue.mpg.de'},
    purpose='the right hand that FreiHAND is used with',
    vertex_num=778,
    face_num=1538,
    parents=PARENTS,
    has_mean_pose=True)

LAYOUT = JointLayout(MANO, JOINT_ORDER, MESH_TIPS, FIT_TIPS)
