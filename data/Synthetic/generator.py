"""One synthetic sample from nothing but numbers: pose, shape, place, clothes, light and image."""
from dataclasses import dataclass

import numpy as np
import torch

from common.human_model.body_model import HumanModel
from data.Synthetic import SPLITS
from data.Synthetic.geometry import axis_angle
from data.Synthetic.hand_pose import HandPose
from data.Synthetic.hand_props import HandProps
from data.Synthetic.pose import BodyPose
from data.Synthetic.scene import MARGIN, SOFT_LIGHT, STRONG_LIGHT, frame, image, place
from data.Synthetic.wardrobe import HandSkin, Wardrobe

# Raise these whenever the same index gives another sample: stored images are then made anew.
BODY_VERSION = 1
HAND_VERSION = 2

NUMBERS = ('pose', 'shape', 'trans', 'focal', 'princpt', 'bbox', 'joints')


@dataclass
class Person:
    """All that is known about a drawn person or hand, float32.

    Attributes:
        pose: (K*3,) axis-angle, radians.
        shape: (10,) shape coefficients.
        trans: (3,) metres.
        focal: (2,) pixels.
        princpt: (2,) pixels.
        bbox: (4,) xywh, pixels.
        joints: (J, 3) metres, camera space, of the body model's joint set.
    """
    pose: np.ndarray
    shape: np.ndarray
    trans: np.ndarray
    focal: np.ndarray
    princpt: np.ndarray
    bbox: np.ndarray
    joints: np.ndarray

    def numbers(self) -> np.ndarray:
        """All in one row (D,) float32, for `from_numbers`."""
        return np.concatenate([np.ravel(getattr(self, name)) for name in NUMBERS]).astype(np.float32)

    @classmethod
    def from_numbers(cls, numbers: np.ndarray, human_model: HumanModel) -> 'Person':
        """The Person of a row of numbers (D,)."""
        ends = np.cumsum([human_model.kinematic_joint_num * 3, 10, 3, 2, 2, 4])
        pose, shape, trans, focal, princpt, bbox, joints = np.split(numbers, ends)
        return Person(pose, shape, trans, focal, princpt, bbox, joints.reshape(-1, 3))


@dataclass
class Rendering(Person):
    """A Person with an image, img (S, S, 3) uint8 RGB."""
    img: np.ndarray


class Generator:
    """Draws samples of one body model: people in clothes, or right hands.

    Args:
        human_model: The body model.
        size: Side of the images, pixels.
        max_heading: Largest angle between heading and camera, degrees.
        occlusion: Share of the images in which something hides a part of the person.
        margin: Image side / size of the person; the default leaves room for the crops of the augmentation.
    """
    pose: BodyPose | HandPose
    clothes: Wardrobe | HandSkin
    props: HandProps | None

    def __init__(self, human_model: HumanModel, size: int = 160, max_heading: float = 75.0, occlusion: float = 0.0,
                 margin: float = MARGIN) -> None:
        self.human_model = human_model
        self.size = size
        self.max_heading = max_heading
        self.occlusion = occlusion
        self.margin = margin
        self.faces = np.ascontiguousarray(human_model.face, np.int32)
        vertices, joints = self._body(np.zeros(human_model.kinematic_joint_num * 3), np.zeros(10))
        if human_model.is_hand:
            hand = HandPose(joints)
            self.pose = hand
            self.clothes = HandSkin(vertices, joints, hand.palm)
            self.props = HandProps(self.faces, joints, hand.palm)
            self.light = STRONG_LIGHT
            self.version = HAND_VERSION
        else:
            self.pose = BodyPose(joints)
            self.clothes = Wardrobe(vertices, joints, human_model.weights.numpy(), self._eyes())
            self.props = None
            self.light = SOFT_LIGHT
            self.version = BODY_VERSION

    def __call__(self, split: str, index: int, seed: int) -> Rendering:
        """Sample `index` of a split: the same in every process, whatever was drawn before."""
        rng = np.random.default_rng([seed, SPLITS[split], index])
        rotations = self.pose.sample(rng)
        rotations[0], root = place(rng, rotations[0], self.pose.facing, self.max_heading, self.pose.distance)
        pose = axis_angle(rotations) - self.human_model.pose_mean.numpy()
        shape = np.clip(rng.normal(size=10), -2.5, 2.5).astype(np.float32)
        vertices, joints = self._body(pose, shape)
        trans = (root - joints[0]).astype(np.float32)
        vertices = vertices + trans
        joints = joints + trans
        focal, princpt, bbox = frame(rng, vertices, self.size, self.margin)
        hidden = None
        if rng.random() < self.occlusion:
            hidden = bbox
        mesh = (vertices, self.faces, self.clothes.dress(rng))
        if self.props:
            mesh = self.props(rng, vertices, joints, mesh[2], rotations[0])
        img = image(rng, mesh, focal, princpt, self.size, self.light, hidden)
        all_joints = self.human_model.fit_joints(_batch_of_one(vertices), _batch_of_one(joints))[0].numpy()
        return Rendering(pose, shape, trans, focal, princpt, bbox, all_joints, img)

    def _body(self, pose: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (V, 3) and kinematic joints (K, 3), metres."""
        with torch.inference_mode():
            vertices, joints = self.human_model(_batch_of_one(pose), _batch_of_one(shape))
        return vertices[0].numpy(), joints[0].numpy()

    def _eyes(self) -> list[int]:
        """Vertex indices of the eyes, where the joint set has them as single vertices."""
        names = self.human_model.joint_set.joints_name
        rows = [names.index(name) for name in ('L_Eye', 'R_Eye') if name in names]
        return [int(self.human_model.joint_regressor[row].argmax()) for row in rows]


def _batch_of_one(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))[None]
