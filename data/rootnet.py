"""Test boxes and root depths made by RootNet, and whether they belong to the annotations at hand."""
from pathlib import Path

import numpy as np

from common.errors import shown
from common.utils.preprocessing import process_bbox, to_xywh
from data.files import read_records
from data.records import Record

COMPARED = 200        # boxes that are compared with the annotated ones
LOWEST_OVERLAP = 0.3  # of their median; less: the file belongs to other annotations


class RootNetFile:
    """RootNet's file: a list of {key, bbox (4,) pixels, root_cam (3,)}.

    Args:
        path: The file.
        key: What names a person there: 'image_id' or 'ann_id'.
        unit: Metres per unit of root_cam.
        box_format: Of the boxes in the file: 'xywh' or 'xyxy'.
    Attributes:
        entries: (key, box (4,) float32 xywh in pixels, root depth in metres) of each person.
        by_key: {text of the key: (box, root depth)}; of those that are there several times, the last.
        repeated: Texts of the keys that are there several times.
    Raises:
        UserError: The file is missing or broken, or one of its entries.
    """

    def __init__(self, path: Path, key: str, unit: float, box_format: str = 'xywh') -> None:
        self.path = path
        self.entries = []
        self.by_key: dict[str, tuple[np.ndarray, float]] = {}
        self.repeated: set[str] = set()
        content = read_records(path, list, 'boxes and root depths for testing', 'use_gt_info=true does without')
        for number, fields in enumerate(content):
            name = f'number {number} of the list'
            if isinstance(fields, dict) and key in fields:
                name = f'{key} {shown(fields[key])}'
            entry = Record(fields, f'{path}: the entry {name}')
            person = entry.identity(key)
            box = np.asarray(to_xywh(entry.array('bbox', (4,)), box_format), np.float32)
            depth = float(entry.array('root_cam', (3,))[2]) * unit
            self.entries.append((person, box, depth))
            if str(person) in self.by_key:
                self.repeated.add(str(person))
            self.by_key[str(person)] = (box, depth)


class SourceCheck:
    """Finds out that RootNet's file was made for other annotations: other people have the same numbers.

    Args:
        input_img_shape: (height, width) of the network input, to whose aspect ratio RootNet's boxes are widened.
    """

    def __init__(self, input_img_shape: tuple[int, int]) -> None:
        self.input_img_shape = input_img_shape
        self.overlaps: list[float] = []

    def add(self, box: np.ndarray, annotated: list[float] | np.ndarray, img_shape: tuple[int, int]) -> None:
        """Compare RootNet's box (4,) with the annotated one (4,), both xywh in pixels, in an image (height, width)."""
        height, width = img_shape
        processed = process_bbox(annotated, width, height, self.input_img_shape)
        is_whole_image = annotated[2] >= width - 1 and annotated[3] >= height - 1  # says nothing about the person
        if len(self.overlaps) < COMPARED and processed is not None and not is_whole_image:
            self.overlaps.append(max(overlap(box, processed), overlap(box, annotated)))

    def median(self) -> float | None:
        """The median overlap of the first COMPARED boxes, None if there were none."""
        if not self.overlaps:
            return None
        return float(np.median(self.overlaps))


def overlap(a: np.ndarray | list[float], b: np.ndarray | list[float]) -> float:
    """Intersection over union of two boxes (4,) xywh."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    shared = max(0., width) * max(0., height)
    union = a[2] * a[3] + b[2] * b[3] - shared
    if union <= 0:
        return 0.
    return float(shared / union)
