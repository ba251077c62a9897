"""Writing videos that browsers play: H.264 in .mp4 where this OpenCV has it, else VP9 in .webm."""
import contextlib
import functools
import os
import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from common.demo.paths import opencv_path
from common.errors import UserError

FRAMES_WAITING = 4  # for the encoder: bounds the memory
TRIAL = (10, 64, 96)  # frames, height, width
LARGEST_ERROR = 10  # mean grey levels; what comes back of a trial differs by about one


@dataclass(frozen=True)
class VideoFormat:
    """A codec in a container."""
    name: str
    fourcc: str
    suffix: str


FORMATS = (VideoFormat('H.264', 'avc1', '.mp4'), VideoFormat('VP9', 'VP90', '.webm'))  # the faster one first


class VideoWriter(contextlib.AbstractContextManager):
    """A video file, encoded by a thread of its own: VP9 takes longer than drawing.

    The codecs have even sizes only: the last row or column of odd ones is repeated.

    Args:
        folder: to write into.
        name: of the file, without its ending.
        size: (height, width) of the images, pixels.
        fps: frames per second.
    Attributes:
        path: of the file.
    Raises:
        UserError: OpenCV cannot write videos that browsers play, or has not written all frames.
    """

    def __init__(self, folder: Path, name: str, size: tuple[int, int], fps: float) -> None:
        video_format = playable_format()
        self.path = folder / (name + video_format.suffix)
        self.count = 0
        self.fill = (size[0] % 2, size[1] % 2)  # rows and columns to repeat
        even = (size[0] + self.fill[0], size[1] + self.fill[1])
        self.writer = _open(self.path, video_format, even, fps)
        if not self.writer.isOpened():
            raise UserError(f'{self.path.name}: this OpenCV cannot write {video_format.name} videos of {even[1]} x '
                            f'{even[0]} pixels')
        self.encoder = ThreadPoolExecutor(1)
        self.waiting: deque[Future] = deque()

    def write(self, image: np.ndarray) -> None:
        """Add a frame (H, W, 3) uint8 RGB."""
        if len(self.waiting) >= FRAMES_WAITING:
            self.waiting.popleft().result()
        self.waiting.append(self.encoder.submit(self._encode, image))
        self.count += 1

    def _encode(self, image: np.ndarray) -> None:
        rows, columns = self.fill
        whole = cv2.copyMakeBorder(image, 0, rows, 0, columns, cv2.BORDER_REPLICATE)
        self.writer.write(cv2.cvtColor(whole, cv2.COLOR_RGB2BGR))

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self.encoder.shutdown()
        self.writer.release()
        if kind is not None:
            return
        for frame in self.waiting:
            frame.result()
        written = _count_frames(self.path)
        if written != self.count:  # OpenCV gives no error
            raise UserError(f'{self.path.name}: {written} of its {self.count} frames could be written; '
                            'is the disk full?')


@functools.cache
def playable_format() -> VideoFormat:
    """The first of FORMATS in which this OpenCV can write some frames that it can read again.

    Raises:
        UserError: there is none.
    """
    with tempfile.TemporaryDirectory() as folder:
        for video_format in FORMATS:
            if _works(video_format, Path(folder) / f'trial{video_format.suffix}'):
                return video_format
    names = ' and '.join(video_format.name for video_format in FORMATS)
    raise UserError(f'this OpenCV can write none of the videos that browsers play ({names}): '
                    'pip install opencv-python-headless')


def _works(video_format: VideoFormat, path: Path) -> bool:
    count, height, width = TRIAL
    grey = np.linspace(40, 200, count)
    writer = _open(path, video_format, (height, width), 25.)
    for value in grey:
        writer.write(np.full((height, width, 3), value, np.uint8))
    writer.release()
    if not path.exists():
        return False
    reader = cv2.VideoCapture(str(path))
    for value in grey:
        ok, image = reader.read()
        if not ok or image.shape != (height, width, 3) or abs(image.mean() - value) > LARGEST_ERROR:
            return False
    return not reader.read()[0]


def _count_frames(path: Path) -> int:
    """The frames that can be read: what a file states of their number is right even if the end is missing."""
    reader = cv2.VideoCapture(str(path))
    count = 0
    while reader.grab():
        count += 1
    return count


def _open(path: Path, video_format: VideoFormat, size: tuple[int, int], fps: float) -> cv2.VideoWriter:
    """A writer for images of an even `size` (height, width), opened or not."""
    with _without_messages():
        return cv2.VideoWriter(opencv_path(path), cv2.VideoWriter.fourcc(*video_format.fourcc), fps, size[::-1])


@contextlib.contextmanager
def _without_messages() -> Iterator[None]:
    """Without what OpenCV prints for every .webm and for each codec that it does not have, whatever its log level."""
    kept = os.dup(2)
    try:
        with open(os.devnull, 'wb') as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
