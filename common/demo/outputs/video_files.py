"""The files of a video's results, written frame by frame: record, arrays and overlay videos."""
import contextlib

import cv2
import numpy as np

from common.demo.outputs.folder import opencv_path
from common.demo.outputs.record import compact
from common.demo.outputs.row_file import RowFile
from common.errors import UserError
from common.files.arrays import write_npz
from common.utils import vis


class FrameRecord(contextlib.AbstractContextManager):
    """result.json of a video: the header, and `frames`, a list of {frame, people}."""

    def __init__(self, path, head):
        self._file = open(path, 'w', encoding='utf-8', errors='backslashreplace')
        self._file.write(compact(head).rstrip()[:-1].rstrip() + ',\n "frames": [')
        self._first = True

    def add(self, frame, people):
        """people: what `record.person_entry` says of each."""
        self._file.write(('\n' if self._first else ',\n') + compact({'frame': frame, 'people': people}).rstrip())
        self._first = False

    def __exit__(self, *exception):
        self._file.write('\n]}\n')
        self._file.close()


class FrameArrays(contextlib.AbstractContextManager):
    """result.npz of a video: one row per person and frame. Vertices wait in files of `folder`, all else in memory."""

    def __init__(self, folder):
        self.folder, self.rows, self.files = folder, [], {}

    def add(self, frame, person, arrays):
        """arrays: what `record.person_arrays` says of one person in one frame."""
        self.rows.append({'frame': np.int32(frame), 'person': np.int32(person)})
        for key, value in arrays.items():
            if 'vertices' not in key:
                self.rows[-1][key] = value
                continue
            if key not in self.files:
                self.files[key] = RowFile(self.folder / f'{key}.tmp', value.shape)
            self.files[key].append(value)

    def column(self, key):
        """(N, ...) array of one key over all rows."""
        return np.stack([row[key] for row in self.rows])

    def write(self, path, extra):
        """Write the npz, with further arrays {name: array}."""
        columns = {key: self.column(key) for key in self.rows[0]}
        vertices = {key: rows.array() for key, rows in self.files.items()}
        write_npz(path, columns | extra | vertices)

    def __exit__(self, *exception):
        for rows in self.files.values():
            rows.close()


class OverlayVideos(contextlib.AbstractContextManager):
    """`rendered_mesh_<kind>.mp4` for each of `kinds`. size (height, width), odd ones are filled up to even ones, the
    only ones that the codec has. UserError if OpenCV cannot write them, or has not written all frames."""

    def __init__(self, folder, kinds, fps, size):
        opencv_path(folder)
        self.paths, self.count, self.border = {kind: folder / f'rendered_mesh_{kind}.mp4' for kind in kinds}, 0, (
            0, size[0] % 2, 0, size[1] % 2)
        code, even = cv2.VideoWriter.fourcc(*'mp4v'), (size[1] + size[1] % 2, size[0] + size[0] % 2)
        self.writers = {kind: cv2.VideoWriter(str(path), code, fps, even) for kind, path in self.paths.items()}
        if not all(writer.isOpened() for writer in self.writers.values()):
            raise UserError('this OpenCV cannot write mp4 videos: pip install opencv-python-headless')

    def add(self, image, people, numbers, camera, faces):
        """Draw the people of one frame (H, W, 3) RGB, each in the colour of its number."""
        colors = [vis.person_color(number) for number in numbers]
        for kind, writer in self.writers.items():
            meshes = [getattr(person, f'{kind}_cam') for person in people]
            drawn = vis.draw_meshes(image, meshes, faces, camera.focal, camera.princpt, colors)
            drawn = cv2.copyMakeBorder(drawn, *self.border, cv2.BORDER_REPLICATE)
            writer.write(cv2.cvtColor(drawn, cv2.COLOR_RGB2BGR))
        self.count += 1

    def __exit__(self, kind, *exception):
        for writer in self.writers.values():
            writer.release()
        for path in self.paths.values() if kind is None else ():
            written = int(cv2.VideoCapture(str(path)).get(cv2.CAP_PROP_FRAME_COUNT))
            if written != self.count:  # OpenCV itself says nothing
                raise UserError(f'{path.name}: {max(written, 0)} of its {self.count} frames could be written; is the '
                                'disk full?')
