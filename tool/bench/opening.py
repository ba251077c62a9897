"""Opening a data set as large as MuCo: time and memory, beside a plain reader of the same files.

The yardstick does what loaders of 2020 do: parse both files with the standard library, index people by image, and keep
the nearest person of each image as a dictionary of arrays.
"""
import collections
import copy
import gc
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.human_model import get_human_model
from data import build_dataset
from data.index import forget
from data.joint_set import MUCO
from data.mesh_dataset import MeshDataset
from data.MuCo.MuCo import MuCo
from main.config import Config
from tool.bench.full_size import write_sets
from tool.bench.memory import GB, in_new_process, process_peak
from tool.bench.timing import Row

MB = 1e6
PLAIN = 'plain reader'
FIT_MODELS = ('smpl', 'open_body')  # the people in the files are the embedded body


def measure_opening(cfg: Config, folder: Path | None, share: float, repeats: int) -> list[Row]:
    """Rows of a cold start (no index yet), a warm one, peak memory, and private memory of one more process.

    Args:
        cfg: The settings.
        folder: Where the files are, made if they are missing; None: a temporary one.
        share: Their size, of MuCo's, where they are made.
        repeats: Rounds, of which the median counts.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = folder or Path(temporary)
        if not (folder / 'MuCo').is_dir():
            write_sets(folder, ['MuCo'], share)
        cfg = copy.copy(cfg)
        cfg.update({'data_dir': str(folder), 'body_model': 'open_body', 'use_index': True,
                    'cache_dir': str(folder / 'cache')})
        rounds = [in_turn(cfg) for _ in range(repeats)]
        medians = {name: statistics.median(values[name] for values in rounds) for name in rounds[0]}
        here = open_muco(cfg)  # the other process, with whom one more shares the samples
        here.samples.data.sum()
        private = in_new_process(private_bytes, cfg, True) / MB
        plain_private = in_new_process(private_bytes, cfg, False) / MB
        count = len(here)
    return [
        row(f'opening {count} samples, cold', medians['cold'], 's', medians['plain']),
        row('opening, warm', medians['warm'], 's', medians['plain']),
        row('peak memory, cold', medians['cold peak'] / GB, 'GB', medians['plain peak'] / GB),
        row('peak memory, warm', medians['warm peak'] / GB, 'GB', medians['plain peak'] / GB),
        row('private memory, one more process', private, 'MB', plain_private)]


def row(what: str, value: float, unit: str, yardstick: float) -> Row:
    """A Row beside the plain reader."""
    return Row(what, value, unit, PLAIN, yardstick, value / yardstick, 'x')


def in_turn(cfg: Config) -> dict[str, float]:
    """Seconds and peak bytes of each way to open the files, one after the other in processes of their own."""
    values = {}
    for name in ('cold', 'plain', 'warm'):
        if name == 'cold':
            forget(cfg.cache_dir, 'MuCo', 'train')
        values[name], values[f'{name} peak'] = in_new_process(seconds_and_peak, cfg, name != 'plain')
    return values


def seconds_and_peak(cfg: Config, with_index: bool) -> tuple[float, int]:
    """Seconds that opening takes here, and the largest memory of the process so far, bytes."""
    torch.set_num_threads(1)
    get_human_model(cfg.human_model, cfg.human_model_dir)  # every set needs it, and none takes its time
    start = time.perf_counter()
    opened = open_either(cfg, with_index)
    seconds = time.perf_counter() - start
    assert len(opened)
    return seconds, process_peak()


def private_bytes(cfg: Config, with_index: bool) -> int:
    """Memory that no other process shares, bytes: what opening and reading all samples adds. 0 where it is unknown."""
    before = private_now()
    opened = open_either(cfg, with_index)
    items = opened
    if isinstance(opened, MeshDataset):
        items = opened.samples
    for number in range(len(items)):
        _ = items[number]
    gc.collect()
    return private_now() - before


def private_now() -> int:
    """Private memory of this process, bytes, where the system tells it (Linux)."""
    path = Path('/proc/self/smaps_rollup')
    if not path.is_file():
        return 0
    sizes = [int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith('Private')]
    return 1024 * sum(sizes)


def open_either(cfg: Config, with_index: bool) -> Any:
    """The data set, or the list of the plain reader."""
    if with_index:
        return open_muco(cfg)
    return read_plainly(Path(cfg.data_dir))


def open_muco(cfg: Config) -> MeshDataset:
    """The training set."""
    MuCo.fit_models = FIT_MODELS
    return build_dataset('MuCo', 'train', cfg)


def read_plainly(folder: Path) -> list[dict[str, Any]]:
    """The yardstick: the nearest person of each image."""
    with open(folder / 'MuCo' / 'data' / 'MuCo-3DHP.json') as file:
        listing = json.load(file)
    images = {image['id']: image for image in listing['images']}
    people = collections.defaultdict(list)
    for annotation in listing['annotations']:
        people[annotation['image_id']].append(annotation)
    with open(folder / 'MuCo' / 'data' / 'smpl_param.json') as file:
        fits = json.load(file)
    samples = []
    for number, image in images.items():
        person = min(people[number], key=lambda person: person['keypoints_cam'][MUCO.root_idx][2])
        joint_cam = np.array(person['keypoints_cam'])
        joint_img = np.concatenate([np.array(person['keypoints_img']), joint_cam[:, 2:]], 1)
        samples.append({
            'img_path': image['file_name'], 'img_shape': (image['height'], image['width']),
            'bbox': np.array(person['bbox'], np.float32), 'joint_cam': joint_cam, 'joint_img': joint_img,
            'joint_valid': np.ones((len(joint_cam), 1)), 'camera': {'focal': image['f'], 'princpt': image['c']},
            'fit': fits.get(str(person['id']))})
    return samples
