"""Weights drawn from a parameter's name: two implementations with the same state-dict keys hold the same network."""
import math
import zlib

import numpy as np
import torch


def fill(state_dict):
    """A new tensor for every entry of state_dict, a function of its name (less a leading 'module.') and shape."""
    return {key: draw(key.removeprefix('module.'), old) for key, old in state_dict.items()}


def draw(name, old):
    if name.endswith('num_batches_tracked'):
        return torch.zeros_like(old)
    x = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(size=tuple(old.shape), dtype=np.float32)
    if name.endswith('running_mean'):
        x *= 0.1
    elif name.endswith('running_var'):
        x = 1 + 0.1 * np.abs(x)
    elif old.ndim == 1:
        x = 1 + 0.1 * x if name.endswith('weight') else 0.1 * x
        if name.endswith('bn3.weight'):
            x *= 0.2  # keeps the features of a deep residual network in range
    else:
        fan_in = old.shape[0] * 4 if old.ndim == 4 and '.deconv.' in name else math.prod(old.shape[1:])
        gain = 60.0 if any(part in name for part in ('conv_x.', 'conv_y.', 'conv_z_2.')) else 2.0
        if name.startswith('param_regressor.fc_shape'):
            gain = 0.3
        x *= np.sqrt(gain / fan_in)
    return torch.from_numpy(x)
