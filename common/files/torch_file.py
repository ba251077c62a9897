"""Reading a file of PyTorch weights that somebody downloaded: nothing in it runs, and a forged one ends with an error.

PyTorch's own restricted reader (weights_only) calls nothing but the functions that rebuild tensors. Two things that it
allows are refused here before: compressed archives, which could unpack to any size, and tuples of tuples as keys of a
dictionary, which take for ever to hash.
"""
import _codecs
import pickletools
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

# Older files hold NumPy scalars (epoch, learning rate): data, not code. Both spellings of NumPy's module are in use.
_SCALAR = np.float64(0).__reduce__()[0]
_LEGACY: list[Any] = [
    (_SCALAR, 'numpy.core.multiarray.scalar'),
    (_SCALAR, 'numpy._core.multiarray.scalar'),
    np.dtype,
    _codecs.encode,
    *{type(np.dtype(kind)) for kind in 'efdbhilqBHILQ?'},
]
MAX_TUPLE = 1000              # elements, with those of the tuples inside it; a tensor's has a dozen
LEGACY_PICKLES = 5            # in files of PyTorch before 1.6: marks, versions, content, names of the tensors' data
NOT_WEIGHTS = {
    b'<': 'a web page, so the download went wrong; open the link in a browser and save the file itself',
    b'\xff\xd8\xff': 'a JPEG image',
    b'\x89PNG': 'a PNG image',
    b'%PDF': 'a PDF file',
    b'\x1f\x8b': 'compressed by gzip: unpack it first',
    b'version https://git-lfs': 'a pointer of Git LFS and not the file itself: git lfs pull',
}
FOREIGN = 'it holds things other than tensors and plain values, or is damaged'


class Refused(Exception):
    """The reason why a file is not read."""


def load(path: str | Path) -> Any:
    """Read what torch.save wrote into a file, with its tensors on the CPU.

    Raises:
        ValueError: It cannot be read; the message is the reason, in a few words, without the path.
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError('it is a folder: name the file itself, and do not unpack it')
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # about odd files, which the error that follows explains
            _check_file(path)
            with torch.serialization.safe_globals(_LEGACY):
                content = torch.load(path, map_location='cpu', weights_only=True)
    except OSError as error:
        raise ValueError(f'it cannot be read ({error.strerror or error})') from error
    except Exception as error:  # broken bytes can make the readers fail in any way
        raise ValueError(_reason(error)) from error
    _check_tensors(content)
    return content


def _reason(error: Exception) -> str:
    text = str(error)
    if isinstance(error, Refused):
        return text
    if 'Weights only load failed' in text:
        return FOREIGN
    if 'PytorchStreamReader' in text or isinstance(error, zipfile.BadZipFile):
        return 'it is truncated or damaged'
    if not text:
        return type(error).__name__
    return text.splitlines()[0][:200]


def _check_file(path: Path) -> None:
    with open(path, 'rb') as file:
        head = file.read(256)
        if not head.strip():
            raise Refused('the file is empty')
        for start, kind in NOT_WEIGHTS.items():
            if head.lstrip().startswith(start):
                raise Refused(f'it is {kind}')
        file.seek(0)
        if head.startswith(b'PK'):
            _check_archive(file)
        else:
            _check_legacy(file)


def _check_archive(file: IO[bytes]) -> None:
    """A zip file as torch.save writes it: nothing compressed, with a pickle that can be hashed."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        pickles = [member for member in members if member.filename.endswith('data.pkl')]
        if not pickles:
            raise Refused('it is a zip archive of other files')
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise Refused('it is compressed, which PyTorch never does')
        if archive.testzip() is not None:  # PyTorch does not look at the checksums
            raise Refused('it is damaged: a tensor in it has another checksum than when it was written')
        for member in pickles:
            with archive.open(member) as content:
                _check_pickle(content.read())


def _check_legacy(file: IO[bytes]) -> None:
    """The pickles of a file of PyTorch before 1.6, one after the other; the tensors' data follows them."""
    for _ in range(LEGACY_PICKLES):
        try:
            _check_pickle(file)
        except Refused:
            raise
        except Exception as error:
            raise Refused(FOREIGN) from error


def _check_pickle(content: bytes | IO[bytes]) -> None:
    """Refuse a pickle (bytes, or a file at its start) that holds a tuple whose hash takes for ever.

    Follows the instructions with the size of each value in its place: 1, or for a tuple that of all it contains.
    """
    stack: list[int] = []
    marks: list[int] = []
    memo: dict[Any, int] = {}
    for instruction, argument, _ in pickletools.genops(content):
        name = instruction.name
        if name == 'MARK':
            marks.append(len(stack))
        elif name in ('BINGET', 'LONG_BINGET', 'GET'):
            stack.append(memo[argument])
        elif name in ('BINPUT', 'LONG_BINPUT', 'PUT'):
            memo[argument] = stack[-1]
        elif name == 'MEMOIZE':
            memo[len(memo)] = stack[-1]
        else:
            parts = _take(instruction.stack_before, stack, marks)
            size = 1
            if name.startswith(('TUPLE', 'REDUCE', 'NEWOBJ')):
                size += sum(parts)
            if size > MAX_TUPLE:
                raise Refused('it holds tuples of tuples without end')
            stack += [size] * len(instruction.stack_after)


def _take(kinds: list[pickletools.StackObject], stack: list[int], marks: list[int]) -> list[int]:
    """Take from the stack what an instruction takes: what is above the last mark, or a value for each kind."""
    parts = []
    if pickletools.markobject in kinds:
        start = marks.pop()
        parts = stack[start:]
        del stack[start:]
    for kind in kinds:
        if kind not in (pickletools.markobject, pickletools.stackslice):
            parts.append(stack.pop())
    return parts


def _check_tensors(content: Any) -> None:
    """ValueError for tensors that no network has, and for those that claim to be larger than what is stored of them."""
    waiting = [content]
    seen = set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, torch.Tensor):
            if value.layout != torch.strided or value.device.type != 'cpu' or value.is_complex():
                raise ValueError('it has a tensor of a kind that no network is made of')
            if value.numel() * value.element_size() > value.untyped_storage().nbytes():
                raise ValueError('it has a tensor that is larger than what is stored of it')
        elif isinstance(value, dict | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            waiting += value.values() if isinstance(value, dict) else value
