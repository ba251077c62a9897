"""Images kept on disk: made once by several processes, then read by all loader processes.

A store is a folder of `images.bin` (JPEG files end to end), `ends.npy` (where each of them ends), `numbers.npy`
(a row of floats per image) and `key.json` (the settings it was made with). It appears complete or not at all; a
folder `<store>.making` beside it holds what a stopped run has drawn of it.
"""
import errno
import hashlib
import json
import logging
import os
import shutil
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import cv2
import numpy as np
from torch.utils.data import DataLoader, Dataset, Subset
from tqdm import tqdm

from common.errors import UserError, is_killed_worker
from common.files.lock import file_lock

log = logging.getLogger(__name__)
JPEG_QUALITY = 95
# i -> image (H, W, 3) uint8 RGB, numbers (D,)
Draw = Callable[[int], tuple[np.ndarray, np.ndarray]]
Key = dict[str, Any]  # plain values, with `count`, the number of images
BUILD = '.making'  # ends the name of a folder whose store is not finished
ROWS = 'rows.bin'  # there: size and numbers of every image so far
CHUNK = 200  # images between two writes that survive a power cut,
PAUSE = 1.  # or seconds


class ImageStore:
    """Reads a store. Raises ValueError if the folder is not a store, is damaged, or was made with another key.

    Images are read, not mapped into memory: a file cut short while it is in use would end a process that has it
    mapped. A deleted store can be read to the end of the run.
    """

    def __init__(self, folder: str | Path, key: Key) -> None:
        self.folder = Path(folder)
        self.key = key
        try:
            if json.loads((self.folder / 'key.json').read_text()) != key:
                raise ValueError(f'{folder} was made with other settings')
            self.ends = np.load(self.folder / 'ends.npy')
            self.numbers = np.load(self.folder / 'numbers.npy')
            self.images = os.open(self.folder / 'images.bin', os.O_RDONLY)
            weakref.finalize(self, os.close, self.images)
        except (OSError, EOFError, RecursionError) as error:
            raise ValueError(f'{folder} is not an image store: {error}') from error
        for array, dtype in ((self.ends, np.int64), (self.numbers, np.float32)):
            if np.shape(array)[:1] != (key['count'],) or array.dtype != dtype:
                raise ValueError(f'{folder} is incomplete')
        if self.ends[-1] != os.fstat(self.images).st_size or np.diff(self.ends, prepend=0).min() <= 0:
            raise ValueError(f'{folder} is incomplete')

    def __getitem__(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Image (H, W, 3) uint8 RGB and its numbers (D,) float32. Raises ValueError for a damaged image."""
        start = 0
        if i:
            start = int(self.ends[i - 1])
        # shared by loader processes: no seek
        jpeg = os.pread(self.images, int(self.ends[i]) - start, start)
        img = None
        if jpeg:
            img = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
        if img is None:
            raise ValueError(f'image {i} of {self.folder} is damaged: delete the folder, it is made again')
        return cv2.cvtColor(img, cv2.COLOR_BGR2RGB), np.array(self.numbers[i])

    def __reduce__(self) -> tuple[type, tuple[Path, Key]]:
        return ImageStore, (self.folder, self.key)


class _Encoded(Dataset):
    """The images of draw(i) as JPEG bytes; a DataLoader spreads the work over processes."""

    def __init__(self, draw: Draw, count: int) -> None:
        self.draw = draw
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        img, numbers = self.draw(i)
        done, jpeg = cv2.imencode('.jpg', img[..., ::-1], (cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY))
        if not done:
            raise ValueError(f'image {i} cannot be encoded')
        return jpeg, np.asarray(numbers, np.float32)


def open_store(root: str | Path, key: Key, draw: Draw, processes: int = 0,
               title: str = 'images') -> ImageStore:
    """The ImageStore of a key, made first if root does not have it.

    Args:
        root: Folder of all stores.
        key: What the images depend on. The store's folder is named after its hash.
        draw: Makes them.
        processes: To draw with; 0: this one.
        title: What is drawn, for the progress bar.
    Raises:
        UserError: The folder cannot be written.
    """
    folder = Path(root) / hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(f'{folder}.lock'):  # of several processes one makes it, the others wait
            try:
                return ImageStore(folder, key)
            except ValueError:
                shutil.rmtree(folder, ignore_errors=True)  # damaged
            _make(folder, key, _Encoded(draw, key['count']), processes, title)
    except OSError as error:
        remedy = 'name another folder (synthetic_cache=FOLDER)'
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            remedy = 'free some space'
        raise UserError(f'cannot keep images in {root}: {error.strerror or error}; {remedy}, or turn the cache off '
                        '(synthetic_cache=false)') from error
    except RuntimeError as error:
        if not is_killed_worker(error):
            raise
        raise UserError('a process that draws images was killed, most often because memory ran short: lower '
                        'num_thread, and start again') from error
    return ImageStore(folder, key)


def _make(folder: Path, key: Key, encoded: _Encoded, processes: int, title: str) -> None:
    """Write a store beside its place, then move it there. One that was stopped is taken up where it stopped."""
    build = folder.with_name(folder.name + BUILD)
    build.mkdir(exist_ok=True)
    count = key['count']
    start = time.perf_counter()
    width = 1 + len(encoded[0][1])
    seconds = time.perf_counter() - start
    done = len(_recover(build, width))
    minutes = seconds * (count - done) / max(1, processes) / 60
    log.info('drawing %s into %s, once; about %.0f minutes', title, folder, max(1, minutes))
    if done:
        log.info('the first %d are there, from a run that was stopped', done)
    context = 'fork' if processes else None
    loader = DataLoader(Subset(encoded, range(done, count)), batch_size=None, num_workers=processes,
                        collate_fn=_unchanged, multiprocessing_context=context)
    with open(build / 'images.bin', 'ab') as images, open(build / ROWS, 'ab') as rows:
        waiting: list[np.ndarray] = []
        written = time.monotonic()
        try:
            for jpeg, numbers in tqdm(loader, total=count, initial=done, desc=title, unit='img', mininterval=1):
                images.write(jpeg.tobytes())
                waiting.append(np.append(len(jpeg), numbers))
                if len(waiting) == CHUNK or time.monotonic() - written > PAUSE:
                    _commit(images, rows, waiting)
                    written = time.monotonic()
        finally:
            _commit(images, rows, waiting)
    table = _recover(build, width)
    np.save(build / 'ends.npy', np.cumsum(table[:, 0], dtype=np.int64))
    np.save(build / 'numbers.npy', table[:, 1:].astype(np.float32))
    (build / 'key.json').write_text(json.dumps(key, sort_keys=True, indent=1))
    os.replace(build, folder)
    (folder / ROWS).unlink()


def _commit(images: IO[bytes], rows: IO[bytes], waiting: list[np.ndarray]) -> None:
    """Put images on the disk, and then the rows that say so; empties `waiting`, the rows of those just written."""
    images.flush()
    os.fsync(images.fileno())
    for row in waiting:
        rows.write(row.astype(np.float64).tobytes())
    rows.flush()
    waiting.clear()


def _recover(build: Path, width: int) -> np.ndarray:
    """The rows (N, width) of the whole images of an unfinished store: size in bytes, then the numbers.

    Cuts off what a killed run left half-written.
    """
    rows = np.zeros((0, width))
    if (build / ROWS).exists() and (build / 'images.bin').exists():
        values = np.fromfile(build / ROWS, np.float64)
        rows = values[:len(values) // width * width].reshape(-1, width)
        whole = rows[:, 0].cumsum() <= (build / 'images.bin').stat().st_size
        rows = rows[whole]
        os.truncate(build / 'images.bin', int(rows[:, 0].sum()))
        os.truncate(build / ROWS, rows.nbytes)
    return rows


def _unchanged(sample: Any) -> Any:
    return sample
