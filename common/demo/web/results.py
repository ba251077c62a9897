"""The results that the page shows: the last one of each of its tabs."""
import contextlib
import secrets
import tempfile
import threading
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

TABS_KEPT = 16
ZIP = 'all.zip'

Content = bytes | Path | Callable[[], bytes]  # of a file: itself, where it is, or a function that makes it


@dataclass
class Result:
    """The files of an image or video.

    Attributes:
        name: of the image or video, without its ending.
        files: by name. Those for the page alone end in .bin.
        folder: where files on disk are; it goes with the result.
    """
    name: str
    files: dict[str, Content]
    folder: tempfile.TemporaryDirectory | None = None

    def write_zip(self, file: BinaryIO) -> None:
        """Write all files but those for the page alone."""
        with zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, content in self.files.items():
                if name.endswith('.bin'):
                    continue
                with _opened(content) as source, archive.open(f'{self.name}/{name}', 'w', force_zip64=True) as target:
                    while part := source.read(1 << 20):
                        target.write(part)


def _opened(content: Content) -> BinaryIO:
    if isinstance(content, Path):
        return open(content, 'rb')
    if isinstance(content, bytes):
        return BytesIO(content)
    return BytesIO(content())


class Results:
    """Keeps the last result of each tab; of the tabs, those that computed last. It is used by several threads."""

    def __init__(self) -> None:
        self.changing = threading.Lock()
        self.kept: OrderedDict[str, tuple[str, Result]] = OrderedDict()  # tab -> (key, result), oldest first

    def keep(self, tab: str, result: Result) -> str:
        """Keep a result in place of the tab's last one; returns the address of its files."""
        key = secrets.token_urlsafe(12)
        with self.changing:
            gone = [self.kept.pop(tab)] if tab in self.kept else []
            self.kept[tab] = (key, result)
            while len(self.kept) > TABS_KEPT:
                gone.append(self.kept.popitem(last=False)[1])
        for _, old in gone:
            _delete(old)
        return f'/results/{key}/'

    def open(self, key: str, name: str) -> BinaryIO | None:
        """A file of a result, opened, or None if there is none (any more)."""
        with self.changing:
            result = dict(self.kept.values()).get(key)
        if result is None:
            return None
        try:
            if name == ZIP:
                file = tempfile.TemporaryFile()
                result.write_zip(file)
                file.seek(0)
                return file
            if name in result.files:
                return _opened(result.files[name])
        except FileNotFoundError:  # deleted in this moment
            pass
        return None

    def clear(self) -> None:
        """Delete everything."""
        with self.changing:
            for _, result in self.kept.values():
                _delete(result)
            self.kept.clear()


def _delete(result: Result) -> None:
    if result.folder is not None:
        with contextlib.suppress(OSError):
            result.folder.cleanup()
