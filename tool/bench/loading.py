"""Loader: training samples per second, beside the time that decoding a picture takes."""
import itertools
import math
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch

from common.train.loader import EpochView, TrainBatches, make_loader
from common.utils.joint_set import JointSet
from common.utils.preprocessing import process_bbox
from common.utils.transforms import cam2pixel
from data import build_dataset
from data.joint_set import COCO, HUMAN36M, add_pelvis
from data.mesh_dataset import MeshDataset
from data.sample import Camera, Fit, Sample
from tool.bench.timing import Row, alternate

DISTANCE = {False: 5., True: .6}  # of the person, of the hand from the camera, metres
LENGTH = 64  # samples of the data sets made here


@dataclass(frozen=True)
class Kind:
    """A data set to imitate: name, size of its pictures (height, width), joints, whether they are 3-D, fit check."""
    title: str
    shape: tuple[int, int]
    joint_set: JointSet | None
    has_3d: bool = True
    fit_check: str | None = None


BODIES = (Kind('Human3.6M-like 1000x1000', (1000, 1000), HUMAN36M, True, '3d'),
          Kind('COCO-like 640x480', (480, 640), COCO, False, '2d'))
HANDS = (Kind('FreiHAND-like 224x224', (224, 224), None),)


class Pictures(MeshDataset):
    """One picture with one person or hand in it, annotated as a Kind says, over and over. Training only compares the
    joints where there is a body; a test has the fitted mesh as its truth."""
    fit_models = ('smpl', 'mano', 'open_body', 'open_hand')
    mesh_target_at_test = True

    def __init__(self, split, cfg, kind, path):
        self.kind, self.path = kind, path
        self.joint_set, self.has_3d, self.fit_check = kind.joint_set, kind.has_3d, kind.fit_check
        super().__init__(split, cfg)

    def load(self):
        body, (height, width) = self.human_model, self.kind.shape
        rng = np.random.default_rng(0)
        pose = rng.normal(scale=.2, size=body.kinematic_joint_num * 3).astype(np.float32)
        pose[:3] = math.pi, 0, 0  # body models have y up, cameras y down
        distance = np.float32([0, 0, DISTANCE[body.is_hand]])
        with torch.inference_mode():
            vertices, joints = body(torch.from_numpy(pose)[None], torch.zeros(1, 10))
            joints = body.fit_joints(vertices, joints)[0].numpy() + distance
        vertices = vertices[0].numpy() + distance
        focal = .7 * height * distance[2] / np.ptp(vertices[:, :2], axis=0).max()
        middle = (vertices[:, :2].min(0) + vertices[:, :2].max(0)) / 2
        camera = Camera(np.float32([focal, focal]), np.float32([width, height]) / 2 - middle * focal / distance[2])
        pixels = cam2pixel(vertices, camera.focal, camera.princpt)[:, :2]
        low, high = pixels.min(0), pixels.max(0)
        box = process_bbox(np.concatenate([low, high - low]), width, height, self.cfg.input_img_shape)
        annotated = self.annotated_joints(vertices, camera)
        for i in range(LENGTH):
            yield Sample(str(self.path), self.kind.shape, box, camera, **annotated, ann_id=i,
                         fit=Fit(pose, np.zeros(10, np.float32), distance), root_depth=float(distance[2]),
                         extra={'number': i})

    def annotated_joints(self, vertices, camera):
        """The joints that a data set of this kind annotates, as keywords of Sample."""
        if self.joint_set is None:
            return {}
        joints = self.regressor('h36m' if self.joint_set is HUMAN36M else 'coco') @ vertices
        if self.joint_set is COCO:
            joints = add_pelvis(joints)
        pixels = cam2pixel(joints, camera.focal, camera.princpt)[:, :2]
        return {'joint_img': pixels, 'joint_cam': joints if self.has_3d else None}


def write_picture(path, shape, quality=90):
    """Write a JPEG with about the detail of a photograph. shape: (height, width)."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (shape[0] // 16 + 2, shape[1] // 16 + 2, 3), dtype=np.uint8)
    img = cv2.resize(coarse, shape[::-1], interpolation=cv2.INTER_CUBIC)
    noise = rng.integers(-6, 7, img.shape)
    cv2.imwrite(str(path), np.clip(img + noise, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, quality])


@contextmanager
def one_thread():
    """One thread for OpenCV and PyTorch, as a loader process has."""
    threads, cv_threads = torch.get_num_threads(), cv2.getNumThreads()
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        cv2.setNumThreads(cv_threads)


def measure_loader(cfg, device, repeats):
    """[Row] of training samples per second in one process, and in all loader processes together."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, one_thread():
        for kind in HANDS if cfg.is_hand else BODIES:
            path = Path(folder) / f'{kind.shape[1]}x{kind.shape[0]}.jpg'
            write_picture(path, kind.shape)
            data = Pictures('train', cfg, kind, path)
            rows.append(one_process(kind.title, data, path, repeats))
        drawn = build_dataset('Synthetic', 'train', cfg)
        rows.append(one_process(f'Synthetic, drawn {cfg.synthetic_img_size}x{cfg.synthetic_img_size}', drawn, path,
                                repeats))
        if cfg.num_thread:
            rows.append(all_processes(cfg, data, repeats, one=rows[-2]))
    return rows


def one_process(title, data, path, repeats):
    index = itertools.count()
    seconds = alternate({'sample': lambda: data[next(index) % len(data)], 'imread': lambda: cv2.imread(str(path))},
                        repeats)
    sample, imread = seconds['sample'], seconds['imread']
    return Row(f'loader, {title}', 1 / sample, 'samples/s', f'cv2.imread, {path.stem}', 1 / imread, sample / imread,
               'x its time')


def all_processes(cfg, data, repeats, one):
    """Row of cfg.num_thread loader processes; `one`: the Row of one process."""
    batches = TrainBatches(len(data), min(cfg.train_batch_size, len(data)), seed=0)
    loader = make_loader(EpochView(data), batches, cfg.num_thread, False)
    rates = []
    for epoch in range(repeats + 1):  # the first one starts the processes
        batches.set_position(epoch)
        start = time.perf_counter()
        count = sum(len(inputs['img']) for inputs, _, _ in loader)
        rates.append(count / (time.perf_counter() - start))
    rate = float(np.median(rates[1:]))
    return Row(f'loader, num_thread={cfg.num_thread}', rate, 'samples/s', 'one process', one.value, rate / one.value,
               'x its speed')
