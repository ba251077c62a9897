"""What the page asks for: people of an uploaded picture, and the files of the last few results."""
import dataclasses
import functools
import secrets
import threading
from collections import OrderedDict

import numpy as np

from common.demo.inputs.boxes import check_box
from common.demo.inputs.images import decode_image, encode_jpeg
from common.demo.outputs.record import Origin, header, json_text, person_entry
from common.demo.web.image_size import picture_size
from common.errors import UserError
from common.utils import vis

MAX_PIXELS = 40_000_000
MAX_PEOPLE = 20
RESULTS_KEPT = 8


class Results:
    """Runs the network, one request after the other, and keeps the last results in memory.

    Args:
        predictor: Predictor. settings: `run.Settings`, for camera and joints.
    """

    def __init__(self, predictor, settings):
        self.predictor, self.settings = predictor, settings
        self.network, self.table = threading.Lock(), threading.Lock()
        self.kept = OrderedDict()  # id -> {file name: its bytes, or a function that gives its text}, oldest first

    def predict(self, data, name, boxes, focal=None):
        """A picture's bytes, its name, boxes of its people (lists of four numbers, xywh pixels), focal length (pixels)
        or None -> the answer for the page. UserError for whatever is wrong with them."""
        size = picture_size(data)
        if size is None:
            raise UserError('the page sends JPEG and PNG pictures only, and this is neither')
        if size[0] * size[1] > MAX_PIXELS:
            raise UserError(f'{size[0]} x {size[1]} pixels are too many: {MAX_PIXELS // 10**6} million at most')
        if not 0 < len(boxes) <= MAX_PEOPLE:
            raise UserError('draw a box around each person first' if not boxes else f'{MAX_PEOPLE} boxes at most')
        image = decode_image(data, name)
        height, width = image.shape[:2]
        boxes = [check_box(box, width, height, 'xywh', f'box {i + 1}') for i, box in enumerate(boxes)]
        settings = self.settings if focal is None else dataclasses.replace(self.settings, focal=[focal])
        with self.network:
            predictions = self.predictor.predict(image, boxes)
        camera, people = settings.place(predictions, (height, width))
        return self._keep(image, name, camera, people)

    def _keep(self, image, name, camera, people):
        """Make the files of a result, keep them, and describe them for the page."""
        joints, faces, human_model = self.settings.joints, self.predictor.faces, self.predictor.human_model
        kinds = ['lixel'] if people[0].param_cam is None else ['lixel', 'param']
        origin = Origin(name, image.shape[:2], self.settings.snapshot, kinds[-1], human_model.name, human_model.gender,
                        human_model.is_hand, self.predictor.left_hand)
        files = {'result.json': json_text(origin, camera, joints, people).encode(),
                 'faces.bin': np.ascontiguousarray(faces, '<u4').tobytes()}
        for kind in kinds:
            meshes = [getattr(person, f'{kind}_cam') for person in people]
            drawn = vis.draw_meshes(image, meshes, faces, camera.focal, camera.princpt)
            files[f'rendered_mesh_{kind}.jpg'] = encode_jpeg(drawn)
            for number, mesh in enumerate(meshes):
                files[f'mesh_{kind}_{number}.bin'] = np.ascontiguousarray(mesh, '<f4').tobytes()
                files[f'mesh_{kind}_{number}.obj'] = functools.partial(vis.obj_text, mesh, faces)
        key = secrets.token_urlsafe(12)
        with self.table:
            self.kept[key] = files
            while len(self.kept) > RESULTS_KEPT:
                self.kept.popitem(last=False)
        colors = ['#' + bytes(vis.person_color(i)).hex() for i in range(len(people))]
        record = header(origin, camera, joints)
        record['people'] = [person_entry(i, person, joints, camera) for i, person in enumerate(people)]
        return {'folder': f'/results/{key}/', 'files': list(files), 'kinds': kinds, 'colors': colors, 'record': record}

    def file(self, key, name):
        """The bytes of one file of a result, or None."""
        with self.table:
            content = self.kept.get(key, {}).get(name)
        return content().encode() if callable(content) else content
