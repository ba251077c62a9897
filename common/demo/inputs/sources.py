"""Images with the boxes of their people: of files, or the frames of a video."""
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from common.demo.inputs.box_table import BoxTable
from common.demo.inputs.boxes import FULL, RawBox, check_box, person_shaped
from common.demo.inputs.find import images_of
from common.demo.inputs.images import frame_count, read_image
from common.demo.inputs.video import Video, is_video
from common.demo.paths import printable
from common.errors import UserError


@dataclass
class InputImage:
    """One image, or one frame of a video, with the boxes of its people."""
    path: Path
    image: np.ndarray  # (H, W, 3) uint8 RGB
    boxes: list[np.ndarray]  # (4,) xywh each, pixels, checked
    number: int = 0  # place in the folder, or frame in the video
    film_focal: float | None = None  # of an image, see `Photo`


@dataclass
class BoxSource:
    """Where the boxes of an image come from: the same for all, a box file's table, or a detector.

    `notes` collects lines about odd inputs, for the end of the run; `empty` the names of images without a person.
    """
    fixed: list[RawBox] | None = None  # of --bbox, for every image
    table: BoxTable | None = None  # of a box file
    detector: Callable[[np.ndarray], list[np.ndarray]] | None = None  # image -> (4,) xywh boxes
    box_format: str | None = None  # see `check_box`
    notes: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)

    def __call__(self, path: Path, number: int, image: np.ndarray) -> list[np.ndarray]:
        """The checked (4,) xywh boxes of an image; an empty list if nobody is in it."""
        if self.detector is not None:
            return self.detector(image)
        if self.fixed is not None:
            given = self.fixed
            where = f'{path.name}: --bbox'
        else:
            given = self._look_up(path, number)
            where = f'{path.name}: --bbox_file'
        height, width = image.shape[:2]
        boxes = []
        for raw in given:
            box = check_box(raw, width, height, self.box_format, where)
            if raw == FULL and not person_shaped(box):
                self.note(path, 'the whole image is not a box around one person; expect a poor mesh')
            boxes.append(box)
        return boxes

    def note(self, path: Path, text: str) -> None:
        """Note something odd, once, however many frames have it."""
        line = f'{printable(path.name)}: {text}'
        if line not in self.notes:
            self.notes.append(line)

    def check(self, inputs: Iterable[Path]) -> None:
        """Check before the work starts that the boxes of a file belong to these images, or to this video.

        Images beside the inputs may have boxes, too. UserError: an entry names something else, or there are more videos
        than one, whose frames would all have the same boxes.
        """
        if self.table is None:
            return
        paths = list(inputs)
        if is_video(paths[0]) and len(paths) == 1:
            note = self.table.check_frames(paths[0])
        elif any(is_video(path) for path in paths):
            raise UserError('--bbox_file goes with images, or with one video: run the videos one by one')
        else:
            beside = {folder: images_of(folder) for folder in {path.parent for path in paths}}
            note = self.table.check_images(paths, [path for images in beside.values() for path in images])
        if note:
            self.notes.append(note)

    def check_frames(self, video: Path, count: int) -> None:
        """The same for the frames of a video, when their number is known."""
        if self.table is None:
            return
        note = self.table.check_frames(video, count)
        if note and note not in self.notes:
            self.notes.append(note)

    def _look_up(self, path: Path, number: int) -> list[RawBox]:
        if self.table is None:
            return []
        if is_video(path):
            return self.table.of_frame(path, number)
        return self.table.of_image(path, number)


def read_images(inputs: Iterable[Path], boxes_of: BoxSource, failed: list[str]) -> Iterator[InputImage]:
    """Iterate over the image files that have people on them.

    Args:
        inputs: the files.
        boxes_of: gives the boxes of each, and takes the names of those without.
        failed: takes a line for each file that cannot be used.
    Raises:
        UserError: a single file that cannot be used.
    """
    paths = list(inputs)
    for number, path in enumerate(paths):
        try:
            photo = read_image(path)
            boxes = boxes_of(path, number, photo.image)
            if not boxes and len(paths) == 1:
                raise UserError(f'{path.name}: no person in it, by the boxes given or found')
        except UserError as error:
            if len(paths) == 1:
                raise
            failed.append(str(error))
            continue
        if not boxes:
            boxes_of.empty.append(printable(path.name))
            continue
        frames = frame_count(path)
        if frames > 1:
            boxes_of.note(path, f'only the first of its {frames} images is used')
        yield InputImage(path, photo.image, boxes, number, photo.film_focal)


def read_frames(video: Video, boxes_of: BoxSource) -> Iterator[InputImage]:
    """Iterate over the frames of a video; those without people have an empty list of boxes."""
    for number, image in video:
        yield InputImage(video.path, image, boxes_of(video.path, number, image), number)
