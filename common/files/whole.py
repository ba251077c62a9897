"""Files that are written whole or not at all."""
import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: str | Path, sync: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends.

    Until then, and for good if anything fails, `path` stays as it was. Missing folders are made. A process killed
    in between leaves `<path>.<process id>.tmp` behind.

    Args:
        path: The file to write.
        sync: Force the bytes to the disk, so that they survive a power failure.
    Yields:
        The binary file to write to.
    Raises:
        OSError: The disk is full, failing or read-only.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f'{path.name}.{os.getpid()}.tmp')
    try:
        with open(temporary, 'wb') as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if sync:
            _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, RuntimeError) and isinstance(error.__context__, OSError):
            raise error.__context__ from None  # torch.save hides the OSError behind a RuntimeError
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 text file whole or not at all. OSError: the disk is full, failing or read-only."""
    with whole_file(path) as file:
        file.write(text.encode('utf-8'))


def write_json(path: str | Path, content: object) -> None:
    """Write a JSON file whole or not at all.

    Raises:
        OSError: The disk is full, failing or read-only.
        ValueError: `content` has a number that is not finite.
    """
    write_text(path, json.dumps(content, allow_nan=False))


def _sync_folder(folder: Path) -> None:
    """Let the new name of a file survive a power failure, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
