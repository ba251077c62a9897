"""What the page asks for: people of an uploaded image, and the files of the last few results."""
import dataclasses
import functools
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from common.demo.inputs.boxes import RawBox, check_box
from common.demo.inputs.images import decode_image
from common.demo.outputs.image_files import draw_people, encode_jpeg
from common.demo.outputs.record import Record, compact
from common.demo.people.prediction import Person
from common.demo.pipeline import Pipeline
from common.errors import UserError
from common.utils.overlay import obj_text, person_color

MAX_PIXELS = 40_000_000
MAX_PEOPLE = 20
RESULTS_KEPT = 8

Files = dict[str, bytes | Callable[[], str]]  # file name -> its content, or a function that gives its text


class Results:
    """Runs the pipeline, one request after the other, and keeps the last results in memory."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.running = threading.Lock()
        self.changing = threading.Lock()
        self.kept: OrderedDict[str, Files] = OrderedDict()  # by id, oldest first

    def predict(self, data: bytes, name: str, boxes: list[RawBox],
                focal: float | None = None) -> dict[str, Any]:
        """Find the meshes of an image's people.

        Args:
            data: the content of an image file.
            name: its name.
            boxes: xywh of each person, pixels.
            focal: focal length, pixels, or None.
        Returns:
            The answer for the page.
        Raises:
            UserError: one of the arguments is wrong.
        """
        if not boxes:
            raise UserError('draw a box around each person first')
        if len(boxes) > MAX_PEOPLE:
            raise UserError(f'{MAX_PEOPLE} boxes at most')
        placer = self.pipeline.placer
        if focal is not None:
            placer = dataclasses.replace(placer, focal=[focal])
        with self.running:  # decoding too: it can take much memory
            photo = decode_image(data, name)
            image = photo.image
            height, width = image.shape[:2]
            if height * width > MAX_PIXELS:
                raise UserError(f'{width} x {height} pixels are too many: {MAX_PIXELS // 10**6} million '
                                'at most')
            checked = [check_box(box, width, height, 'xywh', f'box {number}')
                       for number, box in enumerate(boxes, 1)]
            predictions = self.pipeline.predictor.predict(image, checked)
        camera, people = placer(predictions, (height, width), photo.film_focal)
        return self._keep(image, people, self.pipeline.record(name, (height, width), camera))

    def _keep(self, image: np.ndarray, people: list[Person], record: Record) -> dict[str, Any]:
        """Make the files of a result, keep them, and describe them for the page."""
        kinds = record.info.kinds
        content = record.content(people)
        files: Files = {'result.json': compact(content).encode(),
                        'faces.bin': np.ascontiguousarray(record.faces, '<u4').tobytes()}
        for kind in kinds:
            overlay = draw_people(image, people, kind, record)
            files[f'rendered_mesh_{kind}.jpg'] = encode_jpeg(overlay)
            for number, person in enumerate(people):
                mesh = person.meshes[kind]
                files[f'mesh_{kind}_{number}.bin'] = np.ascontiguousarray(mesh, '<f4').tobytes()
                files[f'mesh_{kind}_{number}.obj'] = functools.partial(obj_text, mesh, record.faces, record.axes)
        key = secrets.token_urlsafe(12)
        with self.changing:
            self.kept[key] = files
            while len(self.kept) > RESULTS_KEPT:
                self.kept.popitem(last=False)
        colors = ['#' + bytes(person_color(number)).hex() for number in range(len(people))]
        return {'folder': f'/results/{key}/', 'files': list(files), 'kinds': kinds, 'colors': colors,
                'record': content}

    def file(self, key: str, name: str) -> bytes | None:
        """The content of one file of a result, or None."""
        with self.changing:
            content = self.kept.get(key, {}).get(name)
        if content is None or isinstance(content, bytes):
            return content
        return content().encode()
