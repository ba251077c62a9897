"""What the command lines share: flags, then typed overrides `key=value`."""
import argparse
from pathlib import Path

from common.arguments import Parser, a_path, each_once
from common.devices.cpus import core_count
from common.errors import UserError
from common.train.logger import start_console
from main.config import cfg


def make_parser(doc: str | None) -> Parser:
    """An argument parser with the common flags.

    Args:
        doc: the program's docstring.
    """
    parser = Parser(doc)
    parser.add_argument('--gpu', metavar='IDS',
                        help='0, 0,2, 0-3 or cpu (default: GPU 0, or the CPU without one)')
    parser.add_argument('--cfg', default='body', metavar='NAME',
                        help='body (default), hand, nano, nano_hand, or a YAML file')
    parser.add_argument('--stage', choices=('lixel', 'param'),
                        help='default: lixel to train, else the snapshot\'s')
    parser.add_argument('--snapshot', metavar='FILE', type=a_path, help='a snapshot by its path')
    parser.add_argument('options', nargs='*', metavar='key=value', help='settings of main/config.py')
    return parser


def configure(args: argparse.Namespace, continue_train: bool = False) -> None:
    """Show messages from here on, and fill the global `cfg` from parsed flags: preset, then flags, then overrides."""
    import torch  # not for --help, which would take seconds with it

    start_console()
    torch.set_num_threads(min(torch.get_num_threads(), core_count()))  # PyTorch does not see a container's quota
    cfg.load(args.cfg)
    cfg.set_args(args.gpu, args.stage or 'lixel', continue_train)
    cfg.override(each_once(args.options))


def chosen_snapshot(args: argparse.Namespace) -> str | Path:
    """The path that --snapshot or --test_epoch names. UserError: neither or both, or not there."""
    from common.snapshot import checkpoint  # imports PyTorch

    if args.snapshot and args.test_epoch is not None:
        raise UserError('--test_epoch and --snapshot both name a snapshot: give one of them')
    if args.snapshot:
        return args.snapshot
    folder = Path(cfg.output_dir) / 'model_dump'
    epochs = [str(epoch) for epoch, _ in checkpoint.find_snapshots(folder)]
    have = ', '.join(epochs) or 'none'
    if args.test_epoch is None:
        raise UserError(f'name a snapshot by --test_epoch N (in {folder}: {have}) or by --snapshot FILE')
    path = checkpoint.snapshot_path(folder, args.test_epoch)
    if not path.is_file():
        raise UserError(f'--test_epoch {args.test_epoch}: no {path.name} in {folder}; epochs there: {have}')
    return path
