"""MS COCO: people in the wild, 2-D keypoints, SMPL fits that carry a camera of their own. No test numbers."""
from collections.abc import Iterator

import numpy as np

from data.joint_set import COCO, add_pelvis
from data.mesh_dataset import MeshDataset
from data.records import CocoFile, Record, read_record
from data.rootnet import RootNetFile
from data.sample import Camera, Sample

FOCAL = 1500.  # pixels: nothing is known about the cameras


class MSCOCO(MeshDataset):
    joint_set = COCO
    has_3d = False
    fit_check = '2d'
    suspect = 'coco_smplifyx_train.json'
    rootnet = ('rootnet_output/bbox_root_coco_output.json', 'image_id', 1e-3)

    def load(self) -> Iterator[Sample]:
        year = 'train2017' if self.training else 'val2017'
        people = CocoFile(self.folder / 'annotations' / f'person_keypoints_{year}.json', 'people and their keypoints')
        images = f'{self.folder}/images/{year}'
        if self.training:
            return self._annotated(people, images)
        if self.boxes.rootnet:
            return self._detected(people, images, self.boxes.rootnet)
        return self._undetected(people, images)

    def _annotated(self, people: CocoFile, images: str) -> Iterator[Sample]:
        fits = read_record(self.folder / 'annotations' / 'coco_smplifyx_train.json', 'the SMPL fits')
        for image, person in people.pairs():
            if not is_usable(person):
                continue
            size = image.image_size()
            bbox = self.boxes.annotated(person.box(), size, person)
            if bbox is None:
                continue
            joint_img, joint_valid = with_pelvis(person.array('keypoints', (17, 3)))
            entry = fits.find(str(person['id']), 'annotation')
            fit = None
            camera = None
            if entry is not None:
                fit = entry.part('smpl_param').fit(24)
                camera = entry.part('cam_param').camera()
            yield Sample(
                f'{images}/{image.image_file()}', size, bbox, joint_img=joint_img, joint_valid=joint_valid,
                ann_id=person['id'], fit=fit, fit_camera=camera)

    def _detected(self, people: CocoFile, images: str, rootnet: RootNetFile) -> Iterator[Sample]:
        """The people in RootNet's file, which may list several per image, annotated or not."""
        for number, (image_id, bbox, depth) in enumerate(rootnet.entries):
            image = people.image(image_id)
            if image is None:
                self.check.skip('image of the RootNet file is not in the annotations', f'image {image_id}')
                continue
            size = image.image_size()
            yield Sample(f'{images}/{image.image_file()}', size, bbox, assumed_camera(size), root_depth=depth,
                         ann_id=f'{image_id}_{number}')

    def _undetected(self, people: CocoFile, images: str) -> Iterator[Sample]:
        """The annotated people, at depths estimated from their boxes."""
        for image, person in people.pairs():
            if not is_usable(person):
                continue
            size = image.image_size()
            camera = assumed_camera(size)
            bbox, depth = self.boxes.for_test(person['id'], person.box(), size, camera, where=person)
            if bbox is not None:
                yield Sample(f'{images}/{image.image_file()}', size, bbox, camera, root_depth=depth,
                             ann_id=person['id'], extra={'image_id': image['id']})


def is_usable(person: Record) -> bool:
    """Whether an annotation is one person with keypoints. Lists of one's own often leave out what says so."""
    if person.get('iscrowd', 0):
        return False
    if 'num_keypoints' in person:
        return person['num_keypoints'] > 0
    return 'keypoints' not in person or bool((person.array('keypoints', (17, 3))[:, 2] > 0).any())


def assumed_camera(img_shape: tuple[int, int]) -> Camera:
    """The camera that images (height, width) are tested with."""
    height, width = img_shape
    princpt = np.array([width / 2, height / 2], np.float32)
    return Camera(np.array([FOCAL, FOCAL], np.float32), princpt)


def with_pelvis(keypoints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """COCO's (17, 3) x, y, visibility -> (18, 2) pixels and (18, 1) validity, the pelvis in the middle of the hips."""
    joint_img = keypoints[:, :2]
    joint_valid = (keypoints[:, 2:] > 0).astype(np.float32)
    hips = [COCO.index('L_Hip'), COCO.index('R_Hip')]
    pelvis_valid = joint_valid[hips].prod(0, keepdims=True)
    return add_pelvis(joint_img), np.concatenate([joint_valid, pelvis_valid])
