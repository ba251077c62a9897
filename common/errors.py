"""Mistakes a user can make: one line that says what is wrong, where, and what to do; exit code 2, no traceback."""
import errno
import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType

# OS errors that are not bugs: one line and a remedy, no traceback.
_OWNER = 'check its owner and permissions, or choose another place'
REMEDIES = {
    errno.ENOSPC: 'make room and start again',
    errno.EDQUOT: 'make room, or ask for a larger quota',
    errno.EFBIG: 'raise the limit (ulimit -f)',
    errno.EROFS: 'choose a folder that can be written',
    errno.EACCES: _OWNER,
    errno.EPERM: _OWNER,
    errno.EIO: 'the disk or the network drive is failing',
    errno.ESTALE: 'the network drive was away: start again',
    errno.ENFILE: 'the whole machine has too many open files',
    errno.EMFILE: 'raise the limit (ulimit -n), or lower num_thread',
}


class UserError(Exception):
    """Something only the user can put right. The message is one or a few lines: what is wrong, where, what to do."""


def shown(value: object, longest: int = 80) -> str:
    """A text that a user or a file gave, made fit for a message: printable, on one line, not too long."""
    printable = ''.join(c if c.isprintable() else ' ' for c in str(value)[:longest])
    return ' '.join(printable.split())


def one_line(error: BaseException) -> str:
    """The message of another library's exception, as part of ours."""
    return shown(error, 200) or type(error).__name__


def run_main(main: Callable[[], int | None]) -> None:
    """Run a command line's `main()` and end the process with its exit code.

    UserErrors and the OS errors of REMEDIES are printed to stderr in one line (exit code 2); Ctrl-C ends with 130, a
    reader that went away (`| head`) with 141. Other exceptions are bugs and keep their traceback.
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
        if error.errno not in REMEDIES:
            raise
        place = ''
        if error.filename:
            place = f'{error.filename}: '
        print(f'error: {place}{error.strerror}: {REMEDIES[error.errno]}', file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        code = 130
    sys.exit(code)


def optional_import(name: str, why: str) -> ModuleType:
    """Import a package that is not required.

    Args:
        name: Of the package.
        why: What needs it, for the message.
    Raises:
        UserError: It is not installed; the message says how to install it.
    """
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
