"""The command line that the converters share."""
from collections.abc import Iterable
from pathlib import Path

from common.arguments import Parser, a_path
from main.bundled import ROOT


def folder(text: str) -> Path:
    """The type of options that name a folder."""
    return Path(a_path(text))


def make_parser(doc: str | None, name: str, raw: str, splits: Iterable[str], models: str) -> Parser:
    """A parser for a converter.

    Args:
        doc: The program's docstring.
        name: The data set, whose data/ folder is written to.
        raw: What the official folder is, for the help.
        splits: Names of the official splits.
        models: The body-model files needed, for the help.
    """
    parser = Parser(doc)
    parser.add_argument('raw', type=folder, help=raw)
    parser.add_argument('--split', nargs='+', choices=tuple(splits), default=tuple(splits),
                        help='splits to convert')
    parser.add_argument('--out', type=folder, default=ROOT / 'data' / name / 'data',
                        help='folder to write to')
    parser.add_argument('--human_model_dir', type=folder, default=ROOT / 'data' / 'human_models',
                        help=f'folder with {models}')
    return parser


def add_max_damaged(parser: Parser) -> None:
    """Add the option --max_damaged, of converters that leave out damaged items."""
    parser.add_argument('--max_damaged', type=float, default=0.05, metavar='SHARE',
                        help='share of damaged or missing items that are left out (default: 0.05); more stop the run')
