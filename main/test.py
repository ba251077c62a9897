"""Test one snapshot; metrics on the screen and in output/result/<testset>_<epoch>.json.

    python main/test.py --gpu 0 --test_epoch 12
    python main/test.py --cfg nano --snapshot output/model_dump/snapshot_14.pth.tar
"""
import runpy
from pathlib import Path

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().with_name('init_path.py')))

from common.arguments import Parser, show_help
from common.errors import run_main
from main.cli import chosen_snapshot, configure, make_parser
from main.config import cfg


def own_parser() -> Parser:
    """The parser of the command line."""
    parser = make_parser(__doc__)
    parser.add_argument('--test_epoch', type=int, metavar='N',
                        help='snapshot_N of output/model_dump')
    return parser


if __name__ == '__main__':
    show_help(own_parser)  # before PyTorch is imported, which takes seconds

from common.devices import processes


def main(argv: list[str] | None = None) -> None:
    """Run the command line.

    Args:
        argv: its words; default: the process's own.
    Raises:
        UserError: whatever the user has to put right.
    """
    args = own_parser().parse_intermixed_args(argv)
    configure(args)

    from common.base import Tester  # after the GPUs are chosen
    Tester(cfg, chosen_snapshot(args), args.stage).test()
    processes.close()


if __name__ == '__main__':
    run_main(main)
