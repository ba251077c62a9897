"""What a loader hands over: one annotated person or hand, in pixels and metres, before any augmentation."""
from dataclasses import dataclass, field

import numpy as np

from common.utils.transforms import Camera


@dataclass
class Fit:
    """Parameters of a body model fitted to the image (K = 24 joints for bodies, 16 for hands).

    In camera space, unless R and t are given: then `pose` and `trans` live in a world that the camera sees as R x + t.
    """
    pose: np.ndarray              # (K*3,) axis-angle, radians, the root joint first
    shape: np.ndarray             # (10,) shape coefficients
    trans: np.ndarray             # (3,) metres
    gender: str = 'neutral'       # neutral, male or female: which body model the parameters belong to
    R: np.ndarray | None = None   # (3, 3) world-to-camera rotation
    t: np.ndarray | None = None   # (3,) metres, world-to-camera translation


@dataclass
class Sample:
    """One person or hand. Whatever a data set does not have is None, and the losses that need it are then zero.

    J is the number of joints of the data set's own joint set (`MeshDataset.joint_set`).
    """
    img_path: str
    img_shape: tuple[int, int]               # (height, width) of the image, pixels
    bbox: np.ndarray                         # (4,) x, y, width, height in pixels, as process_bbox returns it
    camera: Camera | None = None             # needed for evaluation, and for fits without a camera of their own
    joint_img: np.ndarray | None = None      # (J, 2) pixels
    joint_cam: np.ndarray | None = None      # (J, 3) metres, camera space (x right, y down, z forward)
    joint_valid: np.ndarray | None = None    # (J, 1) 1 where the joint is annotated; None: all of them are
    fit: Fit | None = None
    fit_camera: Camera | None = None         # the camera the fit was made with, where it is not `camera`
    root_depth: float | None = None          # metres, distance of the root joint along z; for testing
    ann_id: int | str | None = None          # names the sample in messages and result files
    extra: dict = field(default_factory=dict)  # whatever the loader itself needs again when it loads or evaluates
