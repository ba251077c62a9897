"""A small file to share from a snapshot: the network in half precision, without optimiser and resume state.

    python tool/export_weights.py output/model_dump/snapshot_14.pth.tar main/embedded/nano.pth.tar
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common.arguments import Parser, not_empty  # noqa: E402
from common.errors import UserError, run_main  # noqa: E402
from common.snapshot import checkpoint  # noqa: E402


def main(argv=None):
    parser = Parser(__doc__)
    parser.add_argument('snapshot', type=not_empty, help='snapshot_<epoch>.pth.tar of a training')
    parser.add_argument('out', type=not_empty, help='file to write')
    args = parser.parse_args(argv)
    args.out = Path(args.out)
    try:
        checkpoint.export_weights(args.snapshot, args.out)
    except OSError as error:
        raise UserError(f'cannot write {args.out} ({error.strerror or error}): choose another place') from error
    print(f'wrote {args.out}, {args.out.stat().st_size / 1e6:.2f} MB')


if __name__ == '__main__':
    run_main(main)
