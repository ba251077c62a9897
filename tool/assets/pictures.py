"""Are the pictures that a data set lists on the disk?"""
import os
from collections import defaultdict

import numpy as np

from common.utils.preprocessing import load_img
from data.dataset import PackedList

DECODED = 20  # pictures that are read, spread over the list


def check_pictures(dataset):
    """What is wrong with the pictures of a MeshDataset (an empty text if nothing is), and how many there are."""
    if not isinstance(dataset.samples, PackedList):
        return '', f'{len(dataset)} samples, made by the program'
    by_folder = defaultdict(dict)  # folder -> {file name: None}, in order and once each
    for sample in dataset.samples:
        folder, name = os.path.split(sample.img_path)
        by_folder[folder][name] = None
    absent, present, total = [], [], 0
    for folder, names in by_folder.items():
        there = set(os.listdir(folder)) if os.path.isdir(folder) else ()
        total += len(names)
        for name in names:
            (present if name in there else absent).append(os.path.join(folder, name))
    text = f'{len(dataset)} samples in {total} pictures, {len(absent)} of them absent'
    if absent:
        return f'{len(absent)} of {total} pictures are absent, the first: {absent[0]}', text
    for path in [present[i] for i in np.unique(np.linspace(0, len(present) - 1, DECODED).astype(int))]:
        try:
            load_img(path)
        except (OSError, ValueError) as error:
            return f'unreadable: {error}', text
    return '', text
