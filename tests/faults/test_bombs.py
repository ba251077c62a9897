"""Files made to run code, to fill the memory or to keep the program busy for ever: refused in one line, in little
memory. Body models as pickles: tests/common/files/test_hostile_files.py."""
import json
import os
import pickle
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from common.demo.inputs.box_file import read_box_file
from common.demo.inputs.images import read_image
from common.errors import UserError
from common.files import images
from common.files.arrays import read_arrays
from common.human_model import get_human_model
from common.snapshot import checkpoint
from data.files import read_array, read_json
from main.config import Config
from tests.faults.commands import resident
from tests.faults.spoil import Runs, archive, jpeg
from tests.py2_pickles import mano_arrays

MOST = 2 ** 30  # bytes that refusing a file may take: with PyTorch loaded, the process stays below 2 GB


def refused(read, path, kind=UserError):
    """The message of the error, of one line with the file's name; checks the memory that it took. A reader
    that never ends is ended by the limit that pytest has for every test."""
    memory = Path('/proc/self/clear_refs')
    if memory.exists():
        memory.write_text('5')  # the peak counts from here
    before = resident('VmRSS')
    with pytest.raises(kind) as error:
        read(path)
    message = str(error.value)
    assert resident('VmHWM') - before < MOST
    assert '\n' not in message and str(path) in message and len(message) < 700
    return message


# ---- snapshots ----
def snapshot_with(path, content_pickle, compress=zipfile.ZIP_STORED, data=b''):
    """A file laid out as torch.save writes it, around a pickle of our own."""
    with zipfile.ZipFile(path, 'w', compress) as file:
        file.writestr('archive/data.pkl', content_pickle)
        file.writestr('archive/byteorder', 'little')
        file.writestr('archive/version', '3\n')
        file.writestr('archive/data/0', data)
    return path


@pytest.mark.parametrize('protocol', (0, 2, 4))
@pytest.mark.parametrize('layout', ('zip', 'legacy'))
@pytest.mark.parametrize('function', (os.system, eval, os.mkdir, getattr, __import__, torch.load, torch.hub.load))
def test_snapshot_that_calls_a_function(function, layout, protocol, tmp_path):
    mark = tmp_path / 'executed'
    code = {eval: f'__import__("os").mkdir({str(mark)!r})', os.system: f'touch {mark}'}.get(function, str(mark))
    content = pickle.dumps({'epoch': 1, 'network': {}, 'x': Runs(function, code)}, protocol=protocol)
    if layout == 'zip':
        snapshot_with(tmp_path / 'a', content)
    else:
        marks = [pickle.dumps(value, protocol=2) for value in (0x1950a86a20f9469cfc6c, 1001, {'little_endian': True})]
        (tmp_path / 'a').write_bytes(b''.join([*marks, content, pickle.dumps([], protocol=2)]))
    assert 'other than tensors and plain values' in refused(checkpoint.read, tmp_path / 'a')
    assert not mark.exists()


def doubled(times):
    """A pickled tuple of two tuples of two tuples ...: hashing it takes 2 ** times steps."""
    return b')q\x00' + b''.join(b'h' + bytes([i]) + b'\x86q' + bytes([i + 1]) for i in range(times))


PICKLES = {
    'exponential key': (b'\x80\x02}' + doubled(60) + b'K\x01s.', 'tuples of tuples without end'),
    'exponential key among others': (b'\x80\x02}(' + doubled(60) + b'K\x01K\x02K\x03u.', 'tuples of tuples without'),
    'wide key': (b'\x80\x02}(' + b'K\x01' * 2000 + b'tK\x01s.', 'tuples of tuples without end'),
    'deep lists': (b'\x80\x02' + b']' * 200_000 + b'a' * 199_999 + b'.', "it has no 'network'"),
    'deep tuples': (b'\x80\x02)' + b'\x85' * 10 ** 6 + b'.', 'tuples of tuples without end'),
    'many instructions': (b'\x80\x02' + b'N0' * 300_000 + b'}.', ''),
    'huge text': (b'\x80\x02X\xff\xff\xff\xffx.', ''),
    'huge memo index': (b'\x80\x02}r\xff\xff\xff\xff.', "it has no 'network'"),
    'huge number': (b'\x80\x02\x8b\xff\xff\xff\x7fx.', ''),
    'unknown memo': (b'\x80\x02h\x05.', ''), 'nothing on the stack': (b'\x80\x02s.', ''), 'no end': (b'\x80\x02}', ''),
    'foreign object': (b'\x80\x02ccollections\ndeque\n)R.', 'other than tensors and plain values'),
    'persistent': (b'\x80\x02X\x01\x00\x00\x00aQ.', ''),
}


@pytest.mark.parametrize('name', PICKLES)
def test_forged_snapshot(name, tmp_path):
    content, told = PICKLES[name]
    message = refused(checkpoint.read, snapshot_with(tmp_path / 'a', content))
    assert 'is not a checkpoint: ' in message and any(part in message for part in told.split('|'))


def test_snapshot_that_unpacks_to_gigabytes(tmp_path):
    content = pickle.dumps({'epoch': 1, 'network': {}}, protocol=2)
    path = tmp_path / 'a'
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as file:
        file.writestr('archive/data.pkl', content)
        with file.open('archive/data/0', 'w') as member:
            for _ in range(100):
                member.write(bytes(2 ** 20))
    assert path.stat().st_size < 10 ** 6
    assert 'it is compressed, which PyTorch never does' in refused(checkpoint.read, path)


# ---- arrays ----
def npy(shape, dtype='<f8', data=b''):
    header = repr({'descr': dtype, 'fortran_order': False, 'shape': shape}).encode()
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header) + 1) + header + b'\n' + data


@pytest.mark.parametrize('content', [
    npy((2 ** 40,)), npy((2 ** 24, 2)), npy((3,), '|O', pickle.dumps([1, 2, 3])), npy((1,), data=b'x'),
    npy('x'), npy((-1,)), b'\x93NUMPY\x09\x00' + bytes(100), b'\x93NUMPY\x01\x00\xff\xff' + b'(' * 65535,
    b'\x93NUMPY\x01\x00\xff\xff' + b'9' * 65535])
def test_forged_array(content, tmp_path):
    (tmp_path / 'a.npy').write_bytes(content)
    refused(lambda path: read_array(path, (17, 6890), 'a regressor'), tmp_path / 'a.npy')


@pytest.mark.parametrize('name', ('../../escaped.npy', '/tmp/escaped.npy', 'v_template.npy/../../escaped.npy'))
def test_names_in_an_archive_lead_nowhere(name, tmp_path):
    (tmp_path / 'folder').mkdir()
    path = tmp_path / 'folder' / 'MANO_RIGHT.npz'
    path.write_bytes(archive(name, npy((3,), data=bytes(24))))
    assert read_arrays(path, ('v_template',)) == {}
    assert 'has no v_template' in refused(lambda path: get_human_model('mano', path.parent), path)
    assert sorted(p.name for p in tmp_path.rglob('*')) == ['MANO_RIGHT.npz', 'folder']


def test_archive_that_unpacks_to_gigabytes(tmp_path):
    arrays = {name: value for name, value in mano_arrays().items() if name != 'v_template'}
    path = tmp_path / 'MANO_RIGHT.npz'
    np.savez_compressed(path, **arrays)
    with zipfile.ZipFile(path, 'a', zipfile.ZIP_DEFLATED) as file, file.open('v_template.npy', 'w') as member:
        member.write(npy((2 ** 24, 3), '<f4'))
        for _ in range(20):
            member.write(bytes(2 ** 20))
    assert 'more than' in refused(lambda path: get_human_model('mano', path.parent), path)


# ---- images ----
def png(width, height, rows=0):
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    pixels = zlib.compress(bytes((1 + 3 * width) * rows), 9)
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0))
            + chunk(b'IDAT', pixels) + chunk(b'IEND', b''))


def large_jpeg(width, height):
    """A small JPEG whose header claims another size."""
    data = bytearray(jpeg())
    at = data.index(b'\xff\xc0') + 5
    data[at:at + 4] = struct.pack('>HH', height, width)
    return bytes(data)


HUGE = {'100000.png': png(100_000, 100_000), '20000.png': png(20_000, 20_000, 5000),
        '65000.jpg': large_jpeg(65_000, 65_000), '20000.jpg': large_jpeg(20_000, 20_000),
        'wide.png': png(2 ** 31 - 1, 1), 'nothing.png': png(0, 0)}


@pytest.mark.parametrize('name', HUGE)
def test_image_of_a_huge_size(name, tmp_path):
    (tmp_path / name).write_bytes(HUGE[name])
    refused(read_image, tmp_path / name)
    refused(images.read_image, tmp_path / name, ValueError)


# ---- JSON and YAML ----
DEEP = {'lists': '[' * 10 ** 6, 'closed lists': '[' * 900 + ']' * 900, 'dictionaries': '{"a":' * 10 ** 6,
        'huge number': f'[{"9" * 10 ** 6}]', 'other': '{"a": [1, 2, 3'}


@pytest.mark.parametrize('name', DEEP)
def test_deep_json(name, tmp_path):
    path = tmp_path / 'a.json'
    path.write_text(DEEP[name])
    refused(read_box_file, path)
    if name != 'closed lists':  # an annotation file of lists is refused by its layout
        assert 'download it again' in refused(lambda path: read_json(path, 'annotations'), path)


def test_boxes_in_boxes(tmp_path):
    path = tmp_path / 'a.json'
    content = [1, 2, 3, 4]
    for _ in range(100):
        content = {'bbox': content}
    path.write_text(json.dumps({'photo.jpg': content}))
    assert 'nested too deeply' in refused(read_box_file, path)


YAML = {'doubled': ''.join(f'a{i}: &a{i} [{", ".join([f"*a{i - 1}"] * 9) if i else "x"}]\n' for i in range(12)),
        'deep': f'exclude: {"[" * 5000}', 'interpolated': 'exclude: [x, "${exclude.0}${exclude.0}"]\n',
        'large': '# ' + 'x' * 2 ** 21, 'objects': 'lr: !!python/object/apply:os.mkdir [executed]\n',
        'two documents': 'lr: 1\n---\nlr: 2\n', 'twice': 'lr: 1\nlr: 2\n', 'binary': '\0\1\2'}


@pytest.mark.parametrize('name', YAML)
def test_forged_settings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / 'a.yaml'
    path.write_text(YAML[name])
    assert 'is not a YAML file of settings' in refused(lambda path: Config().load(str(path)), path)
    assert [p.name for p in tmp_path.iterdir()] == ['a.yaml']
