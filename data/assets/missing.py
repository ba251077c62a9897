"""The one message for everything that a training lacks."""
from pathlib import Path

from common.errors import UserError
from data.assets.table import assets_of


def missing_files(name, split, config):
    """'Human36M: 20 files, such as ...', or '' when all files that a data set needs are there."""
    absent = [asset.path for asset in assets_of(name, config) or [] if split in asset.splits and not asset.optional
              and not (Path(config.data_dir) / asset.path).is_file()]
    if not absent:
        return ''
    return f'{name}: {absent[0]}' + (f' and {len(absent) - 1} more files' if len(absent) > 1 else '')


def report_missing(errors, names, split, config):
    """Raise one UserError out of those that opening the body model and the data sets gave.

    A data set whose files are absent gets a short line of its own, also where the missing body model was noticed first.
    """
    lines = [line for line in (missing_files(name, split, config) for name in names) if line]
    lines = [f'{line} (in {config.data_dir})' for line in lines]
    lines += [error for error in dict.fromkeys(map(str, errors)) if not any(asset_named(error, line) for line in lines)]
    raise UserError('\n  '.join(['cannot train; put this right first:', *lines])
                    + '\nEvery file, and where to get it: python tool/check_assets.py\n'
                    'Training without any download: python main/train.py --cfg nano')


def asset_named(error, line):
    """True when an error is about the file that a line names already."""
    return line.split(': ')[1].split(' ')[0] in error
