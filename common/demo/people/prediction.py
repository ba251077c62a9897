"""What is known of each person: the network's answer, and its place in camera space."""
from dataclasses import dataclass, field

import numpy as np


@dataclass
class BodyParams:
    """The parametric body of one person, from the param stage. V vertices, K kinematic joints."""
    pose: np.ndarray  # (K * 3,) axis-angle, radians
    betas: np.ndarray  # (10,)
    mesh_cam: np.ndarray  # (V, 3) metres relative to the root joint; mirrored back for a left hand
    root: np.ndarray  # (3,) metres: root joint of the body model's mesh without translation


@dataclass
class Prediction:
    """The network's answer for one box. V vertices."""
    bbox: np.ndarray  # (4,) xywh of the person, pixels
    crop_bbox: np.ndarray  # (4,) xywh of the enlarged box that the network saw, pixels
    mesh_img: np.ndarray  # (V, 3) lixel mesh: x, y in pixels, depth in metres relative to the root
    body: BodyParams | None = None  # None in the lixel stage
    mirrored: bool = False  # a left hand, of which the network saw the mirror image
    # (J,) of the network's joints, 0..1, see `common.nets.lixel.confidence`
    confidence: np.ndarray = field(default_factory=lambda: np.ones(1, np.float32))

    @property
    def mean_confidence(self) -> float:
        """Of all joints, 0..1."""
        return float(self.confidence.mean())

    @property
    def mirror(self) -> np.ndarray:
        """(3,) factors of x, y, z between the network's camera space and the image's."""
        return np.array([-1 if self.mirrored else 1, 1, 1], np.float32)


@dataclass
class Camera:
    """A pinhole camera at the origin."""
    focal: np.ndarray  # (2,) pixels
    princpt: np.ndarray  # (2,) pixels
    focal_source: str  # where the focal length comes from: begins with 'given', 'EXIF' or 'default'


@dataclass
class Person:
    """A person in camera space. V vertices."""
    prediction: Prediction
    root_depth: float  # of the root joint, metres
    depth_source: str  # begins with 'given', 'fit of the parametric mesh' or 'box area'
    lixel_cam: np.ndarray  # (V, 3) metres
    param_cam: np.ndarray | None = None  # (V, 3) metres; None in the lixel stage
    trans: np.ndarray | None = None  # (3,) metres: body model + trans = param_cam, times `mirror`

    @property
    def meshes(self) -> dict[str, np.ndarray]:
        """The (V, 3) meshes by kind: 'lixel', and 'param' in the param stage."""
        if self.param_cam is None:
            return {'lixel': self.lixel_cam}
        return {'lixel': self.lixel_cam, 'param': self.param_cam}
