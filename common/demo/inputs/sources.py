"""Where pictures come from: one file, a folder of pictures, or the frames of a video, each with its boxes."""
import os
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from common.demo.inputs.boxes import FULL, check_box, person_shaped
from common.demo.inputs.images import IMAGE_SUFFIXES, frame_count, read_image
from common.demo.outputs.folder import opencv_path, printable
from common.errors import UserError

VIDEO_SUFFIXES = frozenset('.mp4 .avi .mov .mkv .webm .m4v .mpg .mpeg .wmv'.split())
MAX_BROKEN = 100  # frames in a row that cannot be read: beyond them there are no others
FPS_RANGE = 0.1, 1000.  # what else a file states is no frame rate
os.environ.setdefault('OPENCV_FFMPEG_LOGLEVEL', '-8')  # FFmpeg's complaints would come between our lines


@dataclass
class Picture:
    """An image (H, W, 3) uint8 RGB with the checked (4,) xywh boxes of its people; `number`: the frame in a video."""
    path: Path
    image: np.ndarray
    boxes: list
    number: int = 0


@dataclass
class BoxSource:
    """Where the boxes of a picture come from: the same ones everywhere, a table of a box file, or a detector.

    fixed: boxes of --bbox, for every picture; table: {name or number: boxes} of `read_box_file`; detector: a function
    of the image. box_format: see `check_box`. notes: lines about odd inputs, for the end of the run.
    """
    fixed: list | None = None
    table: dict | None = None
    detector: object = None
    box_format: str | None = None
    notes: list = field(default_factory=list)

    def __call__(self, path, number, image):
        """Checked (4,) xywh boxes of one picture; an empty list if there is nobody."""
        height, width = image.shape[:2]
        if self.detector is not None:
            return self.detector(image)
        if self.fixed is not None:
            found, where = self.fixed, f'{path.name}: --bbox'
        else:
            found, where = self._lookup(path, number), f'{path.name}: --bbox_file'
        boxes = [check_box(box, width, height, self.box_format, where) for box in found]
        for given, box in zip(found, boxes, strict=True):
            if given == FULL and not person_shaped(box):
                self.note(path, 'the whole picture is no box around one person; expect a poor mesh')
        return boxes

    def note(self, path, text):
        """Note something odd, once, however many frames have it."""
        line = f'{printable(path.name)}: {text}'
        if line not in self.notes:
            self.notes.append(line)

    def _lookup(self, path, number):
        # Pictures may be called 1.jpg, 2.jpg: for them "1" is a name. In a video it is a frame, and the name of the
        # file without its suffix, which could be a number too, says nothing.
        names = (str(path), path.name)
        for key in (number, str(number), *names) if is_video(path) else (*names, path.stem, number):
            if key in self.table:
                return self.table[key]
        return []


def find_inputs(path):
    """The file itself, or the pictures of a folder in the order of their names. UserError if there are none."""
    path = Path(path)
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.suffix.lower() in IMAGE_SUFFIXES
                       and (p.is_file() or not p.exists()))  # a link to nothing is told when it is read
        if not found:
            raise UserError(f'--input {path}: no pictures in this folder ({" ".join(sorted(IMAGE_SUFFIXES))})')
        return found
    if not path.is_file():
        raise UserError(f'--input {path}: no such file or folder')
    return [path]


def is_video(path):
    return Path(path).suffix.lower() in VIDEO_SUFFIXES and not Path(path).is_dir()


def read_pictures(paths, boxes_of, failed):
    """Iterate over the Pictures of several files that have people on them.

    boxes_of: BoxSource. failed: a list that takes one line per file that cannot be used; a single file that cannot
    be used is a UserError instead.
    """
    for number, path in enumerate(paths):
        try:
            image = read_image(path)
            boxes = boxes_of(path, number, image)
            if not boxes:
                raise UserError(f'{path.name}: no person in it, by the boxes given or found')
            frames = frame_count(path)
            if frames > 1:
                boxes_of.note(path, f'only the first of its {frames} pictures is used')
        except UserError as error:
            if len(paths) == 1:
                raise
            failed.append(str(error))
            continue
        yield Picture(path, image, boxes, number)


class Video:
    """The frames of a video file. frames: their number as the file states it; fps; size (height, width); uneven, known
    when all were read: they do not follow each other in equal times.

    UserError if OpenCV cannot open it.
    """
    uneven = False

    def __init__(self, path):
        self.path = Path(path)
        reader = cv2.VideoCapture(opencv_path(path))
        opened, first = reader.read()
        if not opened:
            raise UserError(f'{path}: not a video that OpenCV can read (or broken, or without a frame)')
        self.frames = max(int(reader.get(cv2.CAP_PROP_FRAME_COUNT)), 1)
        fps = reader.get(cv2.CAP_PROP_FPS)
        self.fps = fps if FPS_RANGE[0] <= fps <= FPS_RANGE[1] else 25.
        self.size = first.shape[:2]
        reader.release()

    def __iter__(self):
        """Iterate over (number, image (H, W, 3) uint8 RGB) from the start. Broken frames inside are left out."""
        reader = cv2.VideoCapture(str(self.path))
        times, number, broken = [], 0, 0
        while broken <= MAX_BROKEN:
            ok, image = reader.read()
            broken = 0 if ok else broken + 1
            if ok:
                times.append(reader.get(cv2.CAP_PROP_POS_MSEC))
                yield number, cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
            elif number >= self.frames - 1:
                break
            number += 1
        reader.release()
        steps = np.diff(times)
        self.uneven = len(steps) > 0 and steps.max() > 1.5 * np.median(steps)

    def pictures(self, boxes_of):
        """Iterate over the frames as Pictures, those without people included (with an empty list of boxes)."""
        for number, image in self:
            yield Picture(self.path, image, boxes_of(self.path, number, image), number)
