"""Lixels (paper, section 3): 1-D heat maps along x, y and z, read out by soft-argmax."""
import torch
from torch import nn
from torch.nn import functional as F

from common.nets.layer import make_deconv_layers

HALF_MAX = torch.finfo(torch.float16).max


def soft_argmax(logits, log_prob=False):
    """Expected bin of 1-D heat maps: (B, bins, N) logits -> (B, N) coordinates in 0 .. bins - 1.

    Runs in float32 at least, whatever autocast says. With `log_prob` also returns the log-probabilities (B, bins, N).
    Targets are scaled to 0 .. bins, not bins - 1: a quirk of the published network that its weights rely on.
    """
    if logits.dtype == torch.float16:  # what overflowed is a large number again, without a gradient
        logits = logits.clamp(-HALF_MAX, HALF_MAX)
    with torch.autocast(logits.device.type, enabled=False):
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        bins = torch.arange(logits.shape[1], device=logits.device, dtype=logits.dtype)
        if log_prob:
            logp = F.log_softmax(logits, dim=1)
            return bins @ logp.exp(), logp
        return bins @ F.softmax(logits, dim=1)


def gaussian_1d(coord, bins, sigma):
    """(..., ) coordinates in lixels -> (..., bins) unnormalised Gaussians exp(-(i - coord)^2 / (2 sigma^2)).

    Tails far below the rounding error are zero: products of them would be denormal numbers, ten times slower on a CPU.
    """
    grid = torch.arange(bins, device=coord.device, dtype=coord.dtype)
    gauss = torch.exp(-((grid - coord[..., None]) / sigma) ** 2 / 2)
    return F.threshold(gauss, torch.finfo(gauss.dtype).eps ** 1.5, 0.)


def linear_1x1(conv, x):
    """A Conv1d of kernel 1, (out, in, 1), on x (B, L, in) -> (B, L, out): one matrix product over the whole batch."""
    return F.linear(x, conv.weight.squeeze(2), conv.bias)


class LixelHead(nn.Module):
    """Predicts (x, y, z) lixel coordinates of `out_num` points from the backbone's last feature map.

    PoseNet (29 or 21 joints) and MeshNet (6890 or 778 vertices) are this head; paper, section 4.

    Args:
        out_num: number of points.
        in_channels: channels of the backbone's last layer (2048).
        head_width: channels of the up-sampled map (256).
        hm_shape: (depth, height, width) lixels of the heat maps; height and width are 8 times the backbone's map.
    """

    def __init__(self, out_num, in_channels=2048, head_width=256, hm_shape=(64, 64, 64)):
        super().__init__()
        self.head_width, self.depth = head_width, hm_shape[0]
        self.deconv = make_deconv_layers([in_channels, head_width, head_width, head_width])
        self.conv_x = nn.Sequential(nn.Conv1d(head_width, out_num, 1))
        self.conv_y = nn.Sequential(nn.Conv1d(head_width, out_num, 1))
        z_channels = head_width * self.depth
        self.conv_z_1 = nn.Sequential(nn.Conv1d(in_channels, z_channels, 1), nn.BatchNorm1d(z_channels),
                                      nn.ReLU(inplace=True))
        self.conv_z_2 = nn.Sequential(nn.Conv1d(head_width, out_num, 1))

    def heatmaps(self, feat):
        """(B, in_channels, h, w) -> logits along x (B, width, out_num), y (B, height, ...) and z (B, depth, ...)."""
        up = self.deconv(feat)
        conv, norm, act = self.conv_z_1
        z = F.linear(feat.mean((2, 3)), conv.weight.squeeze(2), conv.bias)  # a signal of length one: a linear map
        z = act(norm(z)).view(-1, self.head_width, self.depth)
        pixels = up.permute(0, 2, 3, 1)  # on a CPU a mean over the axes of a channels_last map is 40 times slower
        lines = ((self.conv_x, pixels.mean(1)), (self.conv_y, pixels.mean(2)), (self.conv_z_2, z.transpose(1, 2)))
        return tuple(linear_1x1(conv[0], line) for conv, line in lines)

    def forward(self, feat, log_prob=False):
        """(B, in_channels, h, w) -> (B, out_num, 3) coordinates in lixels, in x, y, z order.

        With `log_prob` also the list of the three axes' log-probabilities, each (B, bins, out_num).
        """
        maps = self.heatmaps(feat)
        if not log_prob:
            return torch.stack([soft_argmax(m) for m in maps], 2)
        coords, logps = zip(*(soft_argmax(m, log_prob=True) for m in maps), strict=True)
        return torch.stack(coords, 2), list(logps)
