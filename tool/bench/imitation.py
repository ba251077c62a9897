"""Imitations of data sets: one image with one person or hand in it, over and over. They need no files."""
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch

from common.files.images import write_image
from common.utils.joint_set import JointSet
from common.utils.preprocessing import process_bbox
from common.utils.transforms import cam2pixel
from data.joint_set import COCO, HUMAN36M, add_pelvis
from data.mesh_dataset import MeshDataset
from data.sample import Camera, Fit, Sample
from main.config import Config

BODY_DISTANCE = 5.  # of a person from the camera, metres
HAND_DISTANCE = .6
LENGTH = 64  # samples of an imitation


@dataclass(frozen=True)
class Kind:
    """A data set to imitate.

    Attributes:
        title: Its name and the size of its images.
        shape: Height and width of its images, pixels.
        joint_set: Its joints; None: it annotates none.
        has_3d: Whether they are 3-D.
        fit_check: How fits are compared with them: see MeshDataset.
    """
    title: str
    shape: tuple[int, int]
    joint_set: JointSet | None
    has_3d: bool = True
    fit_check: str | None = None


BODIES = (Kind('Human3.6M-like 1000x1000', (1000, 1000), HUMAN36M, True, '3d'),
          Kind('COCO-like 640x480', (480, 640), COCO, False, '2d'))
HANDS = (Kind('FreiHAND-like 224x224', (224, 224), None),)


class Imitation(MeshDataset):
    """A data set annotated as a Kind says. A test has the fitted mesh as its truth."""
    fit_models = ('smpl', 'mano', 'open_body', 'open_hand')
    mesh_target_at_test = True

    def __init__(self, split: str, cfg: Config, kind: Kind, path: Path) -> None:
        """path: the image file."""
        self.kind = kind
        self.path = path
        self.joint_set = kind.joint_set
        self.has_3d = kind.has_3d
        self.fit_check = kind.fit_check
        super().__init__(split, cfg)

    def load(self) -> Iterator[Sample]:
        """Yield the same person LENGTH times, as large as fits into the image."""
        body = self.human_model
        height, width = self.kind.shape
        rng = np.random.default_rng(0)
        pose = rng.normal(scale=.2, size=body.kinematic_joint_num * 3).astype(np.float32)
        pose[:3] = (math.pi, 0, 0)  # body models have y up, cameras y down
        depth = HAND_DISTANCE if body.is_hand else BODY_DISTANCE
        trans = np.array([0, 0, depth], np.float32)
        with torch.inference_mode():
            mesh, _ = body(torch.from_numpy(pose)[None], torch.zeros(1, 10))
        vertices = mesh[0].numpy() + trans
        low = vertices[:, :2].min(0)
        high = vertices[:, :2].max(0)
        focal = .7 * height * depth / (high - low).max()
        princpt = np.array([width, height]) / 2 - (low + high) / 2 * focal / depth
        camera = Camera(np.array([focal, focal], np.float32), princpt.astype(np.float32))
        pixels = cam2pixel(vertices, camera.focal, camera.princpt)[:, :2]
        corner = pixels.min(0)
        tight = np.concatenate([corner, pixels.max(0) - corner])
        box = process_bbox(tight, width, height, self.cfg.input_img_shape)
        assert box is not None  # the person is in the middle of the image
        joint_img, joint_cam = self.annotated_joints(vertices, camera)
        for i in range(LENGTH):
            yield Sample(str(self.path), self.kind.shape, box, camera, joint_img=joint_img, joint_cam=joint_cam,
                         fit=Fit(pose, np.zeros(10, np.float32), trans), root_depth=depth, ann_id=i,
                         extra={'number': i})

    def annotated_joints(self, vertices: np.ndarray, camera: Camera) -> tuple[np.ndarray | None, np.ndarray | None]:
        """joint_img (J, 2) pixels and joint_cam (J, 3) metres that a data set of this kind has for a mesh (V, 3)."""
        if self.joint_set is None:
            return None, None
        joints = self.body.regressor('h36m' if self.joint_set is HUMAN36M else 'coco') @ vertices
        if self.joint_set is COCO:
            joints = add_pelvis(joints)
        pixels = cam2pixel(joints, camera.focal, camera.princpt)[:, :2]
        return pixels, joints if self.has_3d else None


def write_photo(path: Path, shape: tuple[int, int], quality: int = 90) -> None:
    """Write a JPEG of `shape` (height, width) with about the detail of a photo."""
    height, width = shape
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    noise = rng.integers(-6, 7, smooth.shape)
    write_image(path, np.clip(smooth + noise, 0, 255).astype(np.uint8), quality)
