"""Parametric body models behind one function: SMPL, MANO, and the free stand-ins that ship with this project.

    model = get_human_model('smpl', 'data/human_models')
    vertices, joints = model(pose, shape, trans)     # (B, 72), (B, 10), (B, 3) -> (B, 6890, 3), (B, 24, 3) metres
"""
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from common.errors import UserError
from common.human_model import mano, smpl
from common.human_model.body_model import HumanModel
from common.human_model.model_spec import BodyArrays, find_model_file, load_model_file
from common.human_model.open_model import load_open_model

OFFICIAL: dict[str, ModuleType] = {'smpl': smpl, 'mano': mano}
NAMES = ('smpl', 'mano', 'open_body', 'open_hand')
DEFAULT_MODEL_DIR = Path(__file__).resolve().parents[2] / 'data' / 'human_models'


def get_human_model(name: str, model_dir: str | Path | None = None, gender: str = 'neutral') -> HumanModel:
    """Make a body model.

    A file is read once. Every call returns a module of its own over the same arrays, so that a network can move its
    model to a GPU while a data loader keeps using another on the CPU.

    Args:
        name: 'smpl', 'mano', 'open_body' or 'open_hand'.
        model_dir: Folder with the official files, by default data/human_models; not used by the open models.
        gender: 'neutral', or for smpl 'male' or 'female'.
    Raises:
        UserError: The name or gender is unknown, or the file is missing, damaged or another one.
    """
    if name not in NAMES:
        raise UserError(f'unknown body model {name!r}; there is {", ".join(NAMES)}')
    if name in OFFICIAL:
        path = find_model_file(OFFICIAL[name].SPEC, Path(model_dir or DEFAULT_MODEL_DIR).resolve(), gender)
        arrays = _read_once(name, path, path.stat().st_mtime_ns)
        return HumanModel(name, gender, arrays, OFFICIAL[name].LAYOUT, {})
    if gender != 'neutral':
        raise UserError(f'{name} is neutral only, there is no {gender} one; that needs smpl')
    arrays, layout, regressors = _read_open_model_once(name)
    return HumanModel(name, gender, arrays, layout, regressors)


@lru_cache(maxsize=8)
def _read_once(name: str, path: Path, _changed_ns: int) -> BodyArrays:
    return load_model_file(OFFICIAL[name].SPEC, path)


_read_open_model_once = lru_cache(load_open_model)
