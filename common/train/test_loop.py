"""The test of a network on a data set, shared out to the processes of a run."""
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from common.devices import processes
from common.devices.wrap import to_network
from common.train.loader import Loader, Reader, shard
from common.train.overlap import Overlap


@torch.inference_mode()
def run_test(net: nn.Module, dataset: Any, make_loader: Callable[[Any, list], Loader], batch_size: int,
             device: torch.device) -> dict[str, Any] | None:
    """Predict every sample once, and compare.

    Args:
        net: wrapped for inference, on the device.
        dataset: a MeshDataset of a test or validation split.
        make_loader: a loader for (dataset, batches of (epoch, index)).
        batch_size: samples of this process in one batch.
    Returns:
        The data set's summary, logged (MeshDataset.print_eval_result); None in all processes but the first.
    """
    batches = shard(len(dataset), batch_size, processes.rank(), processes.world_size())
    keys = [[(0, index) for index in indices] for indices in batches]  # a test has one epoch
    reader = Reader(make_loader(dataset, keys))
    hidden = None if processes.is_main() else True  # None: shown on a terminal only
    bar = tqdm(reader, total=len(batches), desc=type(dataset).__name__, unit='batch', dynamic_ncols=True,
               disable=hidden)
    rows: list[dict[str, np.ndarray]] = []
    with Overlap(dataset.evaluate, rows.append) as evaluation:  # of a batch, while the next one is computed
        for indices, batch in zip(batches, bar, strict=True):
            outs = net(*to_network(batch, net, device), 'test')
            outs = {name: value.float().cpu().numpy() for name, value in outs.items()}
            evaluation.submit(outs, indices[0])
    gathered = processes.gather_objects(rows)
    if gathered is None:
        return None
    rows = [row for part in gathered for row in part]
    results = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    return dataset.print_eval_result(results)
