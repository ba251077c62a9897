"""Mistakes a user can make: one line that says what is wrong, where, and what to do; exit code 2, no traceback."""
import importlib
import sys


class UserError(Exception):
    """Something only the user can put right. The message is one or a few lines: what is wrong, where, what to do."""


def run_main(main):
    """Run a command line's `main()` and end the process with its exit code.

    UserError is printed to stderr without a traceback (exit code 2); Ctrl-C ends with 130; all else keeps its
    traceback, since it is our fault and not the user's.
    """
    try:
        code = main()
    except UserError as error:
        message = str(error)
        if message.startswith('Caught UserError in'):  # a loader process puts its traceback before our words
            message = message.rsplit('UserError: ', 1)[-1].strip()
        print(f'error: {message}', file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        code = 130
    sys.exit(code)


def optional_import(name, why):
    """The module `name`, or UserError: `why` says what needs it, the message how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(f'{why} needs the package "{name}" ({error}): pip install {name}') from error
