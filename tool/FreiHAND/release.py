"""The official lists of FreiHAND, hand by hand; hands with impossible numbers are told apart."""
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import numpy as np

from common.errors import UserError
from data.checks.limits import within
from tool.convert.damaged import Damaged, DamagedItem
from tool.files.json_list import iter_json_list

LARGEST = 1e4  # of all numbers: radians, metres, pixels
ENDED = object()  # in place of the hands that a list lacks


def as_array(values: object, shape: tuple[int, ...], place: str) -> np.ndarray:
    """The numbers of a hand in this shape. DamagedItem, beginning with `place`: they are others, or not possible."""
    try:
        array = np.asarray(values, np.float64).reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise DamagedItem(f'{place} does not have the shape {shape}') from error
    if not within(array, LARGEST):
        raise DamagedItem(f'{place} has a value that is not finite, or impossibly large')
    return array


def released_hands(raw: Path, damaged: Damaged) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield number and camera matrix (3, 3), MANO values (61,), joints (21, 3) and, if released, surface (778, 3)
    of each hand that is not damaged."""
    shapes = dict(K=(3, 3), mano=(61,), xyz=(21, 3), verts=(778, 3))
    if not (raw / 'training_verts.json').exists():
        shapes.pop('verts')
    files = {raw / f'training_{name}.json': shape for name, shape in shapes.items()}
    lists = [iter_json_list(path, 'a list of the FreiHAND training set') for path in files]
    for number, hand in enumerate(zip_longest(*lists, fillvalue=ENDED)):
        arrays = []
        try:
            for values, (path, shape) in zip(hand, files.items(), strict=True):
                if values is ENDED:
                    raise UserError(f'{path} ends after {number} hands, other lists go on')
                arrays.append(as_array(values, shape, f'{path}: hand {number}'))
        except DamagedItem as error:
            damaged.add(error)
            continue
        yield number, arrays


def evaluation_hands(raw: Path) -> tuple[list[np.ndarray], list[float]]:
    """Camera matrix (3, 3) and bone length of each evaluation hand. UserError: a list is missing or damaged."""
    matrices = []
    scales = []
    path = raw / 'evaluation_K.json'
    for number, matrix in enumerate(iter_json_list(path, 'the camera matrices of FreiHAND')):
        matrices.append(as_array(matrix, (3, 3), f'{path}: hand {number}'))
    path = raw / 'evaluation_scale.json'
    for number, scale in enumerate(iter_json_list(path, 'the bone lengths of FreiHAND')):
        scales.append(float(as_array(scale, (), f'{path}: hand {number}')))
    if len(scales) != len(matrices):
        raise UserError(f'{raw}: the evaluation lists have {len(scales)} scales, {len(matrices)} cameras')
    return matrices, scales


def evaluation_points(raw: Path, count: int, max_damaged: float) -> dict[int, np.ndarray]:
    """Points (N, 3) of the released evaluation hands that are not damaged, by number; empty if none are released.

    UserError: there are not `count` of them, or more than the share `max_damaged` is damaged.
    """
    truths = [(raw / 'evaluation_verts.json', (778, 3)), (raw / 'evaluation_xyz.json', (21, 3))]
    there = [truth for truth in truths if truth[0].exists()]
    if not there:
        return {}
    path, shape = there[0]
    hands = list(iter_json_list(path, 'the ground truth of the evaluation set'))
    if len(hands) != count:
        raise UserError(f'{path} has {len(hands)} hands, evaluation_K.json {count}')
    damaged = Damaged(count, 'evaluation hands', max_damaged)
    found = {}
    for number, points in enumerate(hands):
        try:
            found[number] = as_array(points, shape, f'{path}: hand {number}')
        except DamagedItem as error:
            damaged.add(error)
    damaged.report('have the whole image as their box')
    return found
