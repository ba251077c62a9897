"""Are the images that a data set lists on the disk?"""
import os
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from common.files.images import JPEG_END, JPEG_START, check_end, read_image
from data.mesh_dataset import MeshDataset
from data.packed import PackedSamples

DECODED = 20  # images that are read, spread over the list


def check_images(dataset: MeshDataset) -> tuple[str, str]:
    """What is wrong with the images of a MeshDataset (an empty text if nothing is), and how many there are."""
    samples = dataset.samples
    if not isinstance(samples, PackedSamples):
        return '', f'{len(dataset)} samples, made by the program'
    by_folder: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)  # folder -> {file name: (height, width)}
    for index in range(len(samples)):
        sample = samples[index]
        folder, name = os.path.split(sample.img_path)
        by_folder[folder][name] = sample.img_shape
    absent = []
    present = []
    for folder, sizes in by_folder.items():
        files = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        for name, size in sizes.items():
            path = os.path.join(folder, name)
            if name in files:
                present.append((path, size))
            else:
                absent.append(path)
    total = len(absent) + len(present)
    text = f'{len(dataset)} samples in {total} images, {len(absent)} of them absent'
    if absent:
        return f'{len(absent)} of {total} images are absent, the first: {absent[0]}', text
    return _first_cut_off(path for path, _ in present) or _decode(present), text


def _first_cut_off(paths: Iterable[str]) -> str:
    """What is wrong with the first JPEG without its end, or an empty text. Reads little of each file."""
    for path in paths:
        try:
            with open(path, 'rb') as file:
                start = file.read(2)
                file.seek(-min(2, len(start)), os.SEEK_END)
                if start == JPEG_START and file.read() != JPEG_END:
                    file.seek(0)
                    check_end(file.read(), path)
        except (OSError, ValueError) as error:
            return f'unusable: {error}'
    return ''


def _decode(images: list[tuple[str, tuple[int, int]]]) -> str:
    """Read some of the images (path, (height, width)); what is wrong with the first bad one, or an empty text."""
    for index in np.unique(np.linspace(0, len(images) - 1, DECODED).astype(int)):
        path, size = images[index]
        try:
            read_image(path, size)
        except (OSError, ValueError) as error:
            return f'unusable: {error}'
    return ''
