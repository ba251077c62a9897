"""Data sets by name: `data/<Name>/<Name>.py` with a class `<Name>` is found without any list to keep.

    train = build_dataset('Human36M', 'train', cfg)
    inputs, targets, meta_info = train[0]
"""
import difflib
import importlib
from pathlib import Path

from common.errors import UserError, shown

FOLDER = Path(__file__).resolve().parent


def dataset_names():
    """Names of the data sets there is a loader for, sorted."""
    return sorted(path.parent.name for path in FOLDER.glob('*/*.py') if path.stem == path.parent.name)


def require_dataset(name, source=''):
    """UserError, naming the data sets found, unless there is a loader for `name`; it begins with `source`."""
    known = dataset_names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f' (did you mean {near[0]}?)' if near else ''
        raise UserError(f'{source}unknown data set "{shown(name)}"{hint}: found {", ".join(known)} in {FOLDER}; a new '
                        f'one is a folder <Name> there, with <Name>.py and a class of that name (data/README.md)')


def build_dataset(name, split, cfg):
    """The data set `name` as a MeshDataset.

    split: 'train', 'validation' or 'test'. cfg: a Config (folders, input and heat map sizes, body model, settings).
    UserError: no such data set, no such split, or a file the split needs is missing or broken.
    """
    require_dataset(name)
    loader = getattr(importlib.import_module(f'data.{name}.{name}'), name, None)
    if loader is None:
        raise UserError(f'{FOLDER / name / name}.py defines no class "{name}"')
    return loader(split, cfg)
