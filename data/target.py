"""Training targets of one sample: pixels, metres and body parameters to what the losses compare.

The order, for the joints and for the fitted body alike: camera space -> flip -> pixels -> crop -> img space.
"""
from dataclasses import dataclass

import numpy as np

from common.utils import transforms
from common.utils.preprocessing import AugParams
from data.codec import LixelCodec
from data.joint_set import JointSet, convert_joints
from data.placed_fit import Bodies, PlacedFit, is_plausible, place_fit
from data.sample import Sample

MAX_BETA = 3.  # shape coefficients beyond this are failures of the fitting
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class FitCheck:
    """How far a fit may be from the annotated joints, and how its joints are computed.

    Attributes:
        regressor: (R, V) float32, one row per joint of `joint_set`.
        joint_set: The joints that are compared.
        kind: '3d', mean distance in metres after the means are aligned, or '2d', mean distance of the valid joints in
            lixels.
        limit: The largest distance of a good fit.
        published_pelvis: '2d' as in the published training, where the product of the hips' depths (metres) stands for
            the depth of the fit's pelvis. It is then seen near the principal point, and exact fits of people far from
            it are rejected; the published model was trained on what that leaves. False: the pelvis is in the middle of
            the hips.
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

    Attributes:
        body: gender -> HumanModel.
        codec: Image to img space.
        joint_set: Of the sample's joints; None: they have none.
        has_3d: The set has 3-D joints.
        zero_large_betas: Shapes with a coefficient beyond MAX_BETA become a zero target.
        fit_check: None for fits that are the annotation.
    """
    body: Bodies
    codec: LixelCodec
    joint_set: JointSet | None
    has_3d: bool = True
    zero_large_betas: bool = True
    fit_check: FitCheck | None = None


def build_targets(sample: Sample, aug: AugParams, img2bb_trans: np.ndarray,
                  rules: TargetRules) -> tuple[Arrays, Arrays]:
    """(targets, meta_info) of one sample, all float32 arrays.

    J joints and V vertices of the body model; lixels on 0..output_hm_shape, metres relative to the root joint in camera
    space. Parts that the sample lacks are zero, masks included.

    Args:
        sample: The sample.
        aug: Its augmentation.
        img2bb_trans: (2, 3) affine from the (mirrored) image to the crop.
        rules: Those of the data set.
    Returns:
        targets: orig_joint_img (J, 3), fit_joint_img (J, 3), fit_mesh_img (V, 3) lixels; orig_joint_cam (J, 3),
            fit_joint_cam (J, 3) metres; pose_param (K*3,) radians; shape_param (10,).
        meta_info: orig_joint_valid, orig_joint_trunc, fit_joint_trunc (J, 1), fit_mesh_trunc (V, 1): 1 where annotated,
            and within the crop; is_valid_fit, is_3D: 0 or 1.
    """
    targets, meta = _orig_targets(sample, aug, img2bb_trans, rules)
    fit_targets, fit_meta = _fit_targets(sample, aug, img2bb_trans, rules)
    targets.update(fit_targets)
    meta.update(fit_meta)
    lacks_depth = sample.joint_img is not None and sample.joint_cam is None
    meta['is_3D'] = np.array(rules.has_3d and not lacks_depth)
    return _as_float32(targets), _as_float32(meta)


def _as_float32(arrays: Arrays) -> Arrays:
    return {name: np.asarray(array, np.float32) for name, array in arrays.items()}


def joints_in_image(sample: Sample, joint_set: JointSet,
                    flip: bool) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Joints of a sample (`has_joints`), or of its mirror image.

    In the mirror image left and right change places and the camera's x axis points the other way.

    Returns:
        (J, 2) pixels, (J, 3) metres in camera space or None, and the (J, 1) validity.
    """
    img = sample.joint_img
    cam = sample.joint_cam
    valid = sample.joint_valid
    if valid is None:
        valid = np.ones((joint_set.joint_num, 1), np.float32)
    if img is None:
        assert cam is not None and sample.camera is not None  # has_joints
        known = np.where(valid > 0, cam, 1)  # what stands for an unknown joint may have depth 0
        img = transforms.cam2pixel(known, sample.camera.focal, sample.camera.princpt)[:, :2]
    if flip:
        order = joint_set.flip_order()
        img = img[order] * (-1, 1) + (sample.img_shape[1] - 1, 0)
        valid = valid[order]
        if cam is not None:
            cam = cam[order] * (-1, 1, 1)
    return img, cam, valid


def has_joints(sample: Sample) -> bool:
    """Whether a sample has joints whose pixels are known."""
    return sample.joint_img is not None or (sample.joint_cam is not None and sample.camera is not None)


def _orig_targets(sample: Sample, aug: AugParams, img2bb_trans: np.ndarray,
                  rules: TargetRules) -> tuple[Arrays, Arrays]:
    """Targets from the joints that the data set annotates, renamed to the joints of the body model."""
    model_set = rules.body('neutral').joint_set
    codec = rules.codec
    joint_set = rules.joint_set
    joint_num = model_set.joint_num
    targets = {'orig_joint_img': np.zeros((joint_num, 3)),
               'orig_joint_cam': np.zeros((joint_num, 3))}
    meta = {'orig_joint_valid': np.zeros((joint_num, 1)),
            'orig_joint_trunc': np.zeros((joint_num, 1))}
    if joint_set is None or not has_joints(sample):
        return targets, meta
    img, cam, valid = joints_in_image(sample, joint_set, aug.flip)
    if cam is None:
        flat = np.concatenate([img, img[:, :1] * 0], 1)
        coord = codec.encode(flat, 0., img2bb_trans)
        coord[:, 2] = 0
        inside = codec.inside(coord, dims=2)  # an image says nothing about depth
    else:
        root = cam[joint_set.root_idx]
        coord = codec.encode(np.concatenate([img, cam[:, 2:]], 1), root[2], img2bb_trans)
        inside = codec.inside(coord)
        relative = (cam - root) @ transforms.z_rotation(-aug.rot).T
        targets['orig_joint_cam'] = convert_joints(relative, joint_set, model_set)
    targets['orig_joint_img'] = convert_joints(coord, joint_set, model_set)
    meta['orig_joint_valid'] = convert_joints(valid, joint_set, model_set)
    meta['orig_joint_trunc'] = convert_joints(valid * inside, joint_set, model_set)
    return targets, meta


def _fit_targets(sample: Sample, aug: AugParams, img2bb_trans: np.ndarray,
                 rules: TargetRules) -> tuple[Arrays, Arrays]:
    """Targets from the body fitted to the image."""
    body = rules.body('neutral')
    joint_num = body.joint_num
    pose = np.zeros(body.kinematic_joint_num * 3)
    shape = np.zeros(10)
    coord = np.zeros((joint_num + body.vertex_num, 3), np.float32)
    trunc = np.zeros((joint_num + body.vertex_num, 1))
    relative = np.zeros((joint_num, 3))
    is_valid = False
    placed = _plausible_fit(sample, aug, rules)
    if placed is not None and sample.fit is not None:
        pose = placed.pose
        shape = sample.fit.shape
        root = placed.joints[body.root_joint_idx]
        points = np.concatenate([placed.joints, placed.vertices])
        pixels = transforms.cam2pixel(points, placed.camera.focal, placed.camera.princpt)
        coord = rules.codec.encode(pixels, root[2], img2bb_trans)
        trunc = rules.codec.inside(coord)
        relative = placed.joints - root
        is_valid = is_close(placed, sample, aug.flip, img2bb_trans, rules)
    if rules.zero_large_betas and np.abs(shape).max() > MAX_BETA:
        # of the target only: the mesh keeps its shape, as in the published training
        shape = np.zeros(10)
    turn = transforms.z_rotation(-aug.rot)
    targets = {'fit_joint_img': coord[:joint_num], 'fit_mesh_img': coord[joint_num:],
               'fit_joint_cam': relative @ turn.T, 'pose_param': transforms.rotate_pose(pose, turn),
               'shape_param': shape}
    meta = {'fit_joint_trunc': trunc[:joint_num], 'fit_mesh_trunc': trunc[joint_num:],
            'is_valid_fit': np.array(is_valid)}
    return targets, meta


def _plausible_fit(sample: Sample, aug: AugParams, rules: TargetRules) -> PlacedFit | None:
    """The fit of a sample in camera space, None if it has none or an impossible one."""
    if sample.fit is None:
        return None
    placed = place_fit(sample, rules.body, aug.flip)
    if not is_plausible(placed.vertices, placed.camera, sample.img_shape, rules.codec.bbox_3d_size):
        return None
    return placed


def is_close(placed: PlacedFit, sample: Sample, flip: bool, img2bb_trans: np.ndarray,
             rules: TargetRules) -> bool:
    """Whether a fit passes the fit check of the rules, if they have one; arguments as of `fit_error`."""
    check = rules.fit_check
    if check is None:
        return True
    return fit_error(placed, sample, flip, img2bb_trans, rules, check) <= check.limit


def fit_error(placed: PlacedFit, sample: Sample, flip: bool, img2bb_trans: np.ndarray, rules: TargetRules,
              check: FitCheck) -> float:
    """Distance of a fit from the annotated joints, in the unit of the check; 0 if there is no joint to compare.

    Args:
        placed: The fit in the (mirrored) image.
        sample: The sample.
        flip: Whether the image is mirrored.
        img2bb_trans: (2, 3) affine from the (mirrored) image to the crop.
        rules: Those of the data set.
        check: How to compare.
    """
    joint_set = rules.joint_set
    if joint_set is None or not has_joints(sample):
        return 0.
    img, cam, valid = joints_in_image(sample, joint_set, flip)
    if check.kind == '3d' and cam is None:
        return 0.
    shared = [name for row, name in enumerate(joint_set.joints_name)
              if name in check.joint_set.joints_name and valid[row] > 0]
    if not shared:
        return 0.
    own = [joint_set.index(name) for name in shared]
    regressed = check.joints(placed.vertices)[[check.joint_set.index(name) for name in shared]]
    if check.kind == '3d' and cam is not None:
        target = cam[own]
        regressed = regressed - regressed.mean(0) + target.mean(0)
    else:
        target = rules.codec.encode(np.pad(img[own], ((0, 0), (0, 1))), 0., img2bb_trans)[:, :2]
        pixels = transforms.cam2pixel(regressed, placed.camera.focal, placed.camera.princpt)
        regressed = rules.codec.encode(pixels, 0., img2bb_trans)[:, :2]
    return float(np.linalg.norm(target - regressed, axis=1).mean())
