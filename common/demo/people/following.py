"""Following people through a video from their boxes in the first frame, by their predicted meshes."""
import numpy as np
from scipy.ndimage import gaussian_filter

from common.demo.people.prediction import Prediction
from common.demo.people.tracking import overlaps

AGILITY = 0.3  # share of the newest step in the movement of a person
LARGEST_STEP = 0.4  # from frame to frame, parts of the longer side of a person's box
LARGEST_GROWTH = 1.6  # of the box from frame to frame, or the inverse
RIVAL_OVERLAP = 0.3  # of boxes of two people who may be taken for each other
LEAST_INSIDE = 0.2  # part of the mesh's box that lies in the image
COLOR_BINS = 8  # for each of the RGB channels
BLUR = 0.7  # bins: a little more light or shade is hardly a difference
LEARNING = 0.05  # share of the newest frame in how a person looks: clothes turn, light changes
RING = np.array([0.1, 0.2, 0.3])  # parts of the box around it that belong to the surroundings
RING_POINTS = 40  # along each side


class Follower:
    """Says where to look for each person in the next frame: in the box of their mesh in this one, moved as they move.

    A person is lost where the mesh jumps, or lies mostly outside the image, or where its pixels look more like what is
    around it, or like somebody else who is there, than like the person. Their box then stays where it was, and they
    are found again when they come back to it.

    Args:
        boxes: (4,) xywh of each person in the first frame, pixels.
    Attributes:
        boxes: where to look for them next.
    """

    def __init__(self, boxes: list[np.ndarray]) -> None:
        self.boxes = list(boxes)
        self.looks: list[np.ndarray] = []
        self.former: list[np.ndarray | None] = [None] * len(boxes)  # of the mesh in the last frame; None: lost there
        self.steps = np.zeros((len(boxes), 2))  # pixels per frame

    def update(self, image: np.ndarray, predictions: list[Prediction]) -> list[int]:
        """Take the predictions of a frame.

        Args:
            image: (H, W, 3) uint8 RGB.
            predictions: one for each of `boxes`.
        Returns:
            The numbers of the people who are not lost.
        """
        found = []
        for number, prediction in enumerate(predictions):
            pixels = prediction.mesh_img[:, :2].astype(np.float64)
            low = pixels.min(0)
            box = np.append(low, pixels.max(0) - low).astype(np.float32)
            look = colors_at(image, pixels)
            if number == len(self.looks):  # the first frame: the box is the user's
                self.looks.append(look)
            elif not self._is_there(number, image, box, look):
                self.former[number] = None
                continue
            self.looks[number] = (1 - LEARNING) * self.looks[number] + LEARNING * look
            found.append(number)
            self._move(number, image, box)
        return found

    def _move(self, number: int, image: np.ndarray, box: np.ndarray) -> None:
        """Choose where to look for a person whose mesh has this box."""
        former = self.former[number]
        if former is None:
            self.steps[number] = 0
        else:
            self.steps[number] += AGILITY * (_middle(box) - _middle(former) - self.steps[number])
        self.former[number] = box
        moved = np.append(box[:2] + self.steps[number], box[2:]).astype(np.float32)
        if _part_inside(moved, image) >= LEAST_INSIDE:
            self.boxes[number] = moved

    def _is_there(self, number: int, image: np.ndarray, box: np.ndarray, look: np.ndarray) -> bool:
        """Whether a mesh with this box, on pixels of this look, is of the person."""
        known = self.looks[number]
        former = self.boxes[number]
        if _part_inside(box, image) < LEAST_INSIDE:
            return False
        step = np.abs(_middle(box) - _middle(former)).max()
        growth = np.sqrt(box[2:].prod() / former[2:].prod())
        if step > LARGEST_STEP * former[2:].max() or not 1 / LARGEST_GROWTH <= growth <= LARGEST_GROWTH:
            return False
        others = [colors_at(image, _ring(box))]
        for rival in np.flatnonzero(overlaps([box], self.boxes)[0] > RIVAL_OVERLAP):
            if rival != number:
                others.append(self.looks[rival])
        return likeness(look, known) > max(likeness(look, other) for other in others)


def _middle(box: np.ndarray) -> np.ndarray:
    """The middle (2,) of a (4,) xywh box."""
    return box[:2] + box[2:] / 2


def colors_at(image: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """The colours of an image (H, W, 3) at pixels (N, 2): a histogram of sum 1, or of zeros if all are outside."""
    x, y = np.rint(pixels).astype(int).T
    inside = (x >= 0) & (y >= 0) & (x < image.shape[1]) & (y < image.shape[0])
    bins = image[y[inside], x[inside]].astype(int) * COLOR_BINS // 256
    places = np.ravel_multi_index(tuple(bins.T), (COLOR_BINS,) * 3)
    counts = np.bincount(places, minlength=COLOR_BINS ** 3).reshape((COLOR_BINS,) * 3)
    histogram = gaussian_filter(counts.astype(np.float64), BLUR)
    return histogram / max(histogram.sum(), 1e-9)


def likeness(one: np.ndarray, other: np.ndarray) -> float:
    """How alike two histograms are: 1 for the same, 0 for no colour in common (Bhattacharyya's coefficient)."""
    return float(np.sqrt(one * other).sum())


def _ring(box: np.ndarray) -> np.ndarray:
    """Points (N, 2) around a (4,) xywh box."""
    along = np.linspace(0, 1, RING_POINTS)
    points = []
    for margin in RING:
        low = box[:2] - margin * box[2:]
        high = box[:2] + (1 + margin) * box[2:]
        x = low[0] + along * (high[0] - low[0])
        y = low[1] + along * (high[1] - low[1])
        for edge in low, high:
            points.append(np.stack([x, np.full(RING_POINTS, edge[1])], axis=1))
            points.append(np.stack([np.full(RING_POINTS, edge[0]), y], axis=1))
    return np.concatenate(points)


def _part_inside(box: np.ndarray, image: np.ndarray) -> float:
    """The part of a (4,) xywh box that lies in an image (H, W, 3), 0 to 1."""
    size = np.array(image.shape[1::-1])
    seen = np.clip(box[:2] + box[2:], 0, size) - np.clip(box[:2], 0, size)
    return float(seen.prod() / max(box[2:].prod(), 1e-9))
