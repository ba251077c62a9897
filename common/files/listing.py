"""Listing folders, as people see them."""
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
