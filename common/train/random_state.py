"""The state of every random generator as tensors and plain types, for an exact resume."""
import random
from typing import Any

import numpy as np
import torch


def capture() -> dict[str, Any]:
    """The state of the generators of torch (CPU and GPUs), NumPy and Python."""
    legacy: Any = np.random.get_state(legacy=True)
    name, keys, position, has_gauss, gauss = legacy
    version, internal, gauss_next = random.getstate()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {'torch': torch.get_rng_state(), 'cuda': cuda,
            'numpy': [name, torch.from_numpy(keys.astype(np.int64)), position, has_gauss, gauss],
            'python': [version, list(internal), gauss_next]}


def restore(state: dict[str, Any]) -> None:
    """Set the generators to a captured state; those of GPUs only where there are as many."""
    torch.set_rng_state(state['torch'])
    if state['cuda'] and len(state['cuda']) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state['cuda'])
    name, keys, position, has_gauss, gauss = state['numpy']
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, gauss))
    version, internal, gauss_next = state['python']
    random.setstate((version, tuple(internal), gauss_next))


def seed_all(seed: int) -> None:
    """Seed the generators of torch, NumPy and Python."""
    random.seed(seed)
    np.random.seed(seed % 2 ** 32)
    torch.manual_seed(seed)
