"""Who is who from frame to frame, when a detector gives the boxes in any order."""
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment


def overlaps(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """Intersection over union of every pair of xywh boxes: (N, 4), (M, 4) -> (N, M)."""
    a = np.asarray(first, np.float64).reshape(-1, 1, 4)
    b = np.asarray(second, np.float64).reshape(1, -1, 4)
    low = np.maximum(a[..., :2], b[..., :2])
    high = np.minimum(a[..., :2] + a[..., 2:], b[..., :2] + b[..., 2:])
    common = np.clip(high - low, 0, None).prod(-1)
    union = a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - common
    return common / np.maximum(union, 1e-9)


class Tracker:
    """Gives each box of a frame the number of the person whose last box it overlaps most.

    Args:
        least: smallest overlap of the same person.
        patience: frames after which a person who is out of sight is given up.
    """

    def __init__(self, least: float = 0.3, patience: int = 15) -> None:
        self.least = least
        self.patience = patience
        self.last: dict[int, tuple[int, np.ndarray]] = {}  # person -> (frame, box)
        self.count = 0

    def __call__(self, frame: int, boxes: Sequence[np.ndarray]) -> list[int]:
        """Boxes (4,) xywh of the next frame -> one person number each."""
        self.last = {person: seen for person, seen in self.last.items()
                     if frame - seen[0] <= self.patience}
        people = list(self.last)
        overlap = overlaps(boxes, [self.last[person][1] for person in people])
        known = {}  # row of the box -> person
        for row, column in zip(*linear_sum_assignment(overlap, maximize=True), strict=True):
            if overlap[row, column] >= self.least:
                known[row] = people[column]
        numbers = []
        for row, box in enumerate(boxes):
            if row not in known:
                known[row] = self.count
                self.count += 1
            self.last[known[row]] = (frame, box)
            numbers.append(known[row])
        return numbers
