"""Files that are written whole or not at all."""
import contextlib
import os
from pathlib import Path


@contextlib.contextmanager
def whole_file(path):
    """A binary file to write to, which takes the place of `path` at the end of the block, synced to the disk.

    Until then, and for good if anything fails, `path` stays as it was. The folder is made if need be. A process killed
    in between leaves `<path>.<its number>.tmp` behind.
    Raises:
        OSError: the disk is full, failing or read-only.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f'{path.name}.{os.getpid()}.tmp')
    try:
        with open(temporary, 'wb') as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, RuntimeError) and isinstance(error.__context__, OSError):
            raise error.__context__ from None  # torch.save hides the disk's complaint behind one of its own
        raise


def write_text(path, text):
    """Write a text file whole or not at all. OSError: the disk is full, failing or read-only."""
    with whole_file(path) as file:
        file.write(text.encode('utf-8'))


def _sync_folder(folder):
    """Let the new name of a file survive a power failure, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
