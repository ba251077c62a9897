"""Loader: training samples per second, beside the time that decoding an image takes."""
import contextlib
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cv2
import torch

from common.train.loader import EpochView, make_loader, shard
from data import build_dataset
from data.mesh_dataset import MeshDataset
from main.config import Config
from tool.bench.imitation import BODIES, HANDS, Imitation, write_photo
from tool.bench.timing import Row, alternate

ROUNDS = 4  # how often a data set is read in one measurement: the start of the processes' work counts little


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
            rows += all_processes(cfg, imitation, repeats)
    return rows


def one_process(title: str, data: MeshDataset, path: Path, repeats: int) -> Row:
    """Row of one process; the yardstick reads the image `path`."""
    index = itertools.count()
    calls = {'sample': lambda: data.compact(next(index) % len(data)), 'imread': lambda: cv2.imread(str(path))}
    seconds = alternate(calls, repeats)
    sample = seconds['sample']
    imread = seconds['imread']
    return Row(f'loader, {title}', 1 / sample, 'samples/s', f'cv2.imread, {path.stem}', 1 / imread, sample / imread,
               'x its time')


def all_processes(cfg: Config, data: MeshDataset, repeats: int) -> list[Row]:
    """Rows of cfg.num_thread loader processes beside none, in turns, and of the size of what they send."""
    batch = min(cfg.train_batch_size, len(data))
    batches = [[(0, index) for index in indices] for indices in shard(len(data), batch)] * ROUNDS
    loaders = {'none': make_loader(EpochView(data), batches, 0, False),
               'all': make_loader(EpochView(data), batches, cfg.num_thread, False)}

    def read(name: str) -> None:
        for _ in loaders[name]:
            pass

    seconds = alternate({'none': lambda: read('none'), 'all': lambda: read('all')}, repeats)
    count = ROUNDS * len(data)
    speed = Row(f'loader, num_thread={cfg.num_thread}', count / seconds['all'], 'samples/s', 'one process',
                count / seconds['none'], seconds['none'] / seconds['all'], 'x its speed')
    sent = loaders['all'].transport.size / len(batches[-1]) / 1e6
    plain = sum(value.nbytes for part in data[0] for value in part.values()) / 1e6
    return [speed, Row('loader, sent per sample', sent, 'MB', 'with a float image', plain, sent / plain, 'x its size')]
