"""The files of a video's results, written frame by frame: record, arrays and overlay videos."""
import contextlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike

from common.demo.outputs.image_files import draw_people
from common.demo.outputs.record import Record, compact
from common.demo.paths import opencv_path
from common.demo.people.prediction import Person
from common.demo.row_file import RowFile
from common.errors import UserError
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

    def add(self, frame: int, person: int, arrays: dict[str, np.ndarray]) -> None:
        """Add one person of a frame; arrays: their `Record.arrays`."""
        row = {'frame': np.array(frame, np.int32), 'person': np.array(person, np.int32)}
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
    """`rendered_mesh_<kind>.mp4` of each kind of mesh.

    The codec has even sizes only: the last row or column of odd ones is repeated.

    Args:
        folder: to write into.
        record: of the video.
        fps: frames per second.
    Raises:
        UserError: OpenCV cannot write them, or has not written all frames.
    """

    def __init__(self, folder: Path, record: Record, fps: float) -> None:
        opencv_path(folder)
        self.record = record
        self.count = 0
        height, width = record.size
        self.fill = (height % 2, width % 2)  # rows and columns to repeat
        even = (width + width % 2, height + height % 2)
        code = cv2.VideoWriter.fourcc(*'mp4v')
        self.paths = {kind: folder / f'rendered_mesh_{kind}.mp4' for kind in record.info.kinds}
        self.writers = {kind: cv2.VideoWriter(str(path), code, fps, even)
                        for kind, path in self.paths.items()}
        if not all(writer.isOpened() for writer in self.writers.values()):
            raise UserError('this OpenCV cannot write mp4 videos: pip install opencv-python-headless')

    def add(self, image: np.ndarray, people: list[Person], numbers: list[int]) -> None:
        """Draw the people of one frame (H, W, 3) uint8 RGB, each in the colour of its number."""
        rows, columns = self.fill
        for kind, writer in self.writers.items():
            drawn = draw_people(image, people, kind, self.record, numbers)
            drawn = cv2.copyMakeBorder(drawn, 0, rows, 0, columns, cv2.BORDER_REPLICATE)
            writer.write(cv2.cvtColor(drawn, cv2.COLOR_RGB2BGR))
        self.count += 1

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        for writer in self.writers.values():
            writer.release()
        if kind is not None:
            return
        for path in self.paths.values():
            written = int(cv2.VideoCapture(str(path)).get(cv2.CAP_PROP_FRAME_COUNT))
            if written != self.count:  # OpenCV gives no error
                raise UserError(f'{path.name}: {max(written, 0)} of its {self.count} frames could be written; '
                                'is the disk full?')
