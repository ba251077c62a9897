"""The command line that the converters share."""
from collections.abc import Iterable
from pathlib import Path

from common.arguments import Parser
from main.config import ROOT


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
    parser.add_argument('raw', type=Path, help=raw)
    parser.add_argument('--split', nargs='+', choices=tuple(splits), default=tuple(splits),
                        help='splits to convert')
    parser.add_argument('--out', type=Path, default=ROOT / 'data' / name / 'data',
                        help='folder to write to')
    parser.add_argument('--human_model_dir', type=Path, default=ROOT / 'data' / 'human_models',
                        help=f'folder with {models}')
    return parser
