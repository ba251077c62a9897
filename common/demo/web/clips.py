"""Short videos of the page: the demo's own video run, with a report of each frame."""
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from common.demo.inputs.sources import BoxSource
from common.demo.inputs.video import Video
from common.demo.outputs.record import Record
from common.demo.people.placer import Placer
from common.demo.people.prediction import Camera
from common.demo.pipeline import Pipeline
from common.demo.video_run import Wishes, run_video
from common.errors import UserError

MAX_FRAMES = 900
STEPS = ('network', 'drawing')  # what the frames are read for, in this order


class Clip(Video):
    """A video that is not too long, and reports each frame that is read as {step, frame, frames}."""

    def __init__(self, path: Path, report: Callable[[dict[str, Any]], None] | None = None) -> None:
        super().__init__(path)
        self.report = report
        self.rounds = 0
        self._check(self.frames)

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        step = STEPS[min(self.rounds, len(STEPS) - 1)]
        self.rounds += 1
        for number, image in super().__iter__():
            self._check(number + 1)
            if self.report is not None:
                self.report({'step': step, 'frame': number + 1, 'frames': max(self.frames, number + 1)})
            yield number, image

    def _check(self, frames: int) -> None:
        if frames > MAX_FRAMES:
            raise UserError(f'{self.path.name}: the page takes videos of {MAX_FRAMES} frames at most; for longer ones '
                            'run main/demo.py')


@dataclass
class ClipPipeline(Pipeline):
    """A pipeline whose records name the file as the page knows it."""
    source: str = ''

    def record(self, source: str, size: tuple[int, int], camera: Camera) -> Record:
        """See `Pipeline.record`."""
        return super().record(self.source, size, camera)


def open_clip(folder: Path, name: str, data: bytes, report: Callable[[dict[str, Any]], None] | None = None) -> Clip:
    """A video from the content of a file, which is put into a folder. UserError: it cannot be read, or is too long."""
    suffix = re.search(r'\.\w{1,5}$', name)
    path = folder / ('clip' + (suffix[0] if suffix else ''))
    path.write_bytes(data)
    try:
        return Clip(path, report)
    except UserError as error:
        raise _named(error, path, name) from error


def clip_pipeline(pipeline: Pipeline, placer: Placer, name: str) -> ClipPipeline:
    """The pipeline for a video of a name, with a placer of its own."""
    parts = {field.name: getattr(pipeline, field.name) for field in fields(Pipeline)}
    return ClipPipeline(**parts | {'placer': placer}, source=name)


def clip_files(pipeline: ClipPipeline, video: Clip, boxes: list[np.ndarray], folder: Path,
               wishes: Wishes) -> tuple[dict[str, Path], list[str]]:
    """Run the demo on a video.

    Args:
        pipeline: to run.
        video: whose file is deleted afterwards.
        boxes: (4,) xywh of its people in the first frame, pixels.
        folder: for the results.
        wishes: what else is wanted.
    Returns:
        The files by name, and lines about what is odd.
    Raises:
        UserError: the video cannot be used.
    """
    source = BoxSource([box.tolist() for box in boxes], box_format='xywh')
    try:
        run_video(pipeline, video, source, folder, wishes)
    except UserError as error:
        raise _named(error, video.path, pipeline.source) from error
    finally:
        video.path.unlink(missing_ok=True)
    files = {path.name: path for path in sorted((folder / video.path.stem).iterdir())}
    return files, [*source.notes, *video.notes]


def _named(error: UserError, path: Path, name: str) -> UserError:
    """The error with the name that the page knows."""
    return UserError(str(error).replace(str(path), name).replace(path.name, name))
