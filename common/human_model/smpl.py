"""The SMPL body: 6890 vertices, 24 joints and five points on the face."""
from common.human_model.body_model import JointLayout
from common.human_model.model_spec import ModelSpec
from common.utils.joint_set import SMPL

PARENTS = (-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21)
FACE_POINTS = (331, 2802, 6262, 3489, 3990)   # nose, left eye, right eye, left ear, right ear
LETTERS = {'neutral': 'neutral', 'male': 'm', 'female': 'f'}   # genders in the names of the official files


def _stems(gender: str, letter: str) -> tuple[str, ...]:
    name = f'basicModel_{letter}_lbs_10_207_0'
    return f'{name}_v1.0.0', f'{name}_v1.1.0', f'SMPL_{gender.upper()}'


SPEC = ModelSpec(
    title='SMPL',
    folder='smpl',
    stems={gender: _stems(gender, letter) for gender, letter in LETTERS.items()},
    urls={
        'neutral': 'https://smplify.is.tue.mpg.de (or https://smpl.is.tue.mpg.de, version 1.1.0)',
        'male': 'https://smpl.is.tue.mpg.de',
        'female': 'https://smpl.is.tue.mpg.de',
    },
    purpose='the body that Human3.6M, MuCo, MS COCO and 3DPW are used with',
    vertex_num=6890,
    face_num=13776,
    parents=PARENTS)

LAYOUT = JointLayout(SMPL, tuple(range(29)), FACE_POINTS, FACE_POINTS)
