"""What can be wrong with any file, whatever it should hold: {fault: what it does to a path}."""
import contextlib
import ctypes
import io
import os
import shutil
import zipfile

import cv2
import numpy as np
import pytest

HTML = b'<!DOCTYPE html>\n<html><head><title>Quota exceeded</title></head><body>Too many users</body></html>\n'
TEXT = b'this is a text and nothing else\n'


def jpeg():
    return cv2.imencode('.jpg', np.full((16, 16, 3), 90, np.uint8))[1].tobytes()


def archive(name='readme.txt', content=TEXT):
    """Bytes of a zip file with one member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, 'w') as writer:
        writer.writestr(name, content)
    return file.getvalue()


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def folder(path):
    remove(path)
    path.mkdir()


SPOIL = {
    'missing': remove,
    'empty': lambda path: path.write_bytes(b''),
    'truncated': lambda path: path.write_bytes(path.read_bytes()[:max(1, path.stat().st_size * 3 // 5)]),
    'html': lambda path: path.write_bytes(HTML),
    'zip': lambda path: path.write_bytes(archive()),
    'text': lambda path: path.write_bytes(TEXT),
    'jpeg': lambda path: path.write_bytes(jpeg()),
    'folder': folder,
    'no permission': lambda path: path.chmod(0),
}
# What is told of a file of PyTorch weights, a snapshot for one.
WEIGHTS = {
    'empty': 'the file is empty', 'truncated': 'it is truncated or damaged',
    'html': 'it is a web page, so the download went wrong; open the link in a browser',
    'zip': 'it is a zip archive of other files',
    'text': 'it holds things other than tensors and plain values, or is damaged', 'jpeg': 'it is a JPEG image',
    'folder': 'it is a folder: name the file itself, and do not unpack it',
    'no permission': 'it cannot be read .Permission denied.'}


@contextlib.contextmanager
def like_a_user():
    """Permissions count within this block, for root too: it gives up the two capabilities that pass over them."""
    if os.geteuid():
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the call, this thread
    data = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice, 32 capabilities each
    if libc.capget(header, data):
        pytest.skip('this system does not tell its capabilities')
    effective = data[0]
    data[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert not libc.capset(header, data)
    try:
        yield
    finally:
        data[0] = effective
        assert not libc.capset(header, data)


@contextlib.contextmanager
def spoiled(path, fault):
    """`path` (a file) with the fault, and as it was after the block."""
    kept = path.with_name(f'{path.name}.kept')
    shutil.copy2(path, kept)
    try:
        SPOIL[fault](path)
        with like_a_user() if fault == 'no permission' else contextlib.nullcontext():
            yield path
    finally:
        if path.exists():
            remove(path)
        kept.rename(path)


class Runs:
    """An object whose pickle calls a function when it is loaded."""
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call
