"""MuCo-3DHP: several people composed into one image, joints in camera millimetres, SMPL fits in camera metres."""
from collections.abc import Iterator

import numpy as np

from data.joint_set import MUCO
from data.mesh_dataset import MeshDataset
from data.records import CocoFile, Record, read_record
from data.sample import Sample


class MuCo(MeshDataset):
    joint_set = MUCO
    fit_check = '3d'
    splits = ('train',)
    suspect = 'MuCo-3DHP.json'

    def load(self) -> Iterator[Sample]:
        records = CocoFile(self.folder / 'data' / 'MuCo-3DHP.json', 'images, cameras and joints')
        nearest: dict[int, tuple[float, Record, Record, np.ndarray]] = {}
        for image, person in records.pairs():
            joint_cam = person.array('keypoints_cam', (21, 3)) / 1000
            depth = joint_cam[MUCO.root_idx, 2]
            if not depth > 0:  # damaged, and NaN is no nearer than anything
                depth = np.inf
            # people farther away are hidden in part by the nearest one
            if image['id'] not in nearest or depth < nearest[image['id']][0]:
                nearest[image['id']] = (depth, image, person, joint_cam)
        fits = read_record(self.folder / 'data' / 'smpl_param.json', 'the SMPL fits')
        for _, image, person, joint_cam in nearest.values():
            size = image.image_size()
            bbox, _ = self.boxes.get(person['id'], person.box(), size, where=person.place)
            if bbox is None:
                continue
            param = fits.find(str(person['id']), 'annotation')
            fit = None
            if param is not None:
                fit = param.fit(24)
            yield Sample(
                f'{self.folder}/data/{image.image_file()}', size, bbox, image.camera('f', 'c'),
                joint_img=person.array('keypoints_img', (21, 2), (21, 3))[:, :2], joint_cam=joint_cam,
                ann_id=person['id'], fit=fit)
