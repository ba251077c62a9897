"""Listing folders, as people see them."""
import os
from pathlib import Path


def visible_files(folder: Path, pattern: str = '*') -> list[Path]:
    """Files and folders by a glob pattern, sorted, without hidden ones and what lies in hidden folders.

    macOS puts a file `._NAME` beside every file that it copies to other systems: it has the same ending, sorts first,
    and is neither an image nor anything else.

    Args:
        folder: where to look; one that does not exist has no files.
        pattern: names, as `Path.glob` takes them; `**/` looks in all folders below.
    Returns:
        Paths that begin with `folder`.
    """
    found = []
    for path in folder.glob(pattern):
        parts = path.relative_to(folder).parts
        if not any(part.startswith('.') for part in parts):
            found.append(path)
    return sorted(found)


class KnownFiles:
    """Answers for many files whether they are there: each folder is listed once, to ask for each would take minutes."""

    def __init__(self) -> None:
        self.listed: dict[str, set[str]] = {}  # folder -> names of the files in it

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        folder, name = os.path.split(path)
        if folder not in self.listed:
            self.listed[folder] = set()
            if os.path.isdir(folder):
                self.listed[folder].update(os.listdir(folder))
        if name in self.listed[folder]:
            return True
        # the second look is for file systems to which names are the same that differ in case or accents
        return bool(self.listed[folder]) and os.path.exists(path)
