"""The embedded body and hand: free stand-ins in the layout of SMPL and MANO, shipped beside this file.

They have as many vertices, faces and joints as the originals but are other meshes in another vertex order, so they
carry their own joint regressors and surface points. How they were made: tool/open_body/build.py.
"""
from pathlib import Path
from types import ModuleType

import numpy as np

from common.human_model import mano, smpl
from common.human_model.body_model import JointLayout
from common.human_model.model_spec import BodyArrays

FOLDER = Path(__file__).resolve().parent
REGRESSORS = ('h36m', 'coco')


def load_open_model(name: str) -> tuple[BodyArrays, JointLayout, dict[str, np.ndarray]]:
    """Constants, joint layout and data-set regressors {'h36m' | 'coco': (17, V)} of open_body or open_hand."""
    with np.load(FOLDER / f'{name}.npz', allow_pickle=False) as file:
        stored = {key: file[key] for key in file.files}
    joint_num = len(stored['J_regressor'])
    template: ModuleType = smpl
    if name == 'open_hand':
        template = mano
    points = tuple(int(vertex) for vertex in stored['surface_points'])
    layout = JointLayout(template.LAYOUT.joint_set, template.LAYOUT.order, points, points)
    pose_mean = np.zeros(joint_num * 3, np.float32)
    pose_mean[3:] = stored.get('hands_mean', 0)
    arrays = BodyArrays(
        v_template=stored['v_template'],
        faces=stored['f'].astype(np.int64),
        shapedirs=stored['shapedirs'],
        posedirs=np.zeros((9 * (joint_num - 1), 3), np.float32),
        joint_regressor=stored['J_regressor'],
        weights=stored['weights'],
        parents=np.array(template.PARENTS),
        pose_mean=pose_mean)
    return arrays, layout, {key: stored[key] for key in REGRESSORS if key in stored}
