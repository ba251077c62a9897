"""The one message for everything that a training lacks."""
from collections.abc import Iterable, Sequence
from pathlib import Path

from common.errors import UserError
from data.assets.table import assets_of
from data.settings import Settings


def missing_files(name: str, split: str, cfg: Settings) -> list[str]:
    """Paths below the data folder of the files that a split of a data set needs and that are not there."""
    paths = []
    for asset in assets_of(name, cfg) or []:
        is_needed = split in asset.splits and not asset.optional
        if is_needed and not (Path(cfg.data_dir) / asset.path).is_file():
            paths.append(asset.path)
    return paths


def report_missing(errors: Iterable[Exception], names: Sequence[str], split: str,
                   cfg: Settings) -> None:
    """Raise one UserError out of those that opening the body model and the data sets gave.

    A data set whose files are absent gets a short line of its own, also where the missing body model was noticed first.

    Args:
        errors: What opening them raised.
        names: The data sets.
        split: Theirs.
        cfg: The settings.
    """
    lines = []
    named = []  # the files that these lines name
    for name in names:
        absent = missing_files(name, split, cfg)
        if not absent:
            continue
        more = ''
        if len(absent) > 1:
            more = f' and {len(absent) - 1} more files'
        lines.append(f'{name}: {absent[0]}{more} (in {cfg.data_dir})')
        named.append(absent[0])
    for text in dict.fromkeys(str(error) for error in errors):
        if not any(path in text for path in named):
            lines.append(text)
    raise UserError('\n  '.join(['cannot train; put this right first:', *lines])
                    + '\nEvery file, and where to get it: python tool/check_assets.py\n'
                    'Training without any download: python main/train.py --cfg nano')
