"""An index: the samples of one data set and split, parsed once and mapped into memory at every later start.

The file `<cache_dir>/<set>_<split>.index` (common/files/mapped.py) says what it was made of: the data set's settings,
the source that made it, and each file that was read. It is used only while all of that is the same, and else replaced.
"""
import contextlib
import functools
import hashlib
import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from common.files.lock import file_lock
from common.files.mapped import read_mapped, write_mapped
from common.human_model.body_model import HumanModel
from data.files import noting, stamp
from data.fit_bodies import fingerprint
from data.packed import PackedSamples
from data.settings import Settings

log = logging.getLogger(__name__)
FORMAT = 1  # of the content; another one is parsed again
WAITING = 60.  # seconds between two messages that this process waits for another one
ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ('input_img_shape', 'output_hm_shape', 'bbox_3d_size', 'use_gt_info', 'rootnet_box_format', 'fit_limit_mm',
            'fit_limit_lixel', 'coco_fit_check', 'missing_image')  # that count for every data set
SHARED_SOURCES = ('data/*.py', 'data/checks/*.py', 'common/files/*.py', 'common/utils/*.py')


@dataclass
class Parsed:
    """What parsing gives.

    Attributes:
        samples: The samples.
        state: What else the data set needs to know about them: plain values.
        settings: The settings that the loader asked for: plain values.
        is_earlier: An earlier start, or another process, has parsed.
    """
    samples: PackedSamples
    state: dict[str, Any]
    settings: dict[str, Any]
    is_earlier: bool = False


class Index:
    """The index of one data set and split.

    Args:
        folder: Of all indices.
        key: See `sample_key`.
        setting: name -> the value of a setting at present.
    """

    def __init__(self, folder: str | Path, key: dict[str, Any], setting: Callable[[str], Any]) -> None:
        self.title = f'{key["set"]} {key["split"]}'
        self.path = index_path(folder, key['set'], key['split'])
        self.key = plain(key)
        self.setting = setting

    def open(self, parse: Callable[[], Parsed], again: bool = False) -> Parsed:
        """What the index holds; where there is none that fits, what `parse` gives, kept for the next start.

        Of several processes that need the same index one parses, and the others wait for it. A folder that cannot be
        written costs a note, and every process parses for itself.

        Args:
            parse: Makes the samples.
            again: Parse in any case.
        """
        found = self.read()
        if found is not None and not again:
            return found
        with contextlib.ExitStack() as stack:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                lock = file_lock(f'{self.path}.lock')
                self._wait_for(lock)
                stack.callback(lock.release)
            except OSError as error:  # read-only, or a drive without locks
                log.info('note: %s cannot be locked (%s)', self.path, error.strerror or error)
            else:
                found = self.read(silent=True)
                if found is not None and not again:
                    return found
                self._remove_leftovers()
            return self._make(parse)

    def read(self, silent: bool = False) -> Parsed | None:
        """The content of the file, or None if it is absent, damaged, or made of something else, and says so."""
        level = logging.DEBUG if silent else logging.INFO
        try:
            content, arrays = read_mapped(self.path)
            samples = PackedSamples(arrays['data'], arrays['ends'], map(_layout, content['layouts']))
            found = Parsed(samples, content['state'], content['settings'], is_earlier=True)
            reason = self._out_of_date(content)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            log.log(level, 'note: %s: the index is made again (%s)', self.title, error)
            return None
        if reason:
            log.log(level, '%s: the annotations are read again: %s', self.title, reason)
            return None
        return found

    def _out_of_date(self, content: dict[str, Any]) -> str:
        """What has changed since the index was made; '' for nothing."""
        old = content['key']
        for name in sorted(old.keys() | self.key.keys()):
            if old.get(name) != self.key.get(name):
                return f'another {name}'
        for name, value in content['settings'].items():
            if plain(self.setting(name)) != value:
                return f'another {name}'
        for path, old_stamp in content['files'].items():
            if stamp(path) != old_stamp:
                return f'{path} has changed'
        return ''

    def _make(self, parse: Callable[[], Parsed]) -> Parsed:
        """Parse, and keep the result if that can be."""
        with noting() as files:
            parsed = parse()
        if not len(parsed.samples):
            return parsed
        if not files:
            log.info('note: %s is not kept in an index: its loader reads no file by data/files.py', self.title)
            return parsed
        if any(stamp(path) != old for path, old in files.items()):
            log.warning('%s: annotation files have changed while they were read: start again', self.title)
            return parsed
        samples = parsed.samples
        content = {'key': self.key, 'settings': plain(parsed.settings), 'files': files, 'state': parsed.state,
                   'layouts': samples.layouts}
        try:
            write_mapped(self.path, content, {'data': samples.data, 'ends': samples.ends})
        except OSError as error:
            log.info('note: the samples of %s cannot be kept in %s (%s), and are parsed at every start: name another '
                     'cache_dir, or set use_index=false', self.title, self.path.parent, error.strerror or error)
            return parsed
        kept = self.read()
        if kept is not None:  # let go of the copy in memory
            parsed.samples = kept.samples
        return parsed

    def _wait_for(self, lock: FileLock) -> None:
        """Acquire a lock; says from time to time that another process has it. OSError: it cannot be had."""
        started = time.monotonic()
        timeout = 0.
        while True:
            try:
                lock.acquire(timeout=timeout)
                return
            except Timeout:
                log.info('%s: another process reads the annotations; waiting for it (%d s so far)', self.title,
                         time.monotonic() - started)
                timeout = WAITING

    def _remove_leftovers(self) -> None:
        """Delete what processes left that were killed while they wrote this index."""
        for path in self.path.parent.glob(f'{self.path.name}.*.tmp'):
            with contextlib.suppress(OSError):
                path.unlink()


def forget(folder: str | Path, name: str, split: str) -> None:
    """Delete the index of a data set and split, if it can be, so that the next start parses."""
    with contextlib.suppress(OSError):
        index_path(folder, name, split).unlink()


def index_path(folder: str | Path, name: str, split: str) -> Path:
    """The file of an index, in the folder of all of them."""
    return Path(folder) / f'{name}_{split}.index'


class Watched:
    """A configuration that remembers which settings it was asked for, in `asked` {name: value}."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings
        self.asked: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._settings, name)
        self.asked[name] = value
        return value


def sample_key(loader: type, split: str, cfg: Settings, body: HumanModel) -> dict[str, Any]:
    """What the samples of a data set depend on, besides files and the settings that its loader asks for.

    Args:
        loader: The class of the data set.
        split: 'train', 'validation' or 'test'.
        cfg: The settings.
        body: The network's body model.
    """
    key = {name: getattr(cfg, name) for name in SETTINGS}
    if split != 'train':
        key['exclude'] = cfg.exclude
    folder = Path(cfg.data_dir) / loader.__name__
    return {'set': loader.__name__, 'split': split, 'folder': str(folder), 'body model': fingerprint(body),
            'format': FORMAT, 'source': source_hash(loader), **key}


@functools.lru_cache(maxsize=32)
def source_hash(loader: type) -> str:
    """Checksum of the source that makes the samples: of a data set's class, its bases, and what all of them share."""
    paths = {path for pattern in SHARED_SOURCES for path in ROOT.glob(pattern)}
    for base in loader.__mro__:
        file = getattr(sys.modules.get(base.__module__), '__file__', None)
        if file is not None:
            paths.update(Path(file).resolve().parent.glob('*.py'))
    checksum = hashlib.sha256()
    for path in sorted(paths):
        checksum.update(path.read_bytes())
    return checksum.hexdigest()


def plain(value: Any) -> Any:
    """A value as JSON gives it back: a tuple as a list."""
    return json.loads(json.dumps(value))


def _layout(stored: list[Any]) -> tuple[tuple[int, str, tuple[int, ...]], ...]:
    """A layout of PackedSamples out of JSON."""
    return tuple((number, str(np.dtype(dtype).str), tuple(shape)) for number, dtype, shape in stored)
