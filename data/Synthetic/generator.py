"""One synthetic sample from nothing but numbers: pose, shape, place, clothes, light and image."""
from dataclasses import dataclass

import numpy as np
import torch

from data.Synthetic.hand_pose import HandPose
from data.Synthetic.hand_props import HandProps
from data.Synthetic.pose import BodyPose, axis_angle
from data.Synthetic.scene import MARGIN, SOFT_LIGHT, STRONG_LIGHT, frame, image, place
from data.Synthetic.wardrobe import HandSkin, Wardrobe

SPLITS = {'train': 0, 'validation': 1, 'test': 2, 'gallery': 3}
# Raise these whenever the same index gives another sample: stored images are then made anew.
BODY_VERSION = 1
HAND_VERSION = 2

NUMBERS = ('pose', 'shape', 'trans', 'focal', 'princpt', 'bbox', 'joints')


@dataclass
class Rendering:
    """img (S, S, 3) uint8 RGB; joints (J, 3) metres, camera space, of the body model's joint set; the rest in
    float32: pose (K*3,) axis-angle, shape (10,), trans (3,) metres, focal (2,), princpt (2,), bbox (4,) xywh pixels.
    """
    img: np.ndarray
    pose: np.ndarray
    shape: np.ndarray
    trans: np.ndarray
    focal: np.ndarray
    princpt: np.ndarray
    bbox: np.ndarray
    joints: np.ndarray

    def numbers(self):
        """All but the image in one row (D,) float32, for `from_numbers`."""
        return np.concatenate([np.ravel(getattr(self, name)) for name in NUMBERS]).astype(np.float32)

    @classmethod
    def from_numbers(cls, img, numbers, human_model):
        """The Rendering of an image and its row of numbers."""
        ends = np.cumsum([human_model.kinematic_joint_num * 3, 10, 3, 2, 2, 4])
        *parts, joints = np.split(numbers, ends)
        return cls(img, *parts, joints.reshape(-1, 3))


class Generator:
    """Draws samples of one body model (a HumanModel): people in clothes, or right hands.

    size: side of the images, pixels. max_heading: largest angle between heading and camera, degrees.
    occlusion: share of the images in which something hides a part of the person. margin: image side / size of the
    person; the default leaves room for the crops of the augmentation.
    """

    def __init__(self, human_model, size=160, max_heading=75.0, occlusion=0.0, margin=MARGIN):
        self.human_model = human_model
        self.size, self.max_heading, self.occlusion, self.margin = size, max_heading, occlusion, margin
        self.faces = np.ascontiguousarray(human_model.face, np.int32)
        vertices, joints = self._body(np.zeros(human_model.kinematic_joint_num * 3), np.zeros(10))
        if human_model.is_hand:
            self.pose = HandPose(joints)
            self.clothes = HandSkin(vertices, joints, self.pose.palm)
            self.props = HandProps(self.faces, joints, self.pose.palm)
            self.light = STRONG_LIGHT
            self.version = HAND_VERSION
        else:
            self.pose = BodyPose(joints)
            self.clothes = Wardrobe(vertices, joints, human_model.weights.numpy(), self._eyes())
            self.props = None
            self.light = SOFT_LIGHT
            self.version = BODY_VERSION

    def __call__(self, split, index, seed):
        """The Rendering of sample `index` of a split: the same in every process, whatever was drawn before."""
        rng = np.random.default_rng([seed, SPLITS[split], index])
        rotations = self.pose.sample(rng)
        rotations[0], root = place(rng, rotations[0], self.pose.facing, self.max_heading, self.pose.distance)
        pose = axis_angle(rotations) - self.human_model.pose_mean.numpy()
        shape = np.clip(rng.normal(size=10), -2.5, 2.5).astype(np.float32)
        vertices, joints = self._body(pose, shape)
        trans = (root - joints[0]).astype(np.float32)
        vertices, joints = vertices + trans, joints + trans
        focal, princpt, bbox = (a.astype(np.float32) for a in frame(rng, vertices, self.size, self.margin))
        hidden = bbox if rng.random() < self.occlusion else None
        mesh = vertices, self.faces, self.clothes.dress(rng)
        if self.props:
            mesh = self.props(rng, vertices, joints, mesh[2], rotations[0])
        img = image(rng, *mesh, focal, princpt, self.size, self.light, hidden)
        joints = self.human_model.fit_joints(*(torch.from_numpy(a)[None] for a in (vertices, joints)))[0].numpy()
        return Rendering(img, pose, shape, trans, focal, princpt, bbox, joints)

    def _body(self, pose, shape):
        """Vertices (V, 3) and kinematic joints (K, 3), metres."""
        with torch.inference_mode():
            out = self.human_model(*(torch.from_numpy(np.float32(a))[None] for a in (pose, shape)))
        return tuple(a[0].numpy() for a in out)

    def _eyes(self):
        """Vertex indices of the eyes, where the joint set has them as single vertices."""
        names = self.human_model.joint_set.joints_name
        rows = [names.index(n) for n in ('L_Eye', 'R_Eye') if n in names]
        return [int(self.human_model.joint_regressor[r].argmax()) for r in rows]
