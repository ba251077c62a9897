"""MuCo-3DHP: several people composed into one picture, joints in camera millimetres, SMPL fits in camera metres."""
import numpy as np

from data.files import read_coco, read_records
from data.joint_set import MUCO
from data.mesh_dataset import MeshDataset
from data.sample import Camera, Fit, Sample


class MuCo(MeshDataset):
    joint_set = MUCO
    fit_check = '3d'
    splits = ('train',)
    suspect = 'MuCo-3DHP.json'

    def load(self):
        file = self.folder / 'data' / 'MuCo-3DHP.json'
        nearest = {}
        for image, person in read_coco(file, 'pictures, cameras and joints', ('f', 'c'),
                                       ('keypoints_cam', 'keypoints_img')):
            depth = person['keypoints_cam'][MUCO.root_idx][2]
            # people farther away are hidden in part by the nearest one
            if image['id'] not in nearest or depth < nearest[image['id']][0]:
                nearest[image['id']] = depth, image, person
        fits = read_records(self.folder / 'data' / 'smpl_param.json', dict, 'the SMPL fits')
        for _, image, person in nearest.values():
            shape, path = (image['height'], image['width']), f'{self.folder}/data/{image["file_name"]}'
            bbox, _ = self.boxes.get(person['id'], person['bbox'], shape, where=path)
            if bbox is None:
                continue
            fit = fits.get(str(person['id']))
            yield Sample(
                path, shape, bbox, Camera(*(np.float32(image[key]) for key in 'fc')),
                joint_img=np.float32(person['keypoints_img'])[:, :2],
                joint_cam=np.float32(person['keypoints_cam']) / 1000, ann_id=person['id'],
                fit=None if fit is None else Fit(*(np.float32(fit[key]) for key in ('pose', 'shape', 'trans'))))
