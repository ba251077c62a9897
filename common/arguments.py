"""Command lines: what all programs share in how they read theirs."""
import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from common.errors import UserError, run_main


class Once(argparse.Action):
    """Stores the value of an option. UserError if it is given twice."""
    given = False

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        if option_string and self.given:
            raise UserError(f'{option_string} is given twice: leave out one of them')
        self.given = True
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are UserErrors of one line.

    Args:
        doc: A program's docstring; the help begins with it, as it is laid out there.
    """

    def __init__(self, doc: str | None) -> None:
        super().__init__(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter,
                         allow_abbrev=False)  # resume_hint and others look for whole words
        self.register('action', None, Once)  # the action of every option that names no other

    def error(self, message: str) -> NoReturn:
        """UserError with argparse's message."""
        raise UserError(f'{message}; --help lists the options')


def show_help(make_parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Print a program's help and end the process, where its command line asks for it."""
    if {'-h', '--help'} & set(sys.argv[1:]):
        run_main(lambda: make_parser().print_help())


def not_empty(text: str) -> str:
    """The type of options that must not be empty: an empty text comes from a shell variable that was not set."""
    if not text:
        raise argparse.ArgumentTypeError('it is empty')
    return text


def written_out(path: str, name: str = '') -> str:
    """A path that a user gave, with the home folder in place of `~`.

    Args:
        path: The path.
        name: What it was given for, as the message begins: '--out'.
    Raises:
        UserError: It has the name of a variable ($NAME), which only a shell replaces, or `~` of an unknown user.
    """
    start = f'{name} {path}'.strip()
    if re.search(r'\$(\w|\{)', path):
        raise UserError(f'{start}: $NAME is not replaced here: write the folder out')
    try:
        return str(Path(path).expanduser()) if path.startswith('~') else path
    except RuntimeError as error:
        raise UserError(f'{start}: {path.partition("/")[0]} is no home folder here: write it out, or ./~...') from error


def a_path(text: str) -> str:
    """The type of options that name a file or folder: not empty, and written out."""
    try:
        return written_out(not_empty(text))
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def each_once(words: list[str]) -> list[str]:
    """The `key=value` words of a command line, as they are. UserError if a key occurs twice."""
    seen = set()
    for word in words:
        key = word.partition('=')[0]
        if key in seen:
            raise UserError(f'{key}=... is given twice: leave out one of them')
        seen.add(key)
    return words
