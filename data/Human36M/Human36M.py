"""Human3.6M: one person, motion capture joints in world millimetres, SMPL fits in world metres."""
from functools import partial

import numpy as np

from common.utils.transforms import cam2pixel, world2cam
from data.files import read_coco, read_records
from data.joint_set import HUMAN36M
from data.mesh_dataset import MeshDataset
from data.sample import Camera, Fit, Sample

SUBJECTS = {  # protocol -> (training, test)
    1: ((1, 5, 6, 7, 8, 9), (11,)),
    2: ((1, 5, 6, 7, 8), (9, 11)),
}
IMAGE_KEYS = ('subject', 'action_idx', 'subaction_idx', 'cam_idx', 'frame_idx')
array = partial(np.asarray, dtype=np.float32)


class Human36M(MeshDataset):
    joint_set = HUMAN36M
    fit_check = '3d'
    suspect = 'Human36M_subject*_camera.json (an early release had another convention for t)'
    rootnet = ('rootnet_output/bbox_root_human36m_output.json', 'image_id', 1e-3)

    def load(self):
        cfg = self.cfg
        subjects = SUBJECTS[cfg.h36m_protocol][0 if self.training else 1]
        every, cameras = (cfg.h36m_train_every, cfg.h36m_train_cameras) if self.training else (
            cfg.h36m_test_every, cfg.h36m_test_cameras)
        self.protocol = (f'protocol {cfg.h36m_protocol}, subjects {", ".join(map(str, subjects))}, every {every}th '
                         f'frame, cameras {", ".join(map(str, cameras)) or "all"}')
        for subject in subjects:
            yield from self._load_subject(subject, every, {int(camera) for camera in cameras})

    def _load_subject(self, subject, every, wanted_cameras):
        stem = f'{self.folder}/annotations/Human36M_subject{subject}_'
        records = read_coco(f'{stem}data.json', 'the list of pictures', IMAGE_KEYS)
        cameras = {int(number): {key: array(value) for key, value in camera.items()}
                   for number, camera in read_records(f'{stem}camera.json', dict, 'the cameras').items()}
        joints = read_records(f'{stem}joint_3d.json', dict, 'the joints in the world')
        fits = read_records(f'{stem}smpl_param.json', dict, 'the SMPL fits') if self.training else {}
        for image, annotation in records:
            if image['frame_idx'] % every or (wanted_cameras and image['cam_idx'] not in wanted_cameras):
                continue
            camera = cameras[image['cam_idx']]
            R, t, lens = camera['R'], camera['t'] / 1000, Camera(camera['f'], camera['c'])
            joint_cam = world2cam(array(_nested(joints, image)) / 1000, R, t)
            root_depth = float(joint_cam[HUMAN36M.root_idx, 2])
            shape, path = (image['height'], image['width']), f'{self.folder}/images/{image["file_name"]}'
            bbox, depth = self.boxes.get(image['id'], annotation['bbox'], shape, lens, root_depth, path)
            if bbox is None:
                continue
            fit = _nested(fits, image)
            yield Sample(
                path, shape, bbox, lens, cam2pixel(joint_cam, lens.focal, lens.princpt)[:, :2], joint_cam,
                fit=None if fit is None else Fit(*(array(fit[key]) for key in ('pose', 'shape', 'trans')), R=R, t=t),
                root_depth=depth, ann_id=annotation['id'], extra={'image_id': image['id']})


def _nested(tree, image):
    """The entry of a picture's action, sub-action and frame; None where the file lacks one of them."""
    for key in ('action_idx', 'subaction_idx', 'frame_idx'):
        tree = tree.get(str(image[key])) if tree else None
    return tree
