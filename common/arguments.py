"""Command lines: what all programs share in how they read theirs."""
import argparse

from common.errors import UserError


class Once(argparse.Action):
    """Stores the value of an option. UserError if it is given twice: only one of the values could count."""
    given = False

    def __call__(self, parser, namespace, values, option_string=None):
        if option_string and self.given:
            raise UserError(f'{option_string} is given twice: leave out one of them')
        self.given = True
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """An argument parser whose help begins with `doc`, a program's docstring, as it is laid out there.

    What it refuses is a UserError of one line, as all other mistakes are, and not a page of usage.
    """

    def __init__(self, doc):
        super().__init__(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter,
                         allow_abbrev=False)  # resume_hint and others look for whole words
        self.register('action', None, Once)  # the action of every option that names no other

    def error(self, message):
        raise UserError(f'{message}; --help lists what there is')


def not_empty(text):
    """The type of options whose empty text is a shell variable that was not set, and no wish for the default."""
    if not text:
        raise argparse.ArgumentTypeError('it is empty')
    return text


def each_once(words):
    """The `key=value` words of a command line, as they are. UserError if one of the keys is there twice."""
    keys = [word.partition('=')[0] for word in words]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise UserError(f'{twice}=... is given twice: leave out one of them')
    return words
