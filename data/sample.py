"""What a loader hands over: one annotated person or hand, in pixels and metres, before any augmentation."""
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from common.utils.transforms import Camera

ARRAYS = ('bbox', 'joint_img', 'joint_cam', 'joint_valid', 'focal', 'princpt', 'R', 't', 'fit_focal', 'fit_princpt',
          'fit_camera_R', 'fit_camera_t', 'pose', 'shape', 'trans', 'fit_R', 'fit_t')  # of a sample


@dataclass
class Fit:
    """Parameters of a body model fitted to the image (K = 24 joints for bodies, 16 for hands).

    In camera space, unless R and t are given: then `pose` and `trans` live in a world that the camera sees as R x + t.

    Attributes:
        pose: (K*3,) axis-angle, radians, the root joint first.
        shape: (10,) shape coefficients.
        trans: (3,) metres.
        gender: neutral, male or female: which body model the parameters belong to.
        R: (3, 3) world-to-camera rotation, or None.
        t: (3,) metres, world-to-camera translation, or None.
    """
    pose: np.ndarray
    shape: np.ndarray
    trans: np.ndarray
    gender: str = 'neutral'
    R: np.ndarray | None = None
    t: np.ndarray | None = None


@dataclass
class Sample:
    """One person or hand. What a data set does not have is None, and the losses that need it are then zero.

    J is the number of joints of the data set's own joint set (`MeshDataset.joint_set`).

    Attributes:
        img_path: The image file.
        img_shape: (height, width) of the image, pixels.
        bbox: (4,) x, y, width, height in pixels, as process_bbox returns it.
        camera: Needed for evaluation, and for fits without a camera of their own.
        joint_img: (J, 2) pixels.
        joint_cam: (J, 3) metres, camera space (x right, y down, z forward).
        joint_valid: (J, 1) 1 where the joint is annotated; None: all of them are.
        fit: Body model parameters.
        fit_camera: The camera the fit was made with, where it is not `camera`.
        root_depth: Metres, distance of the root joint along z; for testing.
        ann_id: Names the sample in messages and result files.
        extra: Whatever the loader itself needs again when it loads or evaluates.
    """
    img_path: str
    img_shape: tuple[int, int]
    bbox: np.ndarray
    camera: Camera | None = None
    joint_img: np.ndarray | None = None
    joint_cam: np.ndarray | None = None
    joint_valid: np.ndarray | None = None
    fit: Fit | None = None
    fit_camera: Camera | None = None
    root_depth: float | None = None
    ann_id: int | str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def arrays_of(sample: Sample) -> list[np.ndarray | None]:
    """All arrays that a sample may have, in the order of ARRAYS; None for those that it has not."""
    arrays = [sample.bbox, sample.joint_img, sample.joint_cam, sample.joint_valid]
    for camera in (sample.camera, sample.fit_camera):
        if camera is None:
            arrays += [None] * 4
        else:
            arrays += [camera.focal, camera.princpt, camera.R, camera.t]
    fit = sample.fit
    if fit is None:
        return arrays + [None] * 5
    return [*arrays, fit.pose, fit.shape, fit.trans, fit.R, fit.t]
