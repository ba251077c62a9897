"""Operations for which the program waits until the GPU has done all that was asked of it before."""
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

WAITING = ('_local_scalar_dense', 'nonzero', 'is_nonzero', 'equal', 'masked_select')


class Waits(TorchDispatchMode):
    """Counts the operations that would wait, if the tensors were on a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in WAITING:
            self.found[name] += 1
        return func(*args, **(kwargs or {}))


def waits_of(call: Callable[[], object], device: torch.device) -> str:
    """What makes `call()` wait, in words; '' for nothing. On a GPU the driver tells, and the first one is named."""
    if device.type == 'cuda':
        torch.cuda.synchronize(device)
        torch.cuda.set_sync_debug_mode('error')
        try:
            call()
        except RuntimeError as error:
            if 'synchronizing' not in str(error):
                raise
            return str(error).splitlines()[0]
        finally:
            torch.cuda.set_sync_debug_mode('default')
        return ''
    with Waits() as watch:
        call()
    return ', '.join(f'{count} x {name}' for name, count in watch.found.items())
