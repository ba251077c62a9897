"""The log of a run: one stream of messages, on the terminal and in a text file.

    start_console()                              # a program begins: messages go to the terminal
    open_log(Path('output/log'), 'train_logs')   # a run begins: also into output/log/train_logs.txt

All modules log through `logging.getLogger(__name__)`: INFO for what happens, WARNING for what a user should look into.
"""
import errno
import logging
import logging.handlers
import os
import sys
import time
import weakref
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from common.errors import UserError

OWN = ('common', 'data', 'main')  # packages whose INFO is shown; of others only what is more urgent
MAX_EARLY = 1000  # messages before the log file is open; there are a few
MAX_WAITING = 1 << 24  # bytes of a log kept in memory while the disk takes none


class Appender:
    """Adds lines to a file. What a full disk refuses stays in memory until a later line finds room.

    Args:
        path: file to add to; made if there is none.
    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failing = False
        self.waiting = b''
        self.file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        self.close = weakref.finalize(self, os.close, self.file)
        size = os.fstat(self.file).st_size
        if size and os.pread(self.file, 1, size - 1) != b'\n':
            self.waiting = b'\n'  # a run was killed in the middle of a line

    def write(self, text: str) -> None:
        """Add text that ends with a newline. Never fails."""
        self.waiting = (self.waiting + text.encode('utf-8', 'replace'))[-MAX_WAITING:]
        try:
            while self.waiting:
                written = os.write(self.file, self.waiting)
                self.waiting = self.waiting[written:]
            self.failing = False
        except OSError as error:
            if not self.failing:  # straight to the terminal: the log itself may be what fails
                print(f'warning: cannot write {self.path}: {error.strerror}; its lines are kept until it '
                      'works again', file=sys.stderr)
            self.failing = True


class LevelFormatter(logging.Formatter):
    """The plain message; from WARNING on with its level before it."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if record.levelno < logging.WARNING:
            return text
        return f'{record.levelname.lower()}: {text}'


class Console(logging.Handler):
    """Prints around progress bars: warnings to stderr, all else to stdout."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(LevelFormatter())
        self.pid = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        stream = sys.stdout
        if record.levelno >= logging.WARNING:
            stream = sys.stderr
        try:
            if os.getpid() == self.pid:
                tqdm.write(self.format(record), file=stream)
            else:  # a loader process: no bars, and tqdm's lock, which it was forked with, may never be released
                print(self.format(record), file=stream, flush=True)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            silence(stream)


def silence(stream: TextIO) -> None:
    """Let a stream go nowhere from here on: its terminal is closed, and every line would be an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class LogFile(logging.Handler):
    """Writes messages to a file, each line with its time. OSError: the file cannot be opened."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.setFormatter(LevelFormatter())
        self.appender = Appender(path)

    def emit(self, record: logging.LogRecord) -> None:
        stamp = time.strftime('%m-%d %H:%M:%S', time.localtime(record.created))
        lines = self.format(record).splitlines()
        self.appender.write(''.join(f'{stamp} {line}\n' for line in lines))

    def close(self) -> None:
        self.appender.close()
        super().close()


class Early(logging.handlers.MemoryHandler):
    """Keeps the messages that come before the log file is open, until it has a target to hand them to."""

    def __init__(self) -> None:
        super().__init__(capacity=MAX_EARLY, flushLevel=logging.CRITICAL + 1)


def start_console(level: int = logging.INFO) -> None:
    """Show the program's messages on the terminal, from `level` on; ends the log of an earlier run."""
    close_log()
    for handler in (Console(), Early()):
        logging.getLogger().addHandler(handler)
    for name in OWN:
        logging.getLogger(name).setLevel(level)


def open_log(folder: Path, name: str) -> None:
    """Also write the messages to `folder`/`name`.txt, those since start_console() included.

    Raises:
        UserError: the folder cannot be written.
    """
    root = logging.getLogger()
    if not any(isinstance(handler, Early) for handler in root.handlers):
        start_console()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = LogFile(folder / f'{name}.txt')
    except OSError as error:
        raise UserError(f'cannot write into {folder}: {error.strerror}; choose another folder with '
                        'output_dir=FOLDER') from error
    for early in [handler for handler in root.handlers if isinstance(handler, Early)]:
        root.removeHandler(early)
        early.setTarget(file)
        early.close()
    root.addHandler(file)


def close_log() -> None:
    """Undo start_console() and open_log()."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, (Console, LogFile, Early)):
            root.removeHandler(handler)
            handler.close()
    for name in OWN:
        logging.getLogger(name).setLevel(logging.NOTSET)
