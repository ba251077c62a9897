"""The body fitted to an image, in the camera space of that image."""
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike

from common.human_model.body_model import HumanModel
from common.utils import transforms
from data.sample import Camera, Sample

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
    camera = sample.fit_camera or sample.camera
    assert fit is not None and camera is not None  # the load check masks fits without a camera
    model = body(fit.gender)
    pose = fit.pose
    if fit.R is not None:
        pose = transforms.rotate_pose(pose, fit.R)
    if flip:
        pose = transforms.flip_pose(pose, model.joint_set.flip_order()[:model.kinematic_joint_num])
    with torch.inference_mode():
        mesh, kinematic = model(_batch_of_one(pose), _batch_of_one(fit.shape))
        joints = model.fit_joints(mesh, kinematic)[0].numpy()
    root = kinematic[0, 0].numpy().astype(np.float64)
    trans = fit.trans
    if fit.R is not None:
        assert fit.t is not None  # both or neither: data/sample.py
        trans = transforms.world2cam_trans(trans, root, fit.R, fit.t)
    if flip:
        trans = trans + (transforms.flip_shift_x(root + trans, camera, sample.img_shape[1]), 0, 0)
    trans = trans.astype(np.float32)
    return PlacedFit(mesh[0].numpy() + trans, joints + trans, pose, camera)


def _batch_of_one(values: ArrayLike) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))[None]


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
