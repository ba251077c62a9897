"""Human3.6M: one person, motion capture joints in world millimetres, SMPL fits in world metres."""
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from common.utils.transforms import cam2pixel, world2cam
from data.joint_set import HUMAN36M
from data.mesh_dataset import MeshDataset
from data.records import CocoFile, Record, read_record
from data.sample import Camera, Sample

SUBJECTS: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {  # protocol -> (training, test)
    1: ((1, 5, 6, 7, 8, 9), (11,)),
    2: ((1, 5, 6, 7, 8), (9, 11)),
}


class Human36M(MeshDataset):
    joint_set = HUMAN36M
    fit_check = '3d'
    suspect = 'Human36M_subject*_camera.json (an early release had another convention for t)'
    rootnet = ('rootnet_output/bbox_root_human36m_output.json', 'image_id', 1e-3)

    def load(self) -> Iterator[Sample]:
        cfg = self.cfg
        subjects, test_subjects = SUBJECTS[cfg.h36m_protocol]
        every = cfg.h36m_train_every
        cameras = cfg.h36m_train_cameras
        if not self.training:
            subjects = test_subjects
            every = cfg.h36m_test_every
            cameras = cfg.h36m_test_cameras
        self.protocol = (f'protocol {cfg.h36m_protocol}, subjects {", ".join(map(str, subjects))}, every {every}th '
                         f'frame, cameras {", ".join(map(str, cameras)) or "all"}')
        for subject in subjects:
            yield from self._load_subject(subject, every, {int(camera) for camera in cameras})

    def _load_subject(self, subject: int, every: int, wanted_cameras: set[int]) -> Iterator[Sample]:
        stem = f'{self.folder}/annotations/Human36M_subject{subject}_'
        records = CocoFile(f'{stem}data.json', 'the list of images')
        camera_file = read_record(f'{stem}camera.json', 'the cameras')
        joints = read_record(f'{stem}joint_3d.json', 'the joints in the world')
        fits = None
        if self.training:
            fits = read_record(f'{stem}smpl_param.json', 'the SMPL fits')
        cameras = {}
        takes: dict[tuple[str, str], tuple[Record, Record | None]] = {}  # joints and fits of each take's frames
        for image, annotation in records.pairs():
            number = image['cam_idx']
            if image['frame_idx'] % every or (wanted_cameras and number not in wanted_cameras):
                continue
            if number not in cameras:
                cameras[number] = read_camera(camera_file.part(str(number), 'camera'))
            R, t, camera = cameras[number]
            take = (str(image['action_idx']), str(image['subaction_idx']))
            if take not in takes:
                takes[take] = joints_of(joints, *take), fits_of(fits, *take)
            frame = str(image['frame_idx'])
            take_joints, take_fits = takes[take]
            world_joints = take_joints.array(frame, (17, 3), kind='frame')
            joint_cam = world2cam(world_joints / 1000, R, t)
            size = image.image_size()
            bbox, depth = self.boxes.get(image['id'], annotation.box(), size, camera,
                                         float(joint_cam[HUMAN36M.root_idx, 2]), annotation)
            if bbox is None:
                continue
            fit = None
            if take_fits is not None:
                param = take_fits.find(frame, 'frame')
                if param is not None:
                    fit = replace(param.fit(24), R=R, t=t)
            yield Sample(
                f'{self.folder}/images/{image.image_file()}', size, bbox, camera,
                cam2pixel(joint_cam, camera.focal, camera.princpt)[:, :2], joint_cam, fit=fit, root_depth=depth,
                ann_id=annotation['id'], extra={'image_id': image['id']})


def read_camera(record: Record) -> tuple[np.ndarray, np.ndarray, Camera]:
    """World-to-camera rotation (3, 3) and translation (3,) metres, and the camera, which has them too."""
    R = record.array('R', (3, 3))
    t = record.array('t', (3,)) / 1000
    return R, t, replace(record.camera('f', 'c'), R=R, t=t)


def joints_of(joints: Record, action: str, subaction: str) -> Record:
    """The joints of a take: {frame: (17, 3)}."""
    return joints.part(action, 'action').part(subaction, 'sub-action')


def fits_of(fits: Record | None, action: str, subaction: str) -> Record | None:
    """The fits of a take: {frame: fit}; None where the file lacks the action or the sub-action."""
    if fits is not None:
        fits = fits.find(action, 'action')
    if fits is not None:
        fits = fits.find(subaction, 'sub-action')
    return fits
