"""MuCo-3DHP: several people composed into one image, joints in camera millimetres, SMPL fits in camera metres."""
import math
from collections import deque
from collections.abc import Iterator

import numpy as np

from data.files import progress
from data.joint_set import MUCO
from data.mesh_dataset import MeshDataset
from data.records import CocoFile, read_record
from data.sample import Sample


class MuCo(MeshDataset):
    joint_set = MUCO
    fit_check = '3d'
    splits = ('train',)
    suspect = 'MuCo-3DHP.json'

    def load(self) -> Iterator[Sample]:
        samples = deque(self._people())  # so that the list is out of memory before the fits come in
        fits = read_record(self.folder / 'data' / 'smpl_param.json', 'the SMPL fits')
        while samples:
            sample = samples.popleft()
            param = fits.find(str(sample.ann_id), 'annotation')
            if param is not None:
                sample.fit = param.fit(24)
            yield sample

    def _people(self) -> Iterator[Sample]:
        """The nearest person of each image, who hides the others in part, without a fit."""
        records = CocoFile(self.folder / 'data' / 'MuCo-3DHP.json', 'images, cameras and joints')
        nearest: dict[object, tuple[float, int, np.ndarray]] = {}  # image -> depth, number and joints of a person
        for number in progress(range(len(records.annotations)), 'MuCo-3DHP.json'):
            person = records.annotation(number)
            joint_cam = person.array('keypoints_cam', (21, 3)) / 1000
            depth = float(joint_cam[MUCO.root_idx, 2])
            if not depth > 0:  # damaged, and NaN is no nearer than anything
                depth = math.inf
            image_id = person.identity('image_id')
            if image_id not in nearest or depth < nearest[image_id][0]:
                nearest[image_id] = (depth, number, joint_cam)
        for _, number, joint_cam in progress(list(nearest.values()), 'MuCo-3DHP.json, the nearest people'):
            image, person = records.pair(number)
            size = image.image_size()
            bbox, _ = self.boxes.get(person['id'], person.box(), size, where=person)
            if bbox is None:
                continue
            yield Sample(
                f'{self.folder}/data/{image.image_file()}', size, bbox, image.camera('f', 'c'),
                joint_img=person.array('keypoints_img', (21, 2), (21, 3))[:, :2], joint_cam=joint_cam,
                ann_id=person['id'])
