"""Mistakes a user can make: one line that says what is wrong, where, and what to do; exit code 2, no traceback."""
import errno
import importlib
import os
import sys

# What the machine may refuse, and what helps: no fault of the program's, so told without a traceback.
_WHOSE = 'check whose it is, or choose another place'
REFUSALS = {
    errno.ENOSPC: 'make room and start again', errno.EDQUOT: 'make room, or ask for a larger quota',
    errno.EFBIG: 'raise the limit (ulimit -f)', errno.EROFS: 'choose a folder that can be written',
    errno.EACCES: _WHOSE, errno.EPERM: _WHOSE, errno.EIO: 'the disk or the network drive is failing',
    errno.ESTALE: 'the network drive was away: start again', errno.ENFILE: 'the whole machine has too many open files',
    errno.EMFILE: 'raise the limit (ulimit -n), or lower num_thread'}


class UserError(Exception):
    """Something only the user can put right. The message is one or a few lines: what is wrong, where, what to do."""


def shown(value, longest=80):
    """A text that a user or a file gave, as it may stand in a message: printable, on one line, not too long."""
    return ' '.join(''.join(c if c.isprintable() else ' ' for c in str(value)[:longest]).split())


def one_line(error):
    """What an exception of a library says, as part of a message."""
    return shown(error, 200) or type(error).__name__


def run_main(main):
    """Run a command line's `main()` and end the process with its exit code.

    UserError, and what the machine refuses (a full disk, no permission), is printed to stderr without a traceback (exit
    code 2); Ctrl-C ends with 130, a reader that went away (`| head`) with 141; all else keeps its traceback, since it
    is our fault and not the user's.
    """
    try:
        code = main()
        sys.stdout.flush()
    except UserError as error:
        message = str(error)
        if message.startswith('Caught UserError in'):  # a loader process puts its traceback before our words
            message = message.rsplit('UserError: ', 1)[-1].strip()
        print(f'error: {message}', file=sys.stderr)
        code = 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still writes at its end
        code = 141
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        place = f'{error.filename}: ' if error.filename else ''
        print(f'error: {place}{error.strerror}: {REFUSALS[error.errno]}', file=sys.stderr)
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


def is_killed_worker(error: Exception) -> bool:
    """Whether an exception that came out of a DataLoader with processes means that one of them was killed.

    PyTorch has no class for that: it raises a RuntimeError that begins as below, or, where the process was handing over
    a batch, passes on what the connection said. Errors of the data set itself begin with 'Caught <class> in'.
    """
    if isinstance(error, RuntimeError):
        return str(error).startswith('DataLoader worker (pid')
    lost = isinstance(error, (ConnectionError, FileNotFoundError, EOFError))
    return lost and not str(error).startswith('Caught ')
