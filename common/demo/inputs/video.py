"""Reading videos frame by frame."""
import os
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from common.demo.paths import opencv_path
from common.errors import UserError

VIDEO_SUFFIXES = frozenset(('.mp4', '.avi', '.mov', '.mkv', '.webm', '.m4v', '.mpg', '.mpeg', '.wmv',
                            '.3gp', '.mts', '.m2ts', '.ts'))
MAX_BROKEN = 100  # frames in a row that cannot be read: after them the video counts as ended
FPS_RANGE = (0.1, 1000.)  # anything else that a file states is not a frame rate
DEFAULT_FPS = 25.
os.environ.setdefault('OPENCV_FFMPEG_LOGLEVEL', '-8')  # no output of FFmpeg between our lines


def is_video(path: str | Path) -> bool:
    """Whether a path looks like a video, by the ending of its name."""
    return Path(path).suffix.lower() in VIDEO_SUFFIXES and not Path(path).is_dir()


class Video:
    """The frames of a video file: iterate over (number, image (H, W, 3) uint8 RGB) from the start.

    Attributes:
        path: of the file.
        frames: their number, as the file states it.
        fps: frames per second.
        size: (height, width), pixels.
        uneven: the frames are not evenly spaced in time; known when all were read.
    Raises:
        UserError: OpenCV cannot open it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        reader = cv2.VideoCapture(opencv_path(path))
        opened, first = reader.read()
        if not opened:
            raise UserError(f'{path}: not a video that OpenCV can read (or broken, or without a frame)')
        self.frames = max(int(reader.get(cv2.CAP_PROP_FRAME_COUNT)), 1)
        self.fps = reader.get(cv2.CAP_PROP_FPS)
        if not FPS_RANGE[0] <= self.fps <= FPS_RANGE[1]:
            self.fps = DEFAULT_FPS
        self.size: tuple[int, int] = (first.shape[0], first.shape[1])
        self.uneven = False
        reader.release()

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        """Broken frames are left out; the others keep their numbers."""
        reader = cv2.VideoCapture(str(self.path))
        times = []
        number = 0
        broken = 0  # frames in a row
        while broken <= MAX_BROKEN:
            ok, image = reader.read()
            if ok:
                broken = 0
                times.append(reader.get(cv2.CAP_PROP_POS_MSEC))
                yield number, cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
            elif number >= self.frames - 1:
                break
            else:
                broken += 1
            number += 1
        reader.release()
        steps = np.diff(times)
        self.uneven = len(steps) > 0 and bool(steps.max() > 1.5 * np.median(steps))
