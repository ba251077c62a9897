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
RATE_MARGIN = 1.1  # a stated rate that is off by this factor is wrong; times are rounded to milliseconds
os.environ.setdefault('OPENCV_FFMPEG_LOGLEVEL', '-8')  # no output of FFmpeg between our lines


def is_video(path: str | Path) -> bool:
    """Whether a path looks like a video, by the ending of its name."""
    return Path(path).suffix.lower() in VIDEO_SUFFIXES and not Path(path).is_dir()


class Video:
    """The frames of a video file: iterate over (number, image (H, W, 3) uint8 RGB) from the start.

    What a file states of its rate may be wrong: browsers' recordings state 1000 frames per second. When all frames were
    read, the steps between their own times count instead.

    Attributes:
        path: of the file.
        frames: their number, as the file states it, or as they were read where its rate is wrong.
        fps: frames per second.
        size: (height, width), pixels.
        times: {frame: seconds}; empty until all frames were read.
        uneven: the frames are not evenly spaced in time; known when all were read.
        notes: lines for the user about rate and times; known when all were read.
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
        self.stated_fps = reader.get(cv2.CAP_PROP_FPS)
        self.fps = DEFAULT_FPS
        if FPS_RANGE[0] <= self.stated_fps <= FPS_RANGE[1]:
            self.fps = self.stated_fps
        self.size: tuple[int, int] = (first.shape[0], first.shape[1])
        self.times: dict[int, float] = {}
        self.uneven = False
        self.notes: list[str] = []
        reader.release()

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        """Broken frames are left out; the others keep their numbers."""
        reader = cv2.VideoCapture(str(self.path))
        times: dict[int, float] = {}
        number = 0
        broken = 0  # frames in a row
        while broken <= MAX_BROKEN:
            ok, image = reader.read()
            if ok:
                broken = 0
                times[number] = reader.get(cv2.CAP_PROP_POS_MSEC) / 1000
                yield number, cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
            elif number >= self.frames - 1:
                break
            else:
                broken += 1
            number += 1
        reader.release()
        if not self.times:
            self._take_times(times)

    def _take_times(self, times: dict[int, float]) -> None:
        """Rate and times by what the frames say themselves; {frame: seconds}."""
        steps = np.diff(list(times.values())) / np.diff(list(times))  # broken frames took their time, too
        forward = steps[steps > 0]
        own_times = len(steps) > 0 and len(forward) == len(steps)
        if 2 * len(forward) > len(steps):
            median = np.median(forward)
            near = forward[np.abs(forward - median) <= median / 2]
            step = median
            if len(near):
                step = near.mean()  # free of the rounding to milliseconds
            self.uneven = own_times and len(near) < len(steps)
            self._check_rate(1 / float(step), max(times) + 1)
        if self.uneven:
            self.notes.append('its frames are not evenly spaced in time; the results have the time of each, '
                              f'the overlay videos show {self.fps:.4g} a second')
        if not own_times:
            times = {number: number / self.fps for number in times}
        self.times = times

    def _check_rate(self, fps: float, count: int) -> None:
        """Take the rate of the frames themselves where the stated one is far off, or none."""
        off = max(fps, self.fps) / min(fps, self.fps)
        if off < RATE_MARGIN or not FPS_RANGE[0] <= fps <= FPS_RANGE[1]:
            return
        if self.fps == self.stated_fps:
            self.notes.append(f'states {self.fps:.4g} frames per second, but has {fps:.4g} by the times of its frames, '
                              'which count')
        self.fps = fps
        self.frames = count  # the stated number may come from the stated rate
