"""The body fitted to an image, in the camera space of that image."""
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike

from common.human_model.body_model import HumanModel
from common.human_model.one_body import one_body
from common.utils import transforms
from data.sample import Camera, Fit, Sample

BATCH = 32  # samples for which the body model runs at once
Bodies = Callable[[str], HumanModel]  # gender -> the body model


@dataclass
class PlacedFit:
    """A fit in the camera space of its (mirrored) image.

    Attributes:
        vertices: (V, 3) metres.
        joints: (J, 3) metres, of the body model's joint set.
        pose: (K*3,) axis-angle, radians.
        camera: The camera that it was fitted with.
    """
    vertices: np.ndarray
    joints: np.ndarray
    pose: np.ndarray
    camera: Camera


def place_fit(sample: Sample, body: Bodies, flip: bool = False) -> PlacedFit:
    """Run the body model of a sample's fit and place it in camera space.

    The steps, in this order: the camera's rotation joins the root's; the pose is flipped; the body model; translation;
    the shift that completes the flip.

    Args:
        sample: With a fit and a camera.
        body: gender -> HumanModel.
        flip: Whether to place it in the mirrored image.
    """
    fit = sample.fit
    assert fit is not None
    model = body(fit.gender)
    pose = _pose_in_camera(fit, model, flip)
    with torch.inference_mode():
        mesh, kinematic = one_body(model)(pose, fit.shape)
        joints = model.fit_joints(mesh[None], kinematic[None])[0].numpy()
    return _placed(sample, pose, mesh.numpy(), joints, kinematic[0].numpy(), flip)


def place_fits(samples: Sequence[Sample], body: Bodies) -> list[PlacedFit]:
    """The same for many samples: the body model runs on a batch of them, which takes a third of the time.

    Rounding may differ from place_fit's in the last digits.
    """
    by_gender: dict[str, list[int]] = defaultdict(list)
    for number, sample in enumerate(samples):
        assert sample.fit is not None
        by_gender[sample.fit.gender].append(number)
    placed: dict[int, PlacedFit] = {}
    for gender, numbers in by_gender.items():
        for start in range(0, len(numbers), BATCH):
            batch = numbers[start:start + BATCH]
            fits = _place_batch([samples[number] for number in batch], body(gender))
            placed.update(zip(batch, fits, strict=True))
    return [placed[number] for number in range(len(samples))]


def _place_batch(samples: Sequence[Sample], model: HumanModel) -> list[PlacedFit]:
    poses = []
    shapes = []
    for sample in samples:
        assert sample.fit is not None
        poses.append(_pose_in_camera(sample.fit, model))
        shapes.append(sample.fit.shape)
    with torch.inference_mode():
        meshes, kinematic = model(_batch(poses), _batch(shapes))
        joints = model.fit_joints(meshes, kinematic)
    rows = zip(samples, poses, meshes.numpy(), joints.numpy(), kinematic[:, 0].numpy(), strict=True)
    return [_placed(*row) for row in rows]


def _pose_in_camera(fit: Fit, model: HumanModel, flip: bool = False) -> np.ndarray:
    """The (K*3,) pose of a fit in the camera space of its (mirrored) image."""
    pose = fit.pose
    if fit.R is not None:
        pose = transforms.rotate_pose(pose, fit.R)
    if flip:
        pose = transforms.flip_pose(pose, model.joint_set.flip_order()[:model.kinematic_joint_num])
    return pose


def _placed(sample: Sample, pose: np.ndarray, mesh: np.ndarray, joints: np.ndarray, root: np.ndarray,
            flip: bool = False) -> PlacedFit:
    """Move what the body model gave, mesh (V, 3), joints (J, 3) and root joint (3,), to its place."""
    fit = sample.fit
    camera = sample.fit_camera or sample.camera
    assert fit is not None and camera is not None  # the load check masks fits without a camera
    root = root.astype(np.float64)
    trans = fit.trans
    if fit.R is not None:
        assert fit.t is not None  # both or neither: data/sample.py
        trans = transforms.world2cam_trans(trans, root, fit.R, fit.t)
    if flip:
        trans = trans + (transforms.flip_shift_x(root + trans, camera, sample.img_shape[1]), 0, 0)
    trans = trans.astype(np.float32)
    return PlacedFit(mesh + trans, joints + trans, pose, camera)


def _batch(rows: Sequence[ArrayLike]) -> torch.Tensor:
    return torch.from_numpy(np.stack([np.asarray(row, np.float32) for row in rows]))


def is_plausible(vertices: np.ndarray, camera: Camera, img_shape: tuple[int, int],
                 bbox_3d_size: float) -> bool:
    """Whether a mesh can be the person in the image.

    It is finite, in front of the camera, between a tenth of and one and a half times `bbox_3d_size` metres large, and
    its box is seen within the image.

    Args:
        vertices: (V, 3) metres, camera space.
        camera: The camera.
        img_shape: (height, width), pixels.
        bbox_3d_size: Metres.
    """
    # a row per axis: their extremes are found ten times faster
    x, y, z = np.ascontiguousarray(vertices.T)
    extent = max(axis.max() - axis.min() for axis in (x, y, z))
    if not (np.isfinite(extent) and z.min() > 0 and 0.1 * bbox_3d_size <= extent <= 1.5 * bbox_3d_size):
        return False
    for axis, focal, princpt, size in zip((x, y), camera.focal, camera.princpt, img_shape[::-1], strict=True):
        pixels = axis / z * focal + princpt
        if pixels.max() < 0 or pixels.min() > size - 1:
            return False
    return True
