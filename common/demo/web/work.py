"""What the page asks for: the people of an image or of a short video, and where they are."""
import dataclasses
import functools
import json
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common.demo.inputs.boxes import RawBox, check_box
from common.demo.inputs.images import Photo, decode_image
from common.demo.outputs.figures import Figures
from common.demo.outputs.image_files import draw_people, encode_jpeg
from common.demo.outputs.record import Record, compact
from common.demo.people.placement import FOCAL_RANGE
from common.demo.people.placer import Placer
from common.demo.people.prediction import Person
from common.demo.pipeline import Pipeline
from common.demo.video_run import Wishes
from common.demo.web.clips import clip_files, clip_pipeline, open_clip
from common.demo.web.finder import Finder
from common.demo.web.results import Result, Results
from common.errors import UserError
from common.utils.overlay import obj_text, person_color

MAX_PIXELS = 40_000_000
MAX_PEOPLE = 20

Report = Callable[[dict[str, Any]], None]  # takes what the page shows of the progress


@dataclasses.dataclass
class Upload:
    """What the page says of an upload.

    Attributes:
        name: of the file.
        boxes: xywh of each person, pixels, as they came.
        focal: focal length, pixels, as it came; '' for the default.
        tab: the tab of the browser.
        every_frame: the boxes hold for every frame of a video; else people are followed from the first.
    """
    name: str = 'image'
    boxes: list[RawBox] = dataclasses.field(default_factory=list)
    focal: str = ''
    tab: str = ''
    every_frame: bool = False

    @property
    def stem(self) -> str:
        """The name without its ending, for a folder."""
        return Path(self.name).stem.strip('.') or 'image'


class Work:
    """Runs the pipeline, one request after the other.

    Args:
        pipeline: to run.
        finder: of people, or None where there is none (for hands).
    """

    def __init__(self, pipeline: Pipeline, finder: Finder | None = None) -> None:
        self.pipeline = pipeline
        self.finder = finder
        self.results = Results()
        self.word = 'hand' if pipeline.predictor.info.is_hand else 'person'
        self.running = threading.Lock()

    def about(self) -> dict[str, Any]:
        """What the page has to know before the first upload."""
        finder = None
        if self.finder is not None:
            finder = self.finder.about()
        return {'hands': self.pipeline.predictor.info.is_hand, 'finder': finder, 'warnings': self.pipeline.warnings}

    def find(self, data: bytes, upload: Upload) -> list[list[float]]:
        """The boxes of the people of an image file, xywh, pixels. UserError: there is no detector, or nobody."""
        if self.finder is None:
            raise UserError('this network is for hands, which cannot be found: draw a box around each')
        self.finder.prepare()
        with self.running:
            boxes = self.finder(self._decode(data, upload.name).image)
        if not boxes:
            raise UserError('nobody found: draw a box around each person')
        return boxes[:MAX_PEOPLE]

    def image(self, data: bytes, upload: Upload) -> dict[str, Any]:
        """Find the meshes of an image's people.

        Args:
            data: the content of an image file.
            upload: what the page says of it.
        Returns:
            The answer for the page.
        Raises:
            UserError: one of the arguments is wrong.
        """
        placer = self._check(upload)
        with self.running:  # decoding too: it can take much memory
            photo = self._decode(data, upload.name)
            image = photo.image
            size = (image.shape[0], image.shape[1])
            predictions = self.pipeline.predictor.predict(image, self._boxes(upload, size))
        camera, people = placer(predictions, size, photo.film_focal)
        record = self.pipeline.record(upload.name, size, camera)
        files = self._image_files(image, people, record)
        figures = Figures(self.pipeline.predictor.human_model)
        for name, content in figures.of_image(people, record).items():
            files[name] = content()
        notes = [figures.note] if figures.note else []
        return self._answer(Result(upload.stem, files), upload, len(people), record.content(people), notes)

    def first_frame(self, data: bytes, upload: Upload) -> bytes:
        """The first frame of a video file, as a JPEG file. UserError: it cannot be read, or is too long."""
        with tempfile.TemporaryDirectory() as folder:  # at once: one frame is little work
            video = open_clip(Path(folder), upload.name, data)
            for _, image in video:
                return encode_jpeg(image)
        raise UserError(f'{upload.name}: its first frame cannot be read')

    def video(self, data: bytes, upload: Upload, report: Report) -> dict[str, Any]:
        """Find the motions of a video's people; `report` may raise to end this. The rest is as for `image`."""
        placer = self._check(upload)
        folder = tempfile.TemporaryDirectory(prefix='i2l-meshnet-')
        try:
            report({'step': 'waiting'})
            with self.running:
                video = open_clip(Path(folder.name), upload.name, data, report)
                boxes = self._boxes(upload, video.size)
                pipeline = clip_pipeline(self.pipeline, placer, upload.name)
                wishes = Wishes(every_frame=upload.every_frame)
                files, notes = clip_files(pipeline, video, boxes, Path(folder.name), wishes)
            result = Result(upload.stem, dict(files), folder)
            record = json.loads(files['result.json'].read_text(encoding='utf-8'))
            people = {person['id'] for frame in record.pop('frames') for person in frame['people']}
            del record['times']
            for number, frames in record.pop('frames_lost').items():
                notes.append(f'{self.word} {number} was lost in {len(frames)} frames, the first is {frames[0]}: if '
                             'they stay in their box, choose "same boxes in every frame"')
            return self._answer(result, upload, len(people), record, notes)
        except BaseException:
            folder.cleanup()
            raise

    def _check(self, upload: Upload) -> Placer:
        """The placer for an upload's camera."""
        if not upload.boxes:
            raise UserError(f'draw a box around each {self.word} first')
        if len(upload.boxes) > MAX_PEOPLE:
            raise UserError(f'{MAX_PEOPLE} boxes at most')
        if not upload.focal:
            return self.pipeline.placer
        try:
            focal = float(upload.focal)
        except ValueError as error:
            raise UserError(f'the focal length is not a number: {upload.focal}') from error
        if not FOCAL_RANGE[0] <= focal <= FOCAL_RANGE[1]:
            raise UserError('the focal length must be a positive number of pixels, from 1 to 1000000')
        return dataclasses.replace(self.pipeline.placer, focal=[focal])

    def _boxes(self, upload: Upload, size: tuple[int, int]) -> list[np.ndarray]:
        """The checked boxes (4,) of an upload of a size (height, width), pixels."""
        boxes = []
        for number, box in enumerate(upload.boxes):
            boxes.append(check_box(box, size[1], size[0], 'xywh', f'{self.word} {number}'))
        return boxes

    def _decode(self, data: bytes, name: str) -> Photo:
        photo = decode_image(data, name)
        height, width = photo.image.shape[:2]
        if height * width > MAX_PIXELS:
            raise UserError(f'{width} x {height} pixels are too many: {MAX_PIXELS // 10**6} million at most')
        return photo

    def _image_files(self, image: np.ndarray, people: list[Person], record: Record) -> dict[str, Any]:
        """The files of an image but its figures. OBJ texts are made when they are asked for."""
        files: dict[str, Any] = {'result.json': compact(record.content(people)).encode(),
                                 'faces.bin': np.ascontiguousarray(record.faces, '<u4').tobytes()}
        for kind in record.info.kinds:
            overlay = draw_people(image, people, kind, record)
            files[f'rendered_mesh_{kind}.jpg'] = encode_jpeg(overlay)
            for number, person in enumerate(people):
                mesh = person.meshes[kind]
                files[f'mesh_{kind}_{number}.bin'] = np.ascontiguousarray(mesh, '<f4').tobytes()
                files[f'mesh_{kind}_{number}.obj'] = functools.partial(_obj_content, mesh, record)
        return files

    def _answer(self, result: Result, upload: Upload, people: int, record: dict[str, Any],
                notes: list[str]) -> dict[str, Any]:
        colors = ['#' + bytes(person_color(number)).hex() for number in range(people)]
        kinds = self.pipeline.predictor.info.kinds
        folder = self.results.keep(upload.tab, result)
        return {'folder': folder, 'files': list(result.files), 'kinds': kinds, 'people': people, 'colors': colors,
                'record': record, 'notes': notes}


def _obj_content(mesh: np.ndarray, record: Record) -> bytes:
    return obj_text(mesh, record.faces, record.axes).encode()
