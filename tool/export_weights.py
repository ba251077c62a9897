"""A small file to share from a snapshot: the network in half precision, without optimiser and resume state.

    python tool/export_weights.py output/model_dump/snapshot_14.pth.tar main/embedded/nano.pth.tar

prints the size of the file, which test.py and demo.py take as --snapshot.
"""
import runpy
from pathlib import Path

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[1] / 'main' / 'init_path.py'))

from common.arguments import Parser, a_path, show_help
from common.errors import run_main


def make_parser() -> Parser:
    """The parser of the command line."""
    parser = Parser(__doc__)
    parser.add_argument('snapshot', type=a_path, help='snapshot_<epoch>.pth.tar of a training')
    parser.add_argument('out', type=a_path, help='file to write')
    return parser


if __name__ == '__main__':
    show_help(make_parser)  # before PyTorch is imported, which takes seconds

from common.snapshot import checkpoint
from tool.files.write import writing


def main(argv: list[str] | None = None) -> None:
    """Run the command line `argv` (default: the process's own)."""
    args = make_parser().parse_args(argv)
    out = Path(args.out)
    with writing(out):
        checkpoint.export_weights(args.snapshot, out)
    print(f'wrote {out}, {out.stat().st_size / 1e6:.2f} MB')


if __name__ == '__main__':
    run_main(main)
