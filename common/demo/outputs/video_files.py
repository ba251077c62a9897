"""The files of a video's results, written frame by frame: record, arrays and overlay videos."""
import contextlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from common.demo.outputs.image_files import draw_people
from common.demo.outputs.record import Record, compact
from common.demo.outputs.video_writer import VideoWriter
from common.demo.people.prediction import Person
from common.demo.row_file import RowFile
from common.files.arrays import write_npz


class FrameRecord(contextlib.AbstractContextManager):
    """result.json of a video: the header, and `frames`, a list of {frame, people}.

    Args:
        path: of the file.
        header: what all frames share.
    """

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self._file = open(path, 'w', encoding='utf-8', errors='backslashreplace')
        start = compact(header).rstrip().removesuffix('}').rstrip()
        self._file.write(f'{start},\n "frames": [')
        self._separator = '\n'

    def add(self, frame: int, people: list[dict[str, Any]]) -> None:
        """Add a frame; people: the `Record.entry` of each."""
        self._file.write(self._separator + compact({'frame': frame, 'people': people}).rstrip())
        self._separator = ',\n'

    def __exit__(self, *exception: object) -> None:
        self._file.write('\n]}\n')
        self._file.close()


class FrameArrays(contextlib.AbstractContextManager):
    """result.npz of a video: one row per person and frame. Vertices wait in files of `folder`, all else in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[dict[str, np.ndarray]] = []
        self.files: dict[str, RowFile] = {}

    def add(self, frame: int, seconds: float, person: int, arrays: dict[str, np.ndarray]) -> None:
        """Add one person of a frame, which is shown after so many seconds; arrays: their `Record.arrays`."""
        row: dict[str, np.ndarray] = {'frame': np.array(frame, np.int32), 'times': np.array(seconds, np.float64),
                                      'person': np.array(person, np.int32)}
        for name, array in arrays.items():
            if 'vertices' not in name:
                row[name] = array
                continue
            if name not in self.files:
                self.files[name] = RowFile(self.folder / f'{name}.tmp', array.shape)
            self.files[name].append(array)
        self.rows.append(row)

    def column(self, name: str) -> np.ndarray:
        """(N, ...) array of one name over all rows."""
        return np.stack([row[name] for row in self.rows])

    def write(self, path: Path, shared: dict[str, ArrayLike]) -> None:
        """Write the npz, with further arrays."""
        arrays = {name: self.column(name) for name in self.rows[0]}
        for name, value in shared.items():
            arrays[name] = np.asarray(value)
        for name, rows in self.files.items():
            arrays[name] = rows.array()
        write_npz(path, arrays)

    def __exit__(self, *exception: object) -> None:
        for rows in self.files.values():
            rows.close()


class OverlayVideos(contextlib.AbstractContextManager):
    """`rendered_mesh_<kind>` of each kind of mesh, as videos that browsers play.

    Args:
        folder: to write into.
        record: of the video.
        fps: frames per second.
        side_by_side: with the frame as it was to the left.
    Raises:
        UserError: see VideoWriter.
    """

    def __init__(self, folder: Path, record: Record, fps: float, side_by_side: bool = False) -> None:
        self.record = record
        self.side_by_side = side_by_side
        height, width = record.size
        if side_by_side:
            width *= 2
        self.videos = {}
        with contextlib.ExitStack() as stack:
            for kind in record.info.kinds:
                video = VideoWriter(folder, f'rendered_mesh_{kind}', (height, width), fps)
                self.videos[kind] = stack.enter_context(video)
            self.all_open = stack.pop_all()

    def add(self, image: np.ndarray, people: list[Person], numbers: list[int]) -> None:
        """Draw the people of one frame (H, W, 3) uint8 RGB, each in the colour of its number."""
        for kind, video in self.videos.items():
            drawn = draw_people(image, people, kind, self.record, numbers)
            if self.side_by_side:
                drawn = np.concatenate([image, drawn], axis=1)
            video.write(drawn)

    def __exit__(self, *exception: Any) -> None:
        self.all_open.__exit__(*exception)
