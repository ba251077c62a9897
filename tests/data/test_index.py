"""The index of samples: the same data set with it and without it, whatever happened to its file."""
import errno
import json
import multiprocessing
import os
import shutil
import signal
import time

import numpy as np
import pytest

from common.base import Trainer
from common.errors import UserError
from common.files import mapped
from common.utils.preprocessing import AugParams
from data import index as index_module
from data.files import read_json
from data.index import FORMAT, Index, Parsed
from data.packed import PackedSamples
from data.sample import Sample
from tests.data_tools import bits
from tests.faults.running_child import read_losses
from tests.tiny import calling, tiny_config
from tool import check_assets

SETS = [('Human36M', 'train'), ('Human36M', 'test'), ('MuCo', 'train'), ('MSCOCO', 'train'), ('MSCOCO', 'test'),
        ('PW3D', 'train'), ('PW3D', 'test'), ('FreiHAND', 'train'), ('FreiHAND', 'test')]
AUG = AugParams(1.1, 20., (.9, 1., 1.1), False)


def content(dataset):
    """All that a data set says and hands out."""
    items = [dataset.get_item(number, AUG) for number in range(len(dataset))]
    kept = {name: getattr(dataset, name) for name in dataset.kept}
    return bits([list(dataset.samples), items, dataset.check.state(), dataset.boxes.state(), dataset.exclusion.count,
                 kept, dataset.boxes.depth_source])


@pytest.mark.parametrize(('name', 'split'), SETS)
def test_the_same_samples_with_and_without_an_index(open_set, name, split, tmp_path, monkeypatch, caplog):
    options = [f'cache_dir={tmp_path}', 'use_index=true']
    plain = open_set(name, split)
    first = open_set(name, split, *options)
    assert [path.name for path in tmp_path.glob('*.index')] == [f'{name}_{split}.index']
    reports = [record.getMessage() for record in caplog.records if record.levelname == 'WARNING']
    monkeypatch.setattr(type(plain), 'load', None)  # nothing is parsed any more
    caplog.clear()
    second = open_set(name, split, *options)
    assert content(plain) == content(first) == content(second)
    assert isinstance(second.samples.data.base, np.ndarray) and not second.samples.data.flags.writeable
    for record in caplog.records:
        if record.levelname == 'WARNING':
            assert record.getMessage().split('; found at')[0] in reports


class Source:
    """A file of numbers as a data set, and how often it was parsed."""

    def __init__(self, folder):
        self.path = folder / 'numbers.json'
        self.cache = folder / 'cache'
        self.settings = {'scale': 2}
        self.parsed = 0
        self.during = None
        self.write([3, 1, 2])

    def write(self, numbers):
        self.path.write_text(json.dumps(numbers))

    def parse(self):
        self.parsed += 1
        if self.during:
            self.during()
        numbers = read_json(self.path, 'numbers')
        scale = self.settings['scale']
        samples = [Sample(f'{number}.jpg', (8, 8), np.float32([0, 0, number * scale, 1])) for number in numbers]
        return Parsed(PackedSamples.pack(samples), {'sum': sum(numbers)}, {'scale': scale})

    def open(self, **key):
        """The widths of the boxes, in order, and the state."""
        key = {'set': 'Numbers', 'split': 'train', 'format': FORMAT, 'source': 'a', **key}
        found = Index(self.cache, key, self.settings.__getitem__).open(self.parse)
        return [float(sample.bbox[2]) for sample in found.samples], found.state['sum']

    @property
    def file(self):
        return self.cache / 'Numbers_train.index'


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path)


RIGHT = ([6., 2., 4.], 6)


def test_it_is_made_once(source):
    assert [source.open() for _ in range(3)] == [RIGHT] * 3 and source.parsed == 1


@pytest.mark.parametrize('change', ['file', 'time', 'setting', 'format', 'source', 'folder', 'clock', 'gone and back'])
def test_whatever_has_changed_is_parsed_again(source, change):
    source.open()
    right = RIGHT
    key = {}
    status = os.stat(source.path)
    if change == 'file':
        source.write([4, 1, 2])
        os.utime(source.path, ns=(status.st_atime_ns, status.st_mtime_ns))  # of the same size and date
        right = ([8., 2., 4.], 7)
    elif change == 'time':
        os.utime(source.path, ns=(0, status.st_mtime_ns + 1))
    elif change == 'clock':
        source.write([3, 1, 2])
        os.utime(source.path, (0, 10 ** 8))  # written by a machine whose clock was set back
    elif change == 'gone and back':
        source.path.rename(source.path.with_suffix('.away'))
        with pytest.raises(UserError, match='numbers.json is missing'):
            source.open()
        source.path.with_suffix('.away').rename(source.path)
        source.parsed = 1
    elif change == 'setting':
        source.settings['scale'] = 3
        right = ([9., 3., 6.], 6)
    else:
        key = {change: 'another'}
    assert source.open(**key) == right and source.open(**key) == right and source.parsed == 2
    assert sorted(path.name for path in source.cache.iterdir()) == ['Numbers_train.index', 'Numbers_train.index.lock']


def faults(data):
    """(name, content) of files that are no good index: cut off, with flipped bytes, and of another kind."""
    for place in np.linspace(0, len(data) - 1, 14).astype(int):
        yield f'cut at {place}', data[:place]
    for place in np.linspace(0, len(data) - 1, 18).astype(int):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        yield f'flipped {place}', bytes(damaged)
    yield 'longer', data + b'\0'
    yield 'zeros', bytes(len(data))
    yield 'json', b'{"samples": []}'
    yield 'another magic', data.replace(mapped.MAGIC, b'I2LMAP9\n')
    yield 'huge header', mapped.MAGIC + b'\xff' * 40


def test_a_damaged_or_foreign_file_is_made_again(source):
    source.open()
    good = source.file.read_bytes()
    count = 0
    for name, data in faults(good):
        source.file.write_bytes(data)
        source.parsed = 0
        assert source.open() == RIGHT, name
        if source.parsed:  # a flipped byte between two arrays does no harm
            assert source.file.read_bytes() == good, name
        else:
            assert name.startswith('flipped'), name
        count += source.parsed
    assert count >= 35


def test_valid_files_of_another_content_are_made_again(source):
    source.open()
    header, arrays = mapped.read_mapped(source.file)
    for change in ({'files': None}, {'layouts': None}, {'key': None}, {'settings': {'no such': 1}},
                   {'state': Ellipsis}):
        spoiled = {name: value for name, value in {**header, **change}.items() if value is not Ellipsis}
        mapped.write_mapped(source.file, spoiled, arrays)
        assert source.open() == RIGHT
    mapped.write_mapped(source.file, header, {'ends': arrays['ends']})
    assert source.open() == RIGHT and source.parsed == 7


def test_another_set_under_the_name(source, tmp_path):
    source.open()
    other = Source(tmp_path)
    other.cache = tmp_path / 'other'
    other.open(folder='other')
    shutil.copy(other.file, source.file)
    assert source.open() == RIGHT and source.parsed == 2


@pytest.mark.parametrize('error', [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_without_a_place_to_write_it_works_with_one_note(source, monkeypatch, caplog, error):
    def refuse(*args, **options):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(mapped, 'whole_file', refuse)
    caplog.set_level('INFO')
    assert source.open() == RIGHT
    notes = [record.getMessage() for record in caplog.records]
    assert len(notes) == 1 and os.strerror(error) in notes[0] and 'use_index=false' in notes[0]
    assert not source.file.exists() and source.open() == RIGHT and source.parsed == 2


@pytest.mark.parametrize('is_file', [False, True])
def test_a_folder_that_cannot_be_made_or_locked(source, monkeypatch, caplog, is_file):
    if is_file:
        source.cache.write_text('no folder')
    else:
        def no_locks(path):
            raise OSError(errno.ENOLCK, 'No locks available')
        monkeypatch.setattr(index_module, 'file_lock', no_locks)
    caplog.set_level('INFO')
    assert source.open() == RIGHT and source.open() == RIGHT
    assert source.parsed == 2 if is_file else source.parsed == 1
    if is_file:
        assert sum('cannot be kept' in record.getMessage() for record in caplog.records) == 2


def test_a_full_disk_in_the_middle_leaves_the_old_file_and_no_rest(source, monkeypatch):
    source.open()
    source.settings['scale'] = 3

    def fill(file, position):
        raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr(mapped, '_fill', fill)
    assert source.open() == ([9., 3., 6.], 6)
    source.settings['scale'] = 2
    assert source.open() == RIGHT and source.parsed == 2  # the old file is still good
    assert sorted(path.name for path in source.cache.iterdir()) == ['Numbers_train.index', 'Numbers_train.index.lock']


def test_files_that_change_while_they_are_read_are_not_kept(source, caplog):
    source.during = lambda: (read_json(source.path, 'numbers'), source.write([5, 1, 2]))
    assert source.open() == ([10., 2., 4.], 8) and not source.file.exists()
    assert 'have changed while they were read' in caplog.text
    source.during = None
    assert source.open() == ([10., 2., 4.], 8) and source.file.exists()


def test_a_loader_that_reads_by_other_means_is_not_kept(source, caplog):
    caplog.set_level('INFO')
    found = Index(source.cache, {'set': 'X', 'split': 'train'}, {}.get).open(
        lambda: Parsed(PackedSamples.pack([Sample('a.jpg', (8, 8), np.ones(4))]), {}, {}))
    assert len(found.samples) == 1 and not (source.cache / 'X_train.index').exists()
    assert 'reads no file by data/files.py' in caplog.text


def slowly(source, queue):
    """In another process: take a second to parse."""
    source.during = lambda: time.sleep(1)
    queue.put((source.open(), source.parsed))


def test_of_several_processes_one_parses_and_the_others_wait(source):
    context = multiprocessing.get_context('fork')
    queue = context.Queue()
    writers = [context.Process(target=slowly, args=(source, queue)) for _ in range(3)]
    for writer in writers:
        writer.start()
    results = [queue.get(timeout=60) for _ in writers]
    for writer in writers:
        writer.join()
    assert [result for result, _ in results] == [RIGHT] * 3
    assert sorted(count for _, count in results) == [0, 0, 1]


def hang_in_writing(source, queue):
    """In another process: stop in the middle of writing the index."""
    def stop(file, position):
        file.flush()
        queue.put('writing')
        time.sleep(600)
    mapped._fill = stop
    source.open()


def test_what_a_killed_process_left_is_removed(source):
    context = multiprocessing.get_context('fork')
    queue = context.Queue()
    writer = context.Process(target=hang_in_writing, args=(source, queue))
    writer.start()
    assert queue.get(timeout=60) == 'writing'
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    assert len(list(source.cache.glob('*.tmp'))) == 1
    assert source.open() == RIGHT and not list(source.cache.glob('*.tmp'))


def test_samples_can_be_read_after_their_file_is_replaced_or_deleted(source):
    source.open()
    key = {'set': 'Numbers', 'split': 'train', 'format': FORMAT, 'source': 'a'}
    found = Index(source.cache, key, source.settings.__getitem__).read()
    source.write([1])
    source.open()
    source.file.unlink()
    assert [float(sample.bbox[2]) for sample in found.samples] == RIGHT[0]


def test_missing_images_are_looked_for_once_and_by_the_checker(changed, open_set, stand_in_bodies, tmp_path, capsys,
                                                               caplog):
    folder = changed('MuCo', 'data/smpl_param.json', lambda content: None)
    options = [f'cache_dir={tmp_path}/cache', 'use_index=true', 'max_missing_images=0.5']
    image = sorted(folder.glob('MuCo/data/*/**/*.*'))[0]
    image.rename(image.with_suffix('.away'))

    def missing(*more):
        caplog.clear()
        return open_set('MuCo', 'train', *options, *more, data_dir=folder).check.counts['image missing']

    assert missing() == 1
    image.with_suffix('.away').rename(image)
    assert missing() == 1 and 'python tool/check_assets.py MuCo looks for images again' in caplog.text
    words = ['MuCo', f'data_dir={folder}', f'human_model_dir={stand_in_bodies}', f'output_dir={tmp_path}', options[0]]
    assert check_assets.main(words) == 0 and missing() == 0
    image.rename(image.with_suffix('.away'))
    assert missing() == 0 and check_assets.main(words) == 1 and missing() == 1
    with pytest.raises(UserError, match='1 of .* samples have no image'):
        missing('max_missing_images=0.01')
    image.with_suffix('.away').rename(image)
    assert missing('max_missing_images=0.01') == 0  # more were missing than may be: it looked again


@pytest.mark.parametrize('starts', [('cold', 'warm'), ('warm', 'cold'), ('without', 'warm')])
def test_a_run_resumes_exactly_across_starts(stand_in_bodies, tiny_datasets, tmp_path, starts):
    """Stopped after its fourth step, which is in the middle of an epoch, and started again."""
    words = [f'human_model_dir={stand_in_bodies}', f'data_dir={tiny_datasets}', 'trainset_3d=[Human36M]',
             'testset=Human36M', 'body_model=smpl', 'lixel_epochs=1', f'cache_dir={tmp_path}/cache']
    assert Trainer(tiny_config(tmp_path / 'whole', *words)).train()

    def stop(step):
        if step == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    for start, before_step in zip(starts, (stop, lambda step: None), strict=True):
        more = []
        if start == 'cold':
            shutil.rmtree(tmp_path / 'cache')
        if start == 'without':
            more.append('use_index=false')
        if before_step is not stop:
            more.append('continue_train=true')
        with calling(before_step):
            assert Trainer(tiny_config(tmp_path / 'parts', *words, *more)).train() == (before_step is not stop)
    assert len(read_losses(tmp_path / 'whole')) == 10
    assert read_losses(tmp_path / 'parts') == read_losses(tmp_path / 'whole')
