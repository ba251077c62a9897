"""I2L-MeshNet: image -> joints -> mesh in lixels -> body-model parameters (paper, figure 2)."""
from typing import Any

import torch
from torch import nn

from common.human_model import HumanModel
from common.nets.layer import init_head
from common.nets.lixel import LixelHead, confidence
from common.nets.loss import MeshLoss, heatmap_loss, masked_l1
from common.nets.module import ParamRegressor, Pose2Feat
from common.nets.resnet import ResNetBackbone
from common.utils.preprocessing import float_image

Tensors = dict[str, torch.Tensor]


class Model(nn.Module):
    """The whole network; its state-dict names are the published ones.

    Args:
        human_model: HumanModel (its tensors follow the device, and never enter a state dict).
        stage: 'lixel' trains all but the parameter regressor, 'param' the regressor alone on the frozen rest.
        resnet_type, resnet_width, mesh_width, head_width, hm_shape, sigma: see Config.
        normal_loss_weight, edge_loss_weight, heatmap_loss_weight, joint_xy_weight, orig_joint_loss, freeze_bn,
            freeze_pose: see Config.
    """

    def __init__(self, human_model: HumanModel, stage: str, resnet_type: int = 50,
                 resnet_width: int = 64, mesh_width: int = 0, head_width: int = 256,
                 hm_shape: tuple[int, int, int] = (64, 64, 64), sigma: float = 2.5,
                 normal_loss_weight: float = 0.1, edge_loss_weight: float = 1.,
                 heatmap_loss_weight: float = 0., joint_xy_weight: float = 1.,
                 orig_joint_loss: bool = True, freeze_bn: bool = False, freeze_pose: bool = False) -> None:
        super().__init__()
        self.stage = stage
        self.sigma = sigma
        self.normal_loss_weight = normal_loss_weight
        self.edge_loss_weight = edge_loss_weight
        self.heatmap_loss_weight = heatmap_loss_weight
        self.joint_xy_weight = joint_xy_weight
        self.orig_joint_loss = orig_joint_loss
        self.freeze_bn = freeze_bn
        self.freeze_pose = freeze_pose and stage == 'lixel'
        self.pose_only = False  # lixel stage: train the pose half alone (set by the trainer)
        self.channels_last = True  # memory format of the images (set by place)
        self.human_model = human_model
        joints = human_model.joint_num
        self.pose_backbone = ResNetBackbone(resnet_type, resnet_width)
        self.pose_net = LixelHead(joints, self.pose_backbone.out_channels, head_width, hm_shape)
        mesh_width = mesh_width or resnet_width
        self.pose2feat = Pose2Feat(joints, hm_shape, sigma, resnet_width, mesh_width)
        self.mesh_backbone = ResNetBackbone(resnet_type, mesh_width)
        self.mesh_net = LixelHead(human_model.vertex_num, self.mesh_backbone.out_channels, head_width, hm_shape)
        self.param_regressor = ParamRegressor(joints, human_model.kinematic_joint_num)
        self.mesh_loss = MeshLoss(human_model.face)
        for head in (self.pose_net, self.pose2feat, self.mesh_net, self.param_regressor):
            init_head(head)

    @property
    def lixel_modules(self) -> list[nn.Module]:
        """The modules that predict lixels, frozen in the param stage."""
        return [self.pose_backbone, self.pose_net, self.pose2feat, self.mesh_backbone,
                self.mesh_net]

    @property
    def trainable_modules(self) -> list[nn.Module]:
        """The modules whose parameters are trained now; the optimiser of this stage gets those without `pose_only`."""
        if self.stage == 'param':
            return [self.param_regressor]
        if self.pose_only:
            return self.lixel_modules[:2]
        if self.freeze_pose:
            return self.lixel_modules[2:]
        return self.lixel_modules

    def train(self, mode: bool = True) -> 'Model':
        """Train mode; the frozen nets of the param stage too (their BatchNorm averages move, as in the published
        training), unless `freeze_bn` asks for them to stay as they are; so do those of `freeze_pose`."""
        super().train(mode)
        still: list[nn.Module] = []
        if mode and self.stage == 'param' and self.freeze_bn:
            still = self.lixel_modules
        elif self.freeze_pose:
            still = self.lixel_modules[:2]
        for module in still:
            module.eval()
        return self

    def place(self, device: torch.device | str, channels_last: bool) -> 'Model':
        """Move to a device, with weights and images in the memory format channels_last or in the plain one."""
        self.channels_last = channels_last
        memory_format = torch.contiguous_format
        if channels_last:
            memory_format = torch.channels_last
        return self.to(device).to(memory_format=memory_format)

    def predict_joints(self, img: torch.Tensor, log_prob: bool = False,
                       ) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor] | None]:
        """(B, 3, H, W) image in 0..1 -> stem feature, joints (B, J, 3) in lixels, their heat maps' log-probabilities.

        The log-probabilities are None unless `log_prob` asks for them.
        """
        if self.channels_last and img.dtype != torch.float64:  # float64 convolutions are slow on channels_last
            img = img.contiguous(memory_format=torch.channels_last)
        stem, feat = self.pose_backbone(img)
        if log_prob:
            joint, logps = self.pose_net(feat, log_prob=True)
            return stem, joint, logps
        return stem, self.pose_net(feat), None

    def predict_mesh(self, stem: torch.Tensor, joint: torch.Tensor) -> torch.Tensor:
        """Stem feature and joints (B, J, 3) in lixels, taken as constants -> mesh (B, V, 3) in lixels."""
        _, feat = self.mesh_backbone(self.pose2feat(stem, joint), skip_early=True)
        return self.mesh_net(feat)

    def predict_params(self, joint_img_from_mesh: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(B, J, 3) lixels -> pose (B, K * 3), shape (B, 10), root-relative mesh (B, V, 3), joints (B, J, 3) in m."""
        # half precision would round lixels of up to 64 to quarters: millimetres of the mesh
        with torch.autocast(joint_img_from_mesh.device.type, enabled=False):
            pose, shape = self.param_regressor(joint_img_from_mesh.detach())
            mesh, _ = self.human_model(pose, shape, None)
            joint = self.human_model.joint_regressor.to(mesh.dtype) @ mesh
        root = joint[:, self.human_model.root_joint_idx, None]
        return pose, shape, mesh - root, joint - root

    def forward(self, inputs: Tensors, targets: Tensors, meta_info: Tensors, mode: str) -> Tensors:
        """One batch.

        Args:
            inputs: `img` (B, 3, H, W), RGB in 0..1, or patches of bytes: see `float_image`.
            targets, meta_info: what data/target.py builds; in test mode whatever the data set gives (may be empty).
            mode: 'train' or 'test'.
        Returns:
            train: {loss name: (B,) per-sample means}; test: {`joint_coord_img` (B, J, 3) and `mesh_coord_img` (B, V, 3)
            lixels, `joint_confidence` (B, J) in 0..1; in the param stage `mesh_coord_cam` (B, V, 3) root-relative
            metres, `pose_param`, `shape_param`; `bb2img_trans` and `mesh_coord_cam_target` where given}.
        """
        train_lixels = mode == 'train' and self.stage == 'lixel'
        log_prob = self.heatmap_loss_weight > 0 or mode == 'test'
        img = float_image(inputs)
        if train_lixels and self.pose_only:
            _, joint, logps = self.predict_joints(img, log_prob)
            return self.joint_losses(joint, logps, targets, meta_info)
        with torch.set_grad_enabled(train_lixels and not self.freeze_pose):
            stem, joint, logps = self.predict_joints(img, log_prob)
        with torch.set_grad_enabled(train_lixels):
            mesh = self.predict_mesh(stem, joint)
        with torch.autocast(mesh.device.type, enabled=False):
            joint_from_mesh = self.human_model.joint_regressor.to(mesh.dtype) @ mesh
        if train_lixels:
            losses: Tensors = {}
            if not self.freeze_pose:
                losses = self.joint_losses(joint, logps, targets, meta_info)
            return losses | self.mesh_losses(mesh, joint_from_mesh, targets, meta_info)
        if mode == 'train':
            pose, shape, _, joint_cam = self.predict_params(joint_from_mesh)
            return self.param_losses(pose, shape, joint_cam, targets, meta_info)
        assert logps is not None
        out = {'joint_coord_img': joint, 'mesh_coord_img': mesh, 'joint_confidence': confidence(logps, self.sigma)}
        if self.stage == 'param':
            with torch.no_grad():
                pose, shape, mesh_cam, _ = self.predict_params(joint_from_mesh)
            out['pose_param'] = pose
            out['shape_param'] = shape
            out['mesh_coord_cam'] = mesh_cam
        if 'bb2img_trans' in meta_info:
            out['bb2img_trans'] = meta_info['bb2img_trans']
        if 'fit_mesh_coord_cam' in targets:
            out['mesh_coord_cam_target'] = targets['fit_mesh_coord_cam']
        return out

    def joint_losses(self, joint: torch.Tensor, logps: list[torch.Tensor] | None, targets: Tensors,
                     meta: Tensors) -> Tensors:
        """The losses of PoseNet's joints, each (B,); with `logps` the one on their heat maps too."""
        fit_mask, orig_mask = lixel_masks(meta)
        losses = {'joint_fit': masked_l1(joint, targets['fit_joint_img'], fit_mask)}
        if self.orig_joint_loss:  # without the two *_orig: a smoother mesh, its joints a little less exact
            losses['joint_orig'] = masked_l1(joint, targets['orig_joint_img'], orig_mask)
        if logps is not None:
            masks = fit_mask.expand(-1, -1, 3)
            loss = heatmap_loss(logps, targets['fit_joint_img'], masks, self.sigma)
            losses['joint_heatmap'] = loss * self.heatmap_loss_weight
        return losses

    def mesh_losses(self, mesh: torch.Tensor, joint_from_mesh: torch.Tensor, targets: Tensors,
                    meta: Tensors) -> Tensors:
        """The losses of MeshNet's mesh and its joints, each (B,)."""
        fit_mask, orig_mask = lixel_masks(meta)
        mesh_mask = meta['fit_mesh_trunc'] * meta['is_valid_fit'][:, None, None]
        normal, edge = self.mesh_loss(mesh, targets['fit_mesh_img'], mesh_mask)
        losses = {'mesh_fit': masked_l1(mesh, targets['fit_mesh_img'], mesh_mask),
                  'mesh_joint_fit': masked_l1(joint_from_mesh, targets['fit_joint_img'], fit_mask),
                  'mesh_normal': normal * self.normal_loss_weight,
                  'mesh_edge': edge * self.edge_loss_weight}
        if self.orig_joint_loss:
            losses['mesh_joint_orig'] = masked_l1(joint_from_mesh, targets['orig_joint_img'], orig_mask)
        return losses

    def param_losses(self, pose: torch.Tensor, shape: torch.Tensor, joint: torch.Tensor,
                     targets: Tensors, meta: Tensors) -> Tensors:
        """The four losses of the param stage, each (B,)."""
        fit_valid = meta['is_valid_fit'][:, None]
        orig_mask = meta['orig_joint_valid'] * meta['is_3D'][:, None, None]
        orig = self.weigh_xy(joint - targets['orig_joint_cam'])
        fit = self.weigh_xy(joint - targets['fit_joint_cam'])
        zero = torch.zeros_like(orig)
        return {'pose_param': masked_l1(pose, targets['pose_param'], fit_valid),
                'shape_param': masked_l1(shape, targets['shape_param'], fit_valid),
                'joint_orig_cam': masked_l1(orig, zero, orig_mask),
                'joint_fit_cam': masked_l1(fit, zero, fit_valid[:, :, None])}

    def weigh_xy(self, errors: torch.Tensor) -> torch.Tensor:
        """(B, J, 3) errors, with those along x and y, which an overlay shows, times `joint_xy_weight`."""
        return torch.cat([errors[..., :2] * self.joint_xy_weight, errors[..., 2:]], -1)


def lixel_masks(meta: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
    """Which joint coordinates count: of the fit (B, J, 1), and of the data set (B, J, 3), whose z needs 3-D data."""
    fit_mask = meta['fit_joint_trunc'] * meta['is_valid_fit'][:, None, None]
    always = torch.ones_like(meta['is_3D'])
    axes = torch.stack([always, always, meta['is_3D']], 1)
    return fit_mask, meta['orig_joint_trunc'] * axes[:, None]


def get_model(cfg: Any, human_model: HumanModel, mode: str) -> Model:
    """The network of a configuration.

    Args:
        cfg: Config (or anything with its network fields and `stage`).
        human_model: HumanModel.
        mode: 'train' or 'test'; in train mode of the lixel stage, without `continue_train`, both backbones start from
            ImageNet unless `pretrained_backbone` is false (UserError when the weights cannot be had).
    """
    same = ('resnet_type', 'resnet_width', 'mesh_width', 'head_width', 'sigma', 'normal_loss_weight',
            'edge_loss_weight', 'heatmap_loss_weight', 'joint_xy_weight', 'orig_joint_loss', 'freeze_bn', 'freeze_pose')
    values: dict[str, Any] = {key: getattr(cfg, key) for key in same}
    model = Model(human_model, cfg.stage, hm_shape=tuple(cfg.output_hm_shape), **values)
    starts = mode == 'train' and cfg.stage == 'lixel' and not cfg.continue_train
    if starts and cfg.pretrained_backbone:
        for backbone in (model.pose_backbone, model.mesh_backbone):
            backbone.load_imagenet(cfg.pretrained_backbone)
    return model
