"""The parts between the backbones: the joint-to-feature bridge (Pose2Feat) and the SMPL / MANO parameter regressor."""
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from common.nets.layer import make_linear_layers
from common.nets.lixel import gaussian_1d
from common.utils.rotations import matrix_to_axis_angle, rot6d_to_matrix


class Pose2Feat(nn.Module):
    """3x3 convolution over the stem feature and the joints' 3-D Gaussian heat maps, without building those volumes.

    The published layer concatenates the (B, 64, H, W) stem feature with (B, J * D, H, W) Gaussian volumes and
    convolves. A Gaussian is a product gx(x) gy(y) gz(z), so the sum over depth folds into the weight, then x, then y:
    the same numbers up to rounding, some 60 times fewer products. `conv` keeps the published names and shapes.

    Args:
        joint_num: Joints J.
        hm_shape: (depth, height, width) lixels.
        sigma: Lixels.
        channels: C, of the stem feature.
        out_channels: Of the output; 0: C.
    """

    def __init__(self, joint_num: int, hm_shape: tuple[int, int, int] = (64, 64, 64), sigma: float = 2.5,
                 channels: int = 64, out_channels: int = 0) -> None:
        super().__init__()
        self.joint_num = joint_num
        self.hm_shape = tuple(hm_shape)
        self.sigma = sigma
        self.channels = channels
        out_channels = out_channels or channels
        conv = nn.Conv2d(channels + joint_num * hm_shape[0], out_channels, 3, padding=1)
        self.conv = nn.Sequential(conv, nn.BatchNorm2d(out_channels), nn.ReLU(inplace=True))

    def gaussian_conv(self, coord: Tensor, weight: Tensor) -> Tensor:
        """The convolution's share of the Gaussian volumes.

        Args:
            coord: (B, J, 3) lixels in x, y, z order, treated as constants.
            weight: (C, J * depth, 3, 3).
        Returns:
            (B, C, height, width), channels_last in memory.
        """
        depth, height, width = self.hm_shape
        joints = self.joint_num
        out = weight.shape[0]
        gx = gaussian_1d(coord[:, :, 0], width, self.sigma)
        gy = gaussian_1d(coord[:, :, 1], height, self.sigma)
        gz = gaussian_1d(coord[:, :, 2], depth, self.sigma)
        # sum over depth, one (B, D) x (D, 9 C) product per joint: taps (u along y, v along x) of each sample's kernel
        kernel = weight.view(out, joints, depth, 3, 3).permute(1, 2, 3, 4, 0).reshape(joints, depth, -1)
        kernel = torch.bmm(gz.transpose(0, 1), kernel)
        kernel = kernel.view(joints, -1, 3, 3, out).transpose(0, 1)  # (B, J, u, v, C)
        taps_x = F.pad(gx, (1, 1)).unfold(2, 3, 1)  # gx(x + v - 1), zero outside: (B, J, width, v)
        taps_x = taps_x.reshape(-1, width, 3)
        taps_y = F.pad(gy, (1, 1)).unfold(2, 3, 1)  # gy(y + u - 1): (B, J, height, u)
        parts = []
        for u in range(3):
            rows = torch.bmm(taps_x, kernel[:, :, u].reshape(-1, 3, out)).view(-1, joints, width * out)
            parts.append(torch.bmm(taps_y[..., u].transpose(1, 2), rows))
        total = parts[0] + parts[1] + parts[2]
        return total.view(-1, height, width, out).permute(0, 3, 1, 2)

    def forward(self, img_feat: Tensor, joint_coord: Tensor) -> Tensor:
        """The feature map for the mesh.

        Args:
            img_feat: (B, C, H, W) stem feature.
            joint_coord: (B, J, 3) joints in lixels, taken as constants.
        Returns:
            (B, out_channels, H, W).
        """
        conv, norm, act = self.conv
        assert isinstance(conv, nn.Conv2d)
        stem_weight = conv.weight[:, :self.channels]
        joint_weight = conv.weight[:, self.channels:]
        stem = F.conv2d(img_feat, stem_weight, conv.bias, padding=1)
        return act(norm(stem + self.gaussian_conv(joint_coord.detach(), joint_weight)))


class ParamRegressor(nn.Module):
    """Body-model parameters from the joints of the predicted lixel mesh (paper, section 5).

    Args:
        joint_num: Joints J of the input.
        kinematic_joint_num: Rotations K to predict (24 SMPL, 16 MANO).
    """

    def __init__(self, joint_num: int, kinematic_joint_num: int) -> None:
        super().__init__()
        self.fc = make_linear_layers([joint_num * 3, 1024, 512])
        self.fc_pose = make_linear_layers([512, kinematic_joint_num * 6], norm=False)
        self.fc_shape = make_linear_layers([512, 10], norm=False)

    def forward(self, joint_img: Tensor) -> tuple[Tensor, Tensor]:
        """(B, J, 3) joints in lixels -> pose (B, K * 3) axis-angle in radians, shape (B, 10)."""
        x = self.fc(joint_img.flatten(1))
        rot6d = self.fc_pose(x).view(-1, 3, 2)
        rot6d = rot6d.to(torch.promote_types(rot6d.dtype, torch.float32))
        shape = self.fc_shape(x)
        pose = matrix_to_axis_angle(rot6d_to_matrix(rot6d)).view(x.shape[0], -1)
        return pose, shape.to(torch.promote_types(shape.dtype, torch.float32))
