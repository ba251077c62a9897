"""The files that --input names: images and videos, folders with what lies below them, patterns."""
import glob
import logging
from collections.abc import Iterator
from pathlib import Path

from common.demo.inputs.images import IMAGE_SUFFIXES
from common.demo.inputs.video import is_video
from common.errors import UserError
from common.files.listing import visible_files

log = logging.getLogger(__name__)
RESULT = 'result.json'  # a folder with it holds results, which are no inputs


def find_inputs(*words: str | Path) -> dict[Path, str]:
    """The files that words of the command line name, each once, in the order given.

    Args:
        words: files; folders, which stand for the images in them and in their sub-folders; or patterns such as
            `photos/*.jpg` and `photos/**/a*`, in the order of names.
    Returns:
        {path: name for its results}, which is that of the file, with those of sub-folders before it.
    Raises:
        UserError: a word names nothing.
    """
    found: dict[Path, tuple[Path, str]] = {}  # by the whole path
    for word in words:
        for path, name in _named_by(Path(word)):
            found.setdefault(path.resolve(), (path, name))
    return dict(found.values())


def _named_by(word: Path) -> Iterator[tuple[Path, str]]:
    if word.is_file():
        yield word, word.stem
    elif word.is_dir():
        yield from _in_folder(word)
    elif glob.has_magic(str(word)):
        yield from _by_pattern(word)
    else:
        raise UserError(f'--input {word}: no such file or folder')


def _in_folder(folder: Path) -> list[tuple[Path, str]]:
    """The images in a folder and its sub-folders; those of a folder come before those of its sub-folders."""
    found = []
    results = 0
    for path in images_of(folder, '**/*'):
        parts = path.relative_to(folder).parts
        if _is_result(path, folder):
            results += 1
        else:
            found.append((len(parts), path, '_'.join([*parts[:-1], path.stem])))
    if not found and results:
        raise UserError(f'--input {folder}: its {results} images are results of an earlier run; name the files')
    if not found:
        raise UserError(f'--input {folder}: no images in this folder ({" ".join(sorted(IMAGE_SUFFIXES))})')
    videos = [path for path in visible_files(folder, '**/*') if is_video(path) and not _is_result(path, folder)]
    if videos:
        log.warning('%s: of a folder the images are taken, and not its %d videos; name them, such as %s', folder,
                    len(videos), videos[0])
    return [(path, name) for _, path, name in sorted(found)]


def _by_pattern(pattern: Path) -> list[tuple[Path, str]]:
    """The images and videos that a pattern fits, and the images in the folders that it fits."""
    found = []
    for match in sorted(glob.glob(str(pattern), recursive=True)):
        path = Path(match)
        if path.is_dir() and pattern.name != '**':
            found += [(image, image.stem) for image in images_of(path)]
        elif path.suffix.lower() in IMAGE_SUFFIXES or is_video(path):
            found.append((path, path.stem))
    if not found:
        raise UserError(f'--input {pattern}: no image or video fits this pattern')
    return found


def images_of(folder: Path, pattern: str = '*') -> list[Path]:
    """The images of a folder. A link to nothing is among them: reading it gives the message."""
    return [file for file in visible_files(folder, pattern)
            if file.suffix.lower() in IMAGE_SUFFIXES and (file.is_file() or not file.exists())]


def _is_result(path: Path, folder: Path) -> bool:
    """Whether a file below a folder lies in results of an earlier run."""
    inside = [parent for parent in path.parents if parent.is_relative_to(folder) and parent != folder]
    return any((parent / RESULT).is_file() for parent in inside)
