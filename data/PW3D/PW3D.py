"""3DPW: people outdoors; the annotation is a male or female SMPL body in camera metres, without joints of its own."""
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from data.files import is_there
from data.mesh_dataset import MeshDataset
from data.records import CocoFile
from data.sample import Fit, Sample


class PW3D(MeshDataset):
    mesh_target_at_test = True
    stem = '3DPW'  # of the annotation files
    suspect = 'data/3DPW_*.json'
    kept = ('protocol', 'genders')
    rootnet: tuple[str, str, float] | None = ('rootnet_output/bbox_root_pw3d_output.json', 'ann_id', 1.)

    def make_samples(self) -> Any:
        """As MeshDataset. UserError now, and not after hours, for a body model that is missing."""
        samples = super().make_samples()
        for gender in self.genders:
            self.body(gender)
        return samples

    def load(self) -> Iterator[Sample]:
        self.genders: dict[str, bool] = {}
        self.protocol = f'{self.stem} {self.split}, {self.cfg.pw3d_gender} gender'
        images = self.folder / 'data' / 'imageFiles'
        if not is_there(images) and is_there(self.folder / 'imageFiles'):
            images = self.folder / 'imageFiles'
        file = self.folder / 'data' / f'{self.stem}_{self.split}.json'
        for image, person in CocoFile(file, 'people and their SMPL bodies').pairs():
            camera = image.part('cam_param').camera()
            size = image.image_size()
            bbox, depth = self.boxes.get(person['id'], person.box(), size, camera, where=person)
            if bbox is None:
                continue
            param = person.part('smpl_param')
            gender = 'neutral'
            if self.cfg.pw3d_gender == 'annotated':
                gender = param['gender']
            self.genders[gender] = True
            shape = param.array('shape', (10,), (300,))[:10]
            fit = Fit(param.array('pose', (72,)), shape, param.array('trans', (3,)), gender)
            path = str(Path(images, image['sequence'], image.image_file()))
            yield Sample(path, size, bbox, camera, root_depth=depth, ann_id=person['id'], fit=fit)
