"""MS COCO: people in the wild, 2-D keypoints, SMPL fits that carry a camera of their own. No test numbers."""
import numpy as np

from data.files import read_coco_lists, read_records
from data.joint_set import COCO, add_pelvis
from data.mesh_dataset import MeshDataset
from data.sample import Camera, Fit, Sample

FOCAL = 1500.  # pixels: nothing is known about the cameras


class MSCOCO(MeshDataset):
    joint_set = COCO
    has_3d = False
    fit_check = '2d'
    suspect = 'coco_smplifyx_train.json'
    rootnet = ('rootnet_output/bbox_root_coco_output.json', 'image_id', 1e-3)

    def load(self):
        year = 'train2017' if self.training else 'val2017'
        by_id, people = read_coco_lists(
            self.folder / 'annotations' / f'person_keypoints_{year}.json', 'people and their keypoints',
            annotation_keys=('iscrowd', 'num_keypoints', 'keypoints'))
        people = [(by_id[person['image_id']], person) for person in people]
        images = f'{self.folder}/images/{year}'
        if self.training:
            return self._annotated(people, images)
        return self._detected(by_id, images) if self.boxes.rootnet else self._undetected(people, images)

    def _annotated(self, people, images):
        fits = read_records(self.folder / 'annotations' / 'coco_smplifyx_train.json', dict, 'the SMPL fits')
        for image, person in filter(_is_usable, people):
            path, size = f'{images}/{image["file_name"]}', (image['height'], image['width'])
            bbox = self.boxes.annotated(person['bbox'], size, path)
            if bbox is None:
                continue
            joint_img, joint_valid = with_pelvis(np.float32(person['keypoints']).reshape(-1, 3))
            fit = fits.get(str(person['id']))
            camera = None if fit is None else Camera(*(np.float32(fit['cam_param'][k]) for k in ('focal', 'princpt')))
            fit = None if fit is None else Fit(*(np.float32(fit['smpl_param'][k]) for k in ('pose', 'shape', 'trans')))
            yield Sample(
                path, size, bbox, joint_img=joint_img, joint_valid=joint_valid, ann_id=person['id'], fit=fit,
                fit_camera=camera)

    def _detected(self, by_id, images):
        """The people in RootNet's file, which may list several per picture, annotated or not."""
        for number, (image_id, bbox, depth) in enumerate(self.boxes.rootnet.entries):
            image = by_id.get(image_id)
            if image is None:
                self.check.skip('picture of the RootNet file is not in the annotations', f'image {image_id}')
            else:
                yield Sample(f'{images}/{image["file_name"]}', (image['height'], image['width']), bbox,
                             _camera(image), root_depth=depth, ann_id=f'{image_id}_{number}')

    def _undetected(self, people, images):
        """The annotated people, at depths estimated from their boxes."""
        for image, person in filter(_is_usable, people):
            path, size, camera = f'{images}/{image["file_name"]}', (image['height'], image['width']), _camera(image)
            bbox, depth = self.boxes.for_test(person['id'], person['bbox'], size, camera, where=path)
            if bbox is not None:
                yield Sample(path, size, bbox, camera, root_depth=depth, ann_id=person['id'],
                             extra={'image_id': image['id']})


def _is_usable(pair):
    return not pair[1]['iscrowd'] and pair[1]['num_keypoints'] > 0


def _camera(image):
    return Camera(np.float32([FOCAL, FOCAL]), np.float32([image['width'] / 2, image['height'] / 2]))


def with_pelvis(keypoints):
    """COCO's (17, 3) x, y, visibility -> (18, 2) pixels and (18, 1) validity, the pelvis in the middle of the hips."""
    joint_img, joint_valid = keypoints[:, :2], np.float32(keypoints[:, 2:] > 0)
    hips = [COCO.index('L_Hip'), COCO.index('R_Hip')]
    return (add_pelvis(joint_img), np.concatenate([joint_valid, joint_valid[hips].prod(0, keepdims=True)]))
