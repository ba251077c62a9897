"""Training targets of one sample: pixels, metres and body parameters to what the losses compare.

The order, for the joints and for the fitted body alike: camera space -> flip -> pixels -> crop -> img space.
"""
from dataclasses import dataclass

import numpy as np
import torch

from common.utils import transforms
from data.codec import LixelCodec
from data.joint_set import JointSet, convert_joints
from data.sample import Sample

MAX_BETA = 3.  # shape coefficients beyond this are failures of the fitting


@dataclass(frozen=True)
class FitCheck:
    """How far a fit may be from the annotated joints, and how its joints are computed.

    regressor: (R, V) float32, one row per joint of `joint_set`. kind: '3d', mean distance in metres after the means
    are aligned, or '2d', mean distance of the valid joints in lixels. limit: the largest distance of a good fit.
    published_pelvis: '2d' as in the published training, where the product of the hips' depths (metres) stands for the
    depth of the fit's pelvis. It is then seen near the principal point, and exact fits of people far from it are
    rejected; the published model was trained on what that leaves. False: the pelvis is in the middle of the hips.
    """
    regressor: np.ndarray
    joint_set: JointSet
    kind: str
    limit: float
    published_pelvis: bool = False

    def joints(self, vertices: np.ndarray) -> np.ndarray:
        """The joints (R, 3) of a fitted mesh (V, 3) in camera space, metres."""
        joints = self.regressor @ vertices
        if self.published_pelvis:
            hips = [self.joint_set.index('L_Hip'), self.joint_set.index('R_Hip')]
            joints[self.joint_set.root_idx, 2] = joints[hips, 2].prod()
        return joints


@dataclass(frozen=True)
class TargetRules:
    """What build_targets needs to know about a data set and the network.

    body: gender -> HumanModel. joint_set: of the sample's joints. has_3d: the set has 3-D joints. zero_large_betas:
    shapes with a coefficient beyond MAX_BETA become a zero target. fit_check: None for fits that are the annotation.
    """
    body: object
    codec: LixelCodec
    joint_set: JointSet | None
    has_3d: bool = True
    zero_large_betas: bool = True
    fit_check: FitCheck | None = None


def build_targets(sample, aug, img2bb_trans, rules):
    """(targets, meta_info) of one sample, all float32 arrays.

    sample: Sample. aug: AugParams. img2bb_trans: (2, 3) affine from the (mirrored) image to the crop. J joints and V
    vertices of the body model; lixels on 0..output_hm_shape, metres relative to the root joint in camera space.

    targets: orig_joint_img (J, 3), fit_joint_img (J, 3), fit_mesh_img (V, 3) lixels; orig_joint_cam (J, 3),
    fit_joint_cam (J, 3) metres; pose_param (K*3,) radians; shape_param (10,).
    meta_info: orig_joint_valid, orig_joint_trunc, fit_joint_trunc (J, 1), fit_mesh_trunc (V, 1): 1 where annotated,
    and within the crop; is_valid_fit, is_3D: 0 or 1. Parts that the sample lacks are zero, masks included.
    """
    targets, meta = _orig_targets(sample, aug, img2bb_trans, rules)
    fit_targets, fit_meta = _fit_targets(sample, aug, img2bb_trans, rules)
    targets.update(fit_targets)
    lacks_depth = sample.joint_img is not None and sample.joint_cam is None
    meta.update(fit_meta, is_3D=rules.has_3d and not lacks_depth)
    return ({k: np.asarray(v, np.float32) for k, v in targets.items()},
            {k: np.asarray(v, np.float32) for k, v in meta.items()})


def joints_in_image(sample, joint_set, flip):
    """Joints of a sample, or of its mirror image: (J, 2) pixels, (J, 3) metres in camera space or None, and the (J, 1)
    validity. In the mirror image left and right change places and the camera's x axis points the other way."""
    img, cam, valid = sample.joint_img, sample.joint_cam, sample.joint_valid
    if valid is None:
        valid = np.ones((joint_set.joint_num, 1), np.float32)
    if img is None:
        known = np.where(valid > 0, cam, 1)  # what stands for an unknown joint may have depth 0
        img = transforms.cam2pixel(known, sample.camera.focal, sample.camera.princpt)[:, :2]
    if flip:
        order = joint_set.flip_order()
        img, valid = img[order] * (-1, 1) + (sample.img_shape[1] - 1, 0), valid[order]
        cam = None if cam is None else cam[order] * (-1, 1, 1)
    return img, cam, valid


def has_joints(sample):
    """Whether a sample has joints whose pixels are known."""
    return sample.joint_img is not None or (sample.joint_cam is not None and sample.camera is not None)


def _orig_targets(sample, aug, img2bb_trans, rules):
    """Targets from the joints that the data set annotates, renamed to the joints of the body model."""
    model_set, codec = rules.body('neutral').joint_set, rules.codec
    joint_num = model_set.joint_num
    targets = {'orig_joint_img': np.zeros((joint_num, 3)), 'orig_joint_cam': np.zeros((joint_num, 3))}
    meta = {'orig_joint_valid': np.zeros((joint_num, 1)), 'orig_joint_trunc': np.zeros((joint_num, 1))}
    if not has_joints(sample):
        return targets, meta
    img, cam, valid = joints_in_image(sample, rules.joint_set, aug.flip)
    root_depth = 0. if cam is None else cam[rules.joint_set.root_idx, 2]
    depth = img[:, :1] * 0 if cam is None else cam[:, 2:]
    coord = codec.encode(np.concatenate([img, depth], 1), root_depth, img2bb_trans)
    if cam is None:
        coord[:, 2] = 0
    else:
        relative = (cam - cam[rules.joint_set.root_idx]) @ transforms.z_rotation(-aug.rot).T
        targets['orig_joint_cam'] = convert_joints(relative, rules.joint_set, model_set)
    # an image says nothing about depth, so 2-D joints are truncated in x and y only
    inside = codec.inside(coord, dims=2 if cam is None else 3)
    targets['orig_joint_img'] = convert_joints(coord, rules.joint_set, model_set)
    meta['orig_joint_valid'] = convert_joints(valid, rules.joint_set, model_set)
    meta['orig_joint_trunc'] = convert_joints(valid * inside, rules.joint_set, model_set)
    return targets, meta


def _fit_targets(sample, aug, img2bb_trans, rules):
    """Targets from the body fitted to the image."""
    body = rules.body('neutral')
    joint_num, vertex_num = body.joint_num, body.vertex_num
    pose, shape = np.zeros(body.kinematic_joint_num * 3), np.zeros(10)
    coord, trunc = np.zeros((joint_num + vertex_num, 3), np.float32), np.zeros((joint_num + vertex_num, 1))
    relative, is_valid = np.zeros((joint_num, 3)), False
    placed = None if sample.fit is None else place_fit(sample, rules.body, aug.flip)
    if placed is not None and is_plausible(placed.vertices, placed.camera, sample.img_shape, rules.codec.bbox_3d_size):
        pose, shape = placed.pose, sample.fit.shape
        root = placed.joints[body.root_joint_idx]
        points = np.concatenate([placed.joints, placed.vertices])
        pixels = transforms.cam2pixel(points, placed.camera.focal, placed.camera.princpt)
        coord = rules.codec.encode(pixels, root[2], img2bb_trans)
        trunc = rules.codec.inside(coord)
        relative = placed.joints - root
        is_valid = fit_error(placed, sample, aug.flip, img2bb_trans, rules) <= rules.fit_check.limit \
            if rules.fit_check else True
    if rules.zero_large_betas and np.abs(shape).max() > MAX_BETA:
        shape = np.zeros(10)  # of the target only: the mesh keeps its shape, as in the published training
    turn = transforms.z_rotation(-aug.rot)
    return ({'fit_joint_img': coord[:joint_num], 'fit_mesh_img': coord[joint_num:],
             'fit_joint_cam': relative @ turn.T, 'pose_param': transforms.rotate_pose(pose, turn),
             'shape_param': shape},
            {'fit_joint_trunc': trunc[:joint_num], 'fit_mesh_trunc': trunc[joint_num:], 'is_valid_fit': is_valid})


@dataclass
class PlacedFit:
    """A fit in the camera space of its (mirrored) image: vertices (V, 3), joints (J, 3) metres, pose (K*3,)."""
    vertices: np.ndarray
    joints: np.ndarray
    pose: np.ndarray
    camera: object


def place_fit(sample, body, flip=False):
    """Run the body model of a sample's fit and place it in camera space, as a PlacedFit.

    The steps, in this order: the camera's rotation joins the root's; the pose is flipped; the body model; translation;
    the shift that completes the flip.
    """
    fit, camera = sample.fit, sample.fit_camera or sample.camera
    model = body(fit.gender)
    pose = fit.pose if fit.R is None else transforms.rotate_pose(fit.pose, fit.R)
    if flip:
        pose = transforms.flip_pose(pose, model.joint_set.flip_order()[:model.kinematic_joint_num])
    with torch.inference_mode():
        vertices, kinematic = model(*(torch.from_numpy(np.asarray(v, np.float32))[None] for v in (pose, fit.shape)))
        vertices, joints = vertices[0].numpy(), model.fit_joints(vertices, kinematic)[0].numpy()
    root = kinematic[0, 0].numpy().astype(np.float64)
    trans = fit.trans if fit.R is None else transforms.world2cam_trans(fit.trans, root, fit.R, fit.t)
    if flip:
        trans = trans + (transforms.flip_shift_x(root + trans, camera, sample.img_shape[1]), 0, 0)
    trans = trans.astype(np.float32)
    return PlacedFit(vertices + trans, joints + trans, pose, camera)


def is_plausible(vertices, camera, img_shape, bbox_3d_size):
    """Whether a mesh (V, 3) in camera space can be the person in the image: finite, in front of the camera, between
    a tenth of and one and a half times `bbox_3d_size` metres large, and its box seen within the image."""
    x, y, z = np.ascontiguousarray(vertices.T)  # a row per axis: their extremes are found ten times faster
    extent = max(axis.max() - axis.min() for axis in (x, y, z))
    if not (np.isfinite(extent) and z.min() > 0 and 0.1 * bbox_3d_size <= extent <= 1.5 * bbox_3d_size):
        return False
    for axis, focal, princpt, size in zip((x, y), camera.focal, camera.princpt, img_shape[::-1], strict=True):
        pixels = axis / z * focal + princpt
        if pixels.max() < 0 or pixels.min() > size - 1:
            return False
    return True


def fit_error(placed: PlacedFit, sample: Sample, flip: bool, img2bb_trans: np.ndarray, rules: TargetRules,
              check: FitCheck | None = None) -> float:
    """Distance of a fit from the annotated joints, in the unit of the check; 0 if there is no joint to compare.

    placed: PlacedFit of the (mirrored) image. img2bb_trans: (2, 3). check: None for that of the rules.
    """
    check = check or rules.fit_check
    joint_set = rules.joint_set
    if not has_joints(sample) or (check.kind == '3d' and sample.joint_cam is None):
        return 0.
    img, cam, valid = joints_in_image(sample, joint_set, flip)
    shared = [n for j, n in enumerate(joint_set.joints_name) if n in check.joint_set.joints_name and valid[j] > 0]
    if not shared:
        return 0.
    own = [joint_set.index(n) for n in shared]
    regressed = check.joints(placed.vertices)[[check.joint_set.index(n) for n in shared]]
    if check.kind == '3d':
        target = cam[own]
        regressed = regressed - regressed.mean(0) + target.mean(0)
    else:
        target = rules.codec.encode(np.pad(img[own], ((0, 0), (0, 1))), 0., img2bb_trans)[:, :2]
        pixels = transforms.cam2pixel(regressed, placed.camera.focal, placed.camera.princpt)
        regressed = rules.codec.encode(pixels, 0., img2bb_trans)[:, :2]
    return float(np.linalg.norm(target - regressed, axis=1).mean())
