"""Reading a file of PyTorch weights that somebody downloaded: nothing in it runs, and a forged one ends with an error.

PyTorch's own restricted reader (weights_only) calls nothing but the functions that rebuild tensors. What it leaves open
is looked at first: compressed archives, which could unpack to any size, and tuples of tuples as keys of a dictionary,
whose hash takes for ever.
"""
import _codecs
import pickletools
import warnings
import zipfile
from pathlib import Path

import numpy as np
import torch

# Older files hold NumPy scalars (epoch, learning rate): data, not code. Both spellings of NumPy's module are in use.
_SCALAR = np.float64(0).__reduce__()[0]
_LEGACY = [(_SCALAR, 'numpy.core.multiarray.scalar'), (_SCALAR, 'numpy._core.multiarray.scalar'), np.dtype,
           _codecs.encode, *{type(np.dtype(kind)) for kind in 'efdbhilqBHILQ?'}]
MAX_INSTRUCTIONS = 500_000  # in a pickle; a snapshot of the published network has some 60,000
MAX_TUPLE = 1000              # elements, with those of the tuples inside it; a tensor's has a dozen
LEGACY_PICKLES = 5            # in files of PyTorch before 1.6: marks, versions, content, names of the tensors' data
KINDS = ((b'<', 'a web page, so the download went wrong; open the link in a browser and save the file itself'),
         (b'\xff\xd8\xff', 'a JPEG picture'), (b'\x89PNG', 'a PNG picture'), (b'%PDF', 'a PDF file'),
         (b'\x1f\x8b', 'compressed by gzip: unpack it first'), (b'version https://git-lfs', 'a pointer of Git LFS and '
         'not the file itself: git lfs pull'))


def load(path):
    """What torch.save wrote into a file, tensors on the CPU. ValueError with the reason, in a few words, otherwise."""
    path = Path(path)
    if path.is_dir():
        raise ValueError('it is a folder: name the file itself, and do not unpack it')
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # about odd files, of which the error that follows tells
            with open(path, 'rb') as file:
                head = file.read(256)
                _check_head(head.lstrip())
                file.seek(0)
                _check_archive(file) if head.startswith(b'PK') else _check_legacy(file)
            with torch.serialization.safe_globals(_LEGACY):
                content = torch.load(path, map_location='cpu', weights_only=True)
    except OSError as error:
        raise ValueError(f'it cannot be read ({error.strerror or error})') from error
    except Refused as error:
        raise ValueError(str(error)) from error
    except Exception as error:  # whatever the readers make of broken bytes
        raise ValueError(_reason(error)) from error
    _check_sizes(content)
    return content


class Refused(Exception):
    """The reason why a file is not read."""


def _reason(error):
    text = str(error)
    if 'Weights only load failed' in text:
        return 'it holds things other than tensors and plain values, or is damaged'
    if 'PytorchStreamReader' in text or isinstance(error, zipfile.BadZipFile):
        return 'it is truncated or damaged'
    return text.splitlines()[0][:200] if text else type(error).__name__


def _check_head(head):
    if not head:
        raise Refused('the file is empty')
    for start, kind in KINDS:
        if head.startswith(start):
            raise Refused(f'it is {kind}')


def _check_archive(file):
    """A zip file as torch.save writes it: nothing compressed, with a pickle of known instructions."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        pickles = [member for member in members if member.filename.endswith('data.pkl')]
        if not pickles:
            raise Refused('it is a zip archive of other files')
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise Refused('it is compressed, which PyTorch never does')
        for member in pickles:
            with archive.open(member) as content:
                check_pickle(content.read())


def _check_legacy(file):
    """The pickles of a file of PyTorch before 1.6, one after the other; the tensors' data follows them."""
    for _ in range(LEGACY_PICKLES):
        try:
            check_pickle(file)
        except Refused:
            raise
        except Exception as error:
            raise Refused('it holds things other than tensors and plain values, or is damaged') from error


def check_pickle(content):
    """Refused if hashing what a pickle (bytes, or a file at its start) holds could take for ever.

    Follows the instructions with the size of each value in its place: 1, or for a tuple that of all it contains.
    """
    stack, marks, memo = [], [], {}
    for number, (instruction, arg, _) in enumerate(pickletools.genops(content)):
        name, takes = instruction.name, instruction.stack_before
        if number > MAX_INSTRUCTIONS:
            raise Refused('it has too many instructions to be a file of weights')
        if name == 'MARK':
            marks.append(len(stack))
            continue
        if name in ('BINGET', 'LONG_BINGET', 'GET'):
            stack.append(memo[arg])
            continue
        if name in ('BINPUT', 'LONG_BINPUT', 'PUT', 'MEMOIZE'):
            memo[len(memo) if name == 'MEMOIZE' else arg] = stack[-1]
            continue
        taken = []
        if pickletools.markobject in takes:
            taken = stack[marks[-1]:]
            del stack[marks.pop():]
        for part in takes:
            if part not in (pickletools.markobject, pickletools.stackslice):
                taken.append(stack.pop())
        size = 1 + sum(taken) if name.startswith(('TUPLE', 'REDUCE', 'NEWOBJ')) else 1
        if size > MAX_TUPLE:
            raise Refused('it holds tuples of tuples without end')
        stack += [size] * len(instruction.stack_after)


def _check_sizes(content):
    """Refused, as ValueError, for tensors that claim to be larger than what is stored of them."""
    waiting, seen = [content], set()
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
