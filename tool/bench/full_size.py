"""Annotation files as large as the real ones, with noise in them, to measure how long opening a data set takes.

    python -m tool.bench.full_size FOLDER                  # MuCo, Human3.6M and MS COCO: 4 GB, some minutes
    python -m tool.bench.full_size FOLDER --sets MuCo --share 0.1

writes FOLDER/<set>/ in the layout of the published files, with a few images that all annotations share. The people are
the embedded body: train on them with body_model=open_body.
"""
import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
from tqdm import tqdm

from common.errors import UserError
from common.utils.transforms import cam2pixel
from data.joint_set import COCO, HUMAN36M, MUCO
from main.config import Config
from tool.bench.imitation import Imitation, Kind, write_photo

PHOTOS = 100  # image files of each set
MUCO_IMAGES = 200_000
MUCO_PEOPLE = 2  # in each image
H36M_SUBJECTS = (1, 5, 6, 7, 8)
H36M_TAKES = [(action, take) for action in range(2, 17) for take in (1, 2)]
H36M_FRAMES = 2_600  # of each take, seen by each camera
H36M_CAMERAS = (1, 2, 3, 4)
H36M_FIT_EVERY = 5  # frames
COCO_IMAGES = 118_000
COCO_PEOPLE = 262_000
COCO_USABLE = 150_000  # people with keypoints and a fit

encode = msgspec.json.Encoder().encode


@dataclass
class Person:
    """Somebody whose annotations are written again and again, each time with other noise.

    Attributes:
        kind: The data set, for the size of its images.
        bbox: (4,) xywh pixels.
        focal: (2,) pixels.
        princpt: (2,) pixels.
        joint_img: (J, 2) pixels.
        joint_cam: (J, 3) metres; (0, 3) where the set has none.
        fit: {name: (...) parameters}.
    """
    kind: Kind
    bbox: np.ndarray
    focal: np.ndarray
    princpt: np.ndarray
    joint_img: np.ndarray
    joint_cam: np.ndarray
    fit: dict[str, np.ndarray]
    rng: np.random.Generator

    def noisy(self, values: np.ndarray, scale: float = 1e-3) -> list[Any]:
        """The values as lists of numbers with noise."""
        return (values + self.rng.normal(scale=scale, size=values.shape)).tolist()

    def noisy_fit(self) -> dict[str, list[Any]]:
        """Parameters of the body with noise."""
        return {name: self.noisy(values) for name, values in self.fit.items()}

    def image(self, number: int, file_name: str) -> dict[str, Any]:
        """The fields of an image that all data sets have."""
        height, width = self.kind.shape
        return {'id': number, 'file_name': file_name, 'width': width, 'height': height}


def person_of(cfg: Config, kind: Kind, photo: Path) -> Person:
    """The person that the benchmark shows in the photo, an image of a kind."""
    sample = Imitation('train', cfg, kind, photo).samples[0]
    x, y, w, h = sample.bbox.astype(float)
    bbox = np.array([x + .1 * w, y + .1 * h, .8 * w, .8 * h])  # before it was enlarged
    joint_cam = np.zeros((0, 3))
    if sample.joint_cam is not None:
        joint_cam = sample.joint_cam
    fit = {'pose': sample.fit.pose, 'shape': sample.fit.shape, 'trans': sample.fit.trans}
    return Person(kind, bbox, sample.camera.focal, sample.camera.princpt, sample.joint_img, joint_cam, fit,
                  np.random.default_rng(0))


def write_items(file: IO[bytes], items: Iterable[bytes]) -> None:
    """Write JSON texts with commas between them."""
    for number, item in enumerate(items):
        if number:
            file.write(b', ')
        file.write(item)


def write_dict(path: Path, items: Iterable[tuple[object, object]]) -> None:
    """Write a dictionary to a JSON file, item by item."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, 'wb') as file:
        file.write(b'{')
        write_items(file, (encode(str(key)) + b': ' + encode(value) for key, value in items))
        file.write(b'}')


def write_coco(path: Path, images: Iterable[object], annotations: Iterable[object]) -> None:
    """Write a file in COCO's layout, record by record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, 'wb') as file:
        file.write(b'{"images": [')
        write_items(file, map(encode, images))
        file.write(b'], "annotations": [')
        write_items(file, map(encode, annotations))
        file.write(b']}')


def counted(count: float, title: str) -> Iterator[int]:
    """0, 1, ... with a progress bar."""
    yield from tqdm(range(int(count)), desc=title, unit_scale=True, mininterval=1, leave=False, disable=None)


def write_photos(folder: Path, name: str, shape: tuple[int, int]) -> Path:
    """Write PHOTOS images of a (height, width), whose `name` has a place for the number; returns the first."""
    first = folder / name.format(0)
    write_photo(first, shape)
    for number in range(1, PHOTOS):
        (folder / name.format(number)).write_bytes(first.read_bytes())
    return first


def write_muco(cfg: Config, folder: Path, share: float) -> None:
    """Write the files of MuCo-3DHP."""
    name = 'augmented_set/0001/0001{:06d}.jpg'
    photo = write_photos(folder / 'MuCo' / 'data', name, (1000, 1000))
    person = person_of(cfg, Kind('MuCo', (1000, 1000), HUMAN36M), photo)
    known = [name in HUMAN36M.joints_name for name in MUCO.joints_name]
    rows = [HUMAN36M.index(name) if is_known else 0 for name, is_known in zip(MUCO.joints_name, known, strict=True)]
    joint_cam = person.joint_cam[rows] * 1000
    joint_img = cam2pixel(joint_cam, person.focal, person.princpt)[:, :2]
    images = MUCO_IMAGES * share
    lens = {'f': person.focal.tolist(), 'c': person.princpt.tolist()}

    def annotation(number: int) -> dict[str, Any]:
        return {'id': number, 'image_id': number // MUCO_PEOPLE, 'bbox': person.noisy(person.bbox),
                'keypoints_cam': person.noisy(joint_cam), 'keypoints_img': person.noisy(joint_img)}

    write_coco(folder / 'MuCo' / 'data' / 'MuCo-3DHP.json',
               (person.image(number, name.format(number % PHOTOS)) | lens for number in counted(images, 'MuCo images')),
               map(annotation, counted(int(images) * MUCO_PEOPLE, 'MuCo people')))
    write_dict(folder / 'MuCo' / 'data' / 'smpl_param.json',
               ((number, person.noisy_fit()) for number in counted(int(images) * MUCO_PEOPLE, 'MuCo fits')))


def write_human36m(cfg: Config, folder: Path, share: float) -> None:
    """Write the files of Human3.6M: its world is the cameras' space."""
    name = 's_01_act_02_subact_01_ca_01/s_01_act_02_subact_01_ca_01_{:06d}.jpg'
    photo = write_photos(folder / 'Human36M' / 'images', name, (1000, 1000))
    person = person_of(cfg, Kind('Human3.6M', (1000, 1000), HUMAN36M), photo)
    frames = max(1, int(H36M_FRAMES * share))
    lens = {'R': np.eye(3).tolist(), 't': [0., 0., 0.], 'f': person.focal.tolist(), 'c': person.princpt.tolist()}
    count = len(H36M_TAKES) * frames * len(H36M_CAMERAS)

    def image(subject: int, number: int) -> dict[str, Any]:
        place, camera = divmod(number, len(H36M_CAMERAS))
        take, frame = divmod(place, frames)
        action, subaction = H36M_TAKES[take]
        return person.image(number, name.format(number % PHOTOS)) | {
            'subject': subject, 'action_name': 'Directions', 'action_idx': action, 'subaction_idx': subaction,
            'cam_idx': H36M_CAMERAS[camera], 'frame_idx': frame}

    def annotation(number: int) -> dict[str, Any]:
        return {'id': number, 'image_id': number, 'keypoints_vis': [True] * 17, 'bbox': person.noisy(person.bbox)}

    def takes(value: Callable[[], object], every: int) -> dict[str, Any]:
        actions: dict[str, Any] = {}
        for action, subaction in H36M_TAKES:
            of_frames = {str(frame): value() for frame in range(0, frames, every)}
            actions.setdefault(str(action), {})[str(subaction)] = of_frames
        return actions

    for subject in H36M_SUBJECTS:
        stem = folder / 'Human36M' / 'annotations' / f'Human36M_subject{subject}_'
        title = f'Human3.6M subject {subject}'
        write_coco(Path(f'{stem}data.json'), (image(subject, number) for number in counted(count, f'{title} images')),
                   map(annotation, counted(count, f'{title} boxes')))
        write_dict(Path(f'{stem}camera.json'), ((camera, lens) for camera in H36M_CAMERAS))
        write_dict(Path(f'{stem}joint_3d.json'), takes(lambda: person.noisy(person.joint_cam * 1000), 1).items())
        write_dict(Path(f'{stem}smpl_param.json'), takes(person.noisy_fit, H36M_FIT_EVERY).items())


def write_mscoco(cfg: Config, folder: Path, share: float) -> None:
    """Write the training files of MS COCO, outlines and people without keypoints included."""
    name = '{:012d}.jpg'
    photo = write_photos(folder / 'MSCOCO' / 'images' / 'train2017', name, (480, 640))
    person = person_of(cfg, Kind('MS COCO', (480, 640), COCO, False), photo)
    images = max(1, int(COCO_IMAGES * share))
    people = int(COCO_PEOPLE * share)
    usable = int(COCO_USABLE * share)
    keypoints = np.concatenate([person.joint_img[:17].round(), np.full((17, 1), 2)], 1).astype(int).ravel().tolist()
    camera = {'focal': person.focal.tolist(), 'princpt': person.princpt.tolist()}

    def annotation(number: int) -> dict[str, Any]:
        is_usable = number < usable
        outline = person.rng.uniform(0, 480, 40).round(2).tolist()
        return {'segmentation': [outline], 'num_keypoints': 17 * is_usable, 'area': 9000.5, 'iscrowd': 0,
                'keypoints': keypoints if is_usable else [0] * 51, 'image_id': number % images,
                'bbox': person.noisy(person.bbox), 'category_id': 1, 'id': number}

    annotations = folder / 'MSCOCO' / 'annotations'
    write_coco(annotations / 'person_keypoints_train2017.json',
               (person.image(number, name.format(number % PHOTOS)) for number in counted(images, 'MS COCO images')),
               map(annotation, counted(people, 'MS COCO people')))
    write_dict(annotations / 'coco_smplifyx_train.json',
               ((number, {'smpl_param': person.noisy_fit(), 'cam_param': camera})
                for number in counted(usable, 'MS COCO fits')))


WRITERS = {'MuCo': write_muco, 'Human36M': write_human36m, 'MSCOCO': write_mscoco}


def write_sets(folder: Path, names: Iterable[str], share: float) -> None:
    """Write the files of data sets, `share` (0..1) of the real ones' size. UserError: no such set."""
    cfg = Config()
    cfg.override(['body_model=open_body', 'use_index=false'])
    for name in names:
        if name not in WRITERS:
            raise UserError(f'no full-size files of "{name}": there are {", ".join(WRITERS)}')
        WRITERS[name](cfg, folder, share)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=Path)
    parser.add_argument('--sets', default=','.join(WRITERS), metavar='A,B', help='(default: %(default)s)')
    parser.add_argument('--share', type=float, default=1., help='of the real number of samples (default: 1)')
    args = parser.parse_args()
    write_sets(args.folder, args.sets.split(','), args.share)


if __name__ == '__main__':
    main()
