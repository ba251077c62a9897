"""Images kept on disk: made once by several processes, then read by all loader processes.

A store is a folder of `images.bin` (JPEG files end to end), `ends.npy` (where each of them ends), `numbers.npy`
(a row of floats per image) and `key.json` (the settings it was made with). It appears complete or not at all.
"""
import errno
import hashlib
import json
import os
import shutil
import tempfile
import weakref
from pathlib import Path

import cv2
import numpy as np
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

from common.errors import UserError, is_killed_worker
from common.files.lock import file_lock

JPEG_QUALITY = 95
BUILD = '.making-'  # in the names of folders of stores that are not finished


class ImageStore:
    """Reads a store. Raises ValueError if the folder is none, is damaged, or was made with another key.

    Images are read, not mapped into memory: a file cut short while it is in use would end a process that has it
    mapped. A deleted store can be read to the end of the run.
    """

    def __init__(self, folder, key):
        self.folder, self.key = Path(folder), key
        try:
            if json.loads((self.folder / 'key.json').read_text()) != key:
                raise ValueError(f'{folder} was made with other settings')
            self.ends, self.numbers = (np.load(self.folder / f'{name}.npy') for name in ('ends', 'numbers'))
            self.images = os.open(self.folder / 'images.bin', os.O_RDONLY)
            weakref.finalize(self, os.close, self.images)
        except (OSError, EOFError, RecursionError) as error:
            raise ValueError(f'{folder} is not an image store: {error}') from error
        shapes = [np.shape(array)[:1] for array in (self.ends, self.numbers)]
        if shapes != [(key['count'],)] * 2 or self.ends.dtype != np.int64 or self.numbers.dtype != np.float32:
            raise ValueError(f'{folder} is incomplete')
        if self.ends[-1] != os.fstat(self.images).st_size or np.diff(self.ends, prepend=0).min() <= 0:
            raise ValueError(f'{folder} is incomplete')

    def __getitem__(self, i):
        """Image (H, W, 3) uint8 RGB and its numbers (D,) float32. Raises ValueError for a damaged image."""
        start = int(self.ends[i - 1]) if i else 0
        jpeg = os.pread(self.images, int(self.ends[i]) - start, start)  # shared by loader processes: no seek
        img = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR) if jpeg else None
        if img is None:
            raise ValueError(f'image {i} of {self.folder} is damaged: delete the folder, it is made again')
        return cv2.cvtColor(img, cv2.COLOR_BGR2RGB), np.array(self.numbers[i])

    def __reduce__(self):
        return ImageStore, (self.folder, self.key)


class _Encoded(Dataset):
    """The images of draw(i) as JPEG bytes; a DataLoader spreads the work over processes."""

    def __init__(self, draw, count):
        self.draw, self.count = draw, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        img, numbers = self.draw(i)
        done, jpeg = cv2.imencode('.jpg', img[..., ::-1], (cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY))
        if not done:
            raise ValueError(f'image {i} cannot be encoded')
        return jpeg, np.asarray(numbers, np.float32)


def open_store(root, key, draw, processes=0, title='images'):
    """The ImageStore of a key, made first if root does not have it.

    root: folder of all stores. key: dict of plain values, with `count`, the number of images; the store's folder is
    named after its hash. draw(i) -> image (H, W, 3) uint8 RGB, numbers (D,). processes: to draw with; 0: this one.
    UserError: the folder cannot be written.
    """
    folder = Path(root) / hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(f'{folder}.lock'):  # of several processes one makes it, the others wait
            try:
                return ImageStore(folder, key)
            except ValueError:
                for old in [folder, *folder.parent.glob(f'{folder.name}{BUILD}*')]:  # damaged, or left by a killed run
                    shutil.rmtree(old, ignore_errors=True)
            loader = DataLoader(_Encoded(draw, key['count']), batch_size=None, num_workers=processes,
                                collate_fn=_unchanged, multiprocessing_context='fork' if processes else None)
            _make(folder, key, loader, title)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise UserError(f'cannot keep images in {root}: {error.strerror or error}; '
                        f'{"free some space" if full else "name another folder (synthetic_cache=FOLDER)"}, or turn the '
                        'cache off (synthetic_cache=false)') from error
    except RuntimeError as error:
        if not is_killed_worker(error):
            raise
        raise UserError('a process that draws images was killed, most often because memory ran short: lower '
                        'num_thread, and start again') from error
    return ImageStore(folder, key)


def _make(folder, key, encoded, title):
    """Write a store beside its place, then move it there."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=folder.name + BUILD) as temporary:
        build = Path(temporary) / folder.name
        build.mkdir()
        sizes, numbers = [], []
        with open(build / 'images.bin', 'wb') as file:
            for jpeg, row in tqdm(encoded, total=key['count'], desc=f'making {title}', unit='img', mininterval=1):
                file.write(jpeg.tobytes())
                sizes.append(len(jpeg))
                numbers.append(row)
        np.save(build / 'ends.npy', np.cumsum(sizes, dtype=np.int64))
        np.save(build / 'numbers.npy', np.stack(numbers))
        (build / 'key.json').write_text(json.dumps(key, sort_keys=True, indent=1))
        os.replace(build, folder)


def _unchanged(sample):
    return sample
