"""Loader: training samples per second, beside the time that decoding an image takes."""
import contextlib
import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import torch

from common.train.loader import EpochView, TrainBatches, make_loader
from data import build_dataset
from data.mesh_dataset import MeshDataset
from main.config import Config
from tool.bench.imitation import BODIES, HANDS, Imitation, write_photo
from tool.bench.timing import Row, alternate


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for OpenCV and PyTorch, as a loader process has."""
    threads = torch.get_num_threads()
    cv_threads = cv2.getNumThreads()
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        cv2.setNumThreads(cv_threads)


def measure_loader(cfg: Config, device: torch.device, repeats: int) -> list[Row]:
    """Training samples per second in one process, and in all loader processes together."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, one_thread():
        for kind in HANDS if cfg.is_hand else BODIES:
            height, width = kind.shape
            path = Path(folder) / f'{width}x{height}.jpg'
            write_photo(path, kind.shape)
            imitation = Imitation('train', cfg, kind, path)
            files = one_process(kind.title, imitation, path, repeats)
            rows.append(files)
        size = cfg.synthetic_img_size
        drawn = build_dataset('Synthetic', 'train', cfg)
        rows.append(one_process(f'Synthetic, drawn {size}x{size}', drawn, path, repeats))
        if cfg.num_thread:
            rows.append(all_processes(cfg, imitation, repeats, files))
    return rows


def one_process(title: str, data: MeshDataset, path: Path, repeats: int) -> Row:
    """Row of one process; the yardstick reads the image `path`."""
    index = itertools.count()
    seconds = alternate({'sample': lambda: data[next(index) % len(data)], 'imread': lambda: cv2.imread(str(path))},
                        repeats)
    sample = seconds['sample']
    imread = seconds['imread']
    return Row(f'loader, {title}', 1 / sample, 'samples/s', f'cv2.imread, {path.stem}', 1 / imread, sample / imread,
               'x its time')


def all_processes(cfg: Config, data: MeshDataset, repeats: int, one: Row) -> Row:
    """Row of cfg.num_thread loader processes; `one`: the Row of one process."""
    batches = TrainBatches(len(data), min(cfg.train_batch_size, len(data)), seed=0)
    loader = make_loader(EpochView(data), batches, cfg.num_thread, False)
    rates = []
    for epoch in range(repeats + 1):  # the first one starts the processes
        batches.set_position(epoch)
        start = time.perf_counter()
        count = sum(len(inputs['img']) for inputs, _, _ in loader)
        rates.append(count / (time.perf_counter() - start))
    rate = float(np.median(rates[1:]))
    return Row(f'loader, num_thread={cfg.num_thread}', rate, 'samples/s', 'one process', one.value, rate / one.value,
               'x its speed')
