"""3DPW: people outdoors; the annotation is a male or female SMPL body in camera metres, without joints of its own."""
from pathlib import Path

import numpy as np

from data.files import read_coco
from data.mesh_dataset import MeshDataset
from data.sample import Camera, Fit, Sample


class PW3D(MeshDataset):
    mesh_target_at_test = True
    stem = '3DPW'  # of the annotation files
    suspect = 'data/3DPW_*.json'
    rootnet = ('rootnet_output/bbox_root_pw3d_output.json', 'ann_id', 1.)

    def load(self):
        self.protocol = f'{self.stem} {self.split}, {self.cfg.pw3d_gender} gender'
        images = next((path for path in (self.folder / 'data' / 'imageFiles', self.folder / 'imageFiles')
                       if path.is_dir()), self.folder / 'data' / 'imageFiles')
        file = self.folder / 'data' / f'{self.stem}_{self.split}.json'
        records = read_coco(file, 'people and their SMPL bodies', ('sequence', 'cam_param'), ('smpl_param',))
        for image, person in records:
            camera = Camera(*(np.float32(image['cam_param'][key]) for key in ('focal', 'princpt')))
            param, shape = person['smpl_param'], (image['height'], image['width'])
            path = str(Path(images, image['sequence'], image['file_name']))
            bbox, depth = self.boxes.get(person['id'], person['bbox'], shape, camera, where=path)
            if bbox is None:
                continue
            gender = param['gender'] if self.cfg.pw3d_gender == 'annotated' else 'neutral'
            self.body(gender)  # a missing model is noticed now
            yield Sample(path, shape, bbox, camera, root_depth=depth, ann_id=person['id'],
                         fit=Fit(np.float32(param['pose']), np.float32(param['shape'])[:10],
                                 np.float32(param['trans']), gender))
