"""The state of every random generator as tensors and plain types, for an exact resume."""
import random

import numpy as np
import torch


def capture():
    name, keys, position, has_gauss, gauss = np.random.get_state()
    version, internal, gauss_next = random.getstate()
    return {'torch': torch.get_rng_state(),
            'cuda': torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            'numpy': [name, torch.from_numpy(keys.astype(np.int64)), position, has_gauss, gauss],
            'python': [version, list(internal), gauss_next]}


def restore(state):
    torch.set_rng_state(state['torch'])
    if state['cuda'] and len(state['cuda']) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state['cuda'])
    name, keys, position, has_gauss, gauss = state['numpy']
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, gauss))
    version, internal, gauss_next = state['python']
    random.setstate((version, tuple(internal), gauss_next))


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed % 2 ** 32)
    torch.manual_seed(seed)
