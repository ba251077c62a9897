"""Data sets by name: `data/<Name>/<Name>.py` with a class `<Name>` is found without any list to keep.

    train = build_dataset('Human36M', 'train', cfg)
    inputs, targets, meta_info = train[0]
"""
import difflib
import importlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import UserError, shown

if TYPE_CHECKING:  # the command lines look up names long before they need PyTorch
    from data.mesh_dataset import MeshDataset
    from data.settings import Settings

FOLDER = Path(__file__).resolve().parent
log = logging.getLogger(__name__)


def dataset_names() -> list[str]:
    """Names of the data sets there is a loader for, sorted."""
    loaders = [path for path in FOLDER.glob('*/*.py') if path.stem == path.parent.name]
    return sorted(path.stem for path in loaders)


def require_dataset(name: str, source: str = '') -> None:
    """UserError, naming the data sets found, unless there is a loader for `name`; it begins with `source`."""
    known = dataset_names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = ''
        if near:
            hint = f' (did you mean {near[0]}?)'
        raise UserError(f'{source}unknown data set "{shown(name)}"{hint}: found {", ".join(known)} in '
                        f'{FOLDER}; a new one is a folder <Name> there, with <Name>.py and a class of that name '
                        '(data/README.md)')


def build_dataset(name: str, split: str, cfg: 'Settings') -> 'MeshDataset':
    """Open a data set.

    Args:
        name: Of its folder.
        split: 'train', 'validation' or 'test'.
        cfg: A Config (folders, input and heat map sizes, body model, settings of the data sets).
    Raises:
        UserError: No such data set, no such split, or a file the split needs is missing or broken.
    """
    return dataset_class(name)(split, cfg)


def open_validation(cfg: Any) -> 'MeshDataset | None':
    """The validation split of `testset`; None where none is wanted, or the data set has none. UserError: see above."""
    if not cfg.validate_every:
        return None
    if 'validation' not in dataset_class(cfg.testset).splits:
        log.info('note: no validation: %s has no such split', cfg.testset)
        return None
    return build_dataset(cfg.testset, 'validation', cfg)


def dataset_class(name: str) -> 'type[MeshDataset]':
    """The class of a data set. UserError: there is none."""
    require_dataset(name)
    loader = getattr(importlib.import_module(f'data.{name}.{name}'), name, None)
    if loader is None:
        raise UserError(f'{FOLDER / name / name}.py defines no class "{name}"')
    return loader
