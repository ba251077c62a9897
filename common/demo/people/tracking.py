"""Who is who from frame to frame, when a detector gives the boxes in any order."""
import numpy as np
from scipy.optimize import linear_sum_assignment


def overlaps(first, second):
    """Intersection over union of every pair of xywh boxes: (N, 4), (M, 4) -> (N, M)."""
    a, b = np.asarray(first, np.float64).reshape(-1, 1, 4), np.asarray(second, np.float64).reshape(1, -1, 4)
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., :2] + a[..., 2:], b[..., :2] + b[..., 2:])
    common = np.clip(high - low, 0, None).prod(-1)
    return common / np.maximum(a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - common, 1e-9)


class Tracker:
    """Gives the boxes of each frame the number of the person whose last box they overlap most.

    least: smallest overlap of the same person. patience: frames after which a person who is out of sight is given up.
    """

    def __init__(self, least=0.3, patience=15):
        self.least, self.patience = least, patience
        self.last, self.count = {}, 0  # person -> (frame, box)

    def __call__(self, frame, boxes):
        """Boxes of frame number `frame` (frames in order) -> one person number for each."""
        self.last = {who: seen for who, seen in self.last.items() if frame - seen[0] <= self.patience}
        people = list(self.last)
        overlap = overlaps(boxes, [self.last[who][1] for who in people])
        numbers = [None] * len(boxes)
        for row, column in zip(*linear_sum_assignment(overlap, maximize=True), strict=True):
            if overlap[row, column] >= self.least:
                numbers[row] = people[column]
        for i, box in enumerate(boxes):
            if numbers[i] is None:
                numbers[i] = self.count
                self.count += 1
            self.last[numbers[i]] = frame, box
        return numbers
