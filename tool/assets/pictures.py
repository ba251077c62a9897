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
    by_folder = defaultdict(dict)  # folder -> {file name: (height, width)}, each once and in order
    for sample in dataset.samples:
        folder, name = os.path.split(sample.img_path)
        by_folder[folder][name] = tuple(sample.img_shape)
    absent, present = [], {}
    for folder, sizes in by_folder.items():
        there = set(os.listdir(folder)) if os.path.isdir(folder) else ()
        for name, size in sizes.items():
            path = os.path.join(folder, name)
            if name in there:
                present[path] = size
            else:
                absent.append(path)
    total = len(absent) + len(present)
    text = f'{len(dataset)} samples in {total} pictures, {len(absent)} of them absent'
    if absent:
        return f'{len(absent)} of {total} pictures are absent, the first: {absent[0]}', text
    return _decode(list(present.items())), text


def _decode(pictures):
    """Read some of the pictures (path, (height, width)); what is wrong with the first bad one, or an empty text."""
    for index in np.unique(np.linspace(0, len(pictures) - 1, DECODED).astype(int)):
        path, size = pictures[index]
        try:
            found = load_img(path).shape[:2]
        except (OSError, ValueError) as error:
            return f'unreadable: {error}'
        if found != size:
            return f'{path} is {found[1]} x {found[0]} pixels large, the annotations say {size[1]} x {size[0]}'
    return ''
