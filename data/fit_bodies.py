"""The body models that the fits of a data set are parameters of, and their joint regressors."""
import functools
import zlib
from collections.abc import Sequence

import numpy as np

from common.errors import UserError
from common.human_model import get_human_model
from common.human_model.body_model import HumanModel
from data import files
from data.evaluation.mesh_errors import EvalJoints, default_eval_joints
from data.joint_set import COCO, HUMAN36M, JointSet, add_pelvis
from data.settings import Settings
from data.target import FitCheck

HANDS = ('mano', 'open_hand')


def require_kind(human_model: HumanModel, names: Sequence[str], dataset: str) -> None:
    """UserError for a set of bodies where the body model is a hand, and the reverse; `names` as of FitBodies."""
    if human_model.is_hand in {name in HANDS for name in names}:
        return
    kind = 'hands'
    if human_model.is_hand:
        kind = 'bodies'
    raise UserError(f'{dataset} shows {kind}, which the body model {human_model.name} is not made for')


class FitBodies:
    """gender -> the HumanModel that fits of this gender are parameters of.

    Args:
        human_model: The network's body model.
        names: Body models that the fits of the data set can be of.
        training: Training targets are always of the network's body model; those of a test of one that `names` lists.
        cfg: Where files of body models and regressors are, and the limits of fits.
    """

    def __init__(self, human_model: HumanModel, names: tuple[str, ...], training: bool,
                 cfg: Settings) -> None:
        self.human_model = human_model
        # the fits are not parameters of the network's body
        self.is_foreign = human_model.name not in names
        self.name = human_model.name
        if self.is_foreign and not training:
            self.name = names[0]
        self.cfg = cfg

    def __call__(self, gender: str = 'neutral') -> HumanModel:
        if (self.name, gender) == (self.human_model.name, 'neutral'):
            return self.human_model
        return _body(self.name, self.cfg.human_model_dir, gender)

    def regressor(self, name: str, body: HumanModel | None = None) -> np.ndarray:
        """(17, V) joint regressor 'h36m' or 'coco' of a body model, None for the network's. UserError: file missing."""
        body = body or self.human_model
        if name in body.regressors:
            return body.regressor(name)
        return files.read_regressor(self.cfg.data_dir, name, body.vertex_num)

    def eval_joints(self, body: HumanModel, annotated: JointSet | None = None) -> EvalJoints:
        """The joints that are compared in meshes of a body model; annotated: the joints of the truth, None: all."""
        return default_eval_joints(body, functools.partial(self.regressor, body=body), annotated)

    def fit_check(self, kind: str | None) -> FitCheck | None:
        """The FitCheck '3d' (Human3.6M joints) or '2d' (COCO joints); None for None."""
        if kind is None:
            return None
        if kind == '3d':
            return FitCheck(self.regressor('h36m'), HUMAN36M, '3d', self.cfg.fit_limit_mm / 1000)
        return FitCheck(add_pelvis(self.regressor('coco')), COCO, '2d', self.cfg.fit_limit_lixel,
                        published_pelvis=self.cfg.coco_fit_check == 'published')


def fingerprint(human_model: HumanModel) -> str:
    """Name of a body model with a checksum of its shape, so that a changed model is not mistaken for the old one."""
    value = 0
    for array in (human_model.v_template, human_model.shapedirs, human_model.weights):
        value = zlib.crc32(np.ascontiguousarray(array.numpy()).data, value)
    return f'{human_model.name}-{value:08x}'


@functools.lru_cache(maxsize=4)
def _body(name: str, model_dir: str, gender: str) -> HumanModel:
    return get_human_model(name, model_dir, gender)
