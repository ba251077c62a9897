"""Helpers for the tests of the data sets."""
import dataclasses
import shutil

import cv2
import numpy as np

from common.human_model.body_model import HumanModel
from common.human_model.model_spec import BodyArrays
from common.human_model.smpl import LAYOUT, SPEC
from common.utils.joint_set import SMPL
from common.utils.transforms import Camera
from main.config import Config
from tests.golden.make_bodies import SMPL_JOINTS

HANDS = ['trainset_3d=[FreiHAND]', 'trainset_2d=[]', 'testset=FreiHAND']


def data_config(bodies, data_dir, *overrides, output_dir='/nowhere'):
    """The default Config on stand-in bodies and tiny data sets, which are parsed every time."""
    cfg = Config()
    cfg.override([f'human_model_dir={bodies}', f'data_dir={data_dir}', f'output_dir={output_dir}', 'use_index=false',
                  *overrides])
    return cfg


def copy_set(source, target, *names):
    """Copy data sets from one data_dir to another, to be changed there. Returns the new data_dir."""
    for name in names:
        shutil.copytree(source / name, target / name)
    return target


def symmetric_body(seed=0):
    """A HumanModel in SMPL's layout, the same on both sides of the plane x = 0, pose-dependent shape included; and
    (V,) the vertex that each vertex becomes in the mirror."""
    rng, half, order = np.random.default_rng(seed), 3445, SMPL.flip_order()[:24]
    mirror = np.array([-1., 1, 1])
    joints = np.array(SMPL_JOINTS)
    owner = rng.integers(24, size=half)
    vertices = joints[owner] + rng.normal(size=(half, 3)) * .08
    weights = np.eye(24)[owner] * .8 + np.eye(24)[rng.integers(24, size=half)] * .2
    shapedirs = rng.normal(size=(half, 3, 10)) * .01
    posedirs = rng.normal(size=(half, 3, 23, 3, 3)) * .002
    regressor = np.zeros((24, 2 * half))
    for j in range(24):
        near = np.argsort(np.linalg.norm(vertices - joints[j], axis=1))[:20]
        regressor[j, near] += .5 / 20
        regressor[order[j], near + half] += .5 / 20
        far = np.argsort(np.linalg.norm(vertices * mirror - joints[j], axis=1))[:20]
        regressor[j, far + half] += .5 / 20
        regressor[order[j], far] += .5 / 20
    signs = mirror[:, None] * mirror
    arrays = BodyArrays(
        v_template=np.concatenate([vertices, vertices * mirror]), faces=np.zeros((SPEC.face_num, 3), np.int64),
        shapedirs=np.concatenate([shapedirs, shapedirs * mirror[:, None]]),
        posedirs=np.concatenate([posedirs, posedirs[:, :, order[1:] - 1] * mirror[:, None, None, None] * signs]
                                ).reshape(2 * half * 3, -1).T,
        joint_regressor=regressor, weights=np.concatenate([weights, weights[:, order]]),
        parents=np.array(SPEC.parents), pose_mean=np.zeros(72))
    arrays = BodyArrays(**{k: np.ascontiguousarray(v, np.float32 if v.dtype == np.float64 else v.dtype)
                           for k, v in vars(arrays).items()})
    return HumanModel('smpl', 'neutral', arrays, LAYOUT, {}), np.roll(np.arange(2 * half), half)


def image_with_dot(shape, pixel):
    """(H, W, 3) uint8: black, with a soft white dot at `pixel` (x, y)."""
    y, x = np.mgrid[:shape[0], :shape[1]]
    dot = 255 * np.exp(-((x - pixel[0]) ** 2 + (y - pixel[1]) ** 2) / (2 * 2. ** 2))
    return np.repeat(dot[..., None], 3, 2).round().astype(np.uint8)


def dot_position(patch):
    """Where the dot is in a patch (3, H, W): (x, y) in pixels, the centre of brightness."""
    y, x = np.mgrid[:patch.shape[1], :patch.shape[2]]
    weight = patch.sum(0)
    return np.array([(weight * x).sum(), (weight * y).sum()]) / weight.sum()


def in_patch(coord_img, cfg):
    """Img space (..., 3) -> x, y in pixels of the patch."""
    height, width = cfg.input_img_shape
    return coord_img[..., :2] / (cfg.output_hm_shape[2], cfg.output_hm_shape[1]) * (width, height)


def rotation(rotvec):
    return cv2.Rodrigues(np.asarray(rotvec, np.float64))[0]


def pinhole(focal=200., center=(99.5, 101.5)):
    return Camera(np.float32([focal, focal]), np.float32(center))


def bits(value):
    """Everything a sample or an item holds, in a form that is equal only for the same values of the same types."""
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {name: bits(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [bits(part) for part in value]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return type(value), repr(value)
