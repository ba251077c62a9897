"""Lixels (paper, section 3): 1-D heat maps along x, y and z, read out by soft-argmax."""
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from common.nets.layer import make_deconv_layers

HALF_MAX = torch.finfo(torch.float16).max


def soft_argmax(logits: Tensor) -> Tensor:
    """Expected bin of 1-D heat maps: (B, bins, N) logits -> (B, N) coordinates in 0 .. bins - 1.

    Runs in float32 at least, whatever autocast says.
    Targets are scaled to 0 .. bins, not bins - 1: a quirk of the published network that its weights rely on.
    """
    with torch.autocast(logits.device.type, enabled=False):
        return _expected_bin(F.softmax(_full_precision(logits), dim=1))


def soft_argmax_with_log_prob(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The same, and the log-probabilities (B, bins, N) of the heat maps."""
    with torch.autocast(logits.device.type, enabled=False):
        log_prob = F.log_softmax(_full_precision(logits), dim=1)
        return _expected_bin(log_prob.exp()), log_prob


def _full_precision(logits: Tensor) -> Tensor:
    if logits.dtype == torch.float16:  # what overflowed is a large number again, without a gradient
        logits = logits.clamp(-HALF_MAX, HALF_MAX)
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def _expected_bin(probabilities: Tensor) -> Tensor:
    """(B, bins, N) -> (B, N)."""
    bins = torch.arange(probabilities.shape[1], device=probabilities.device, dtype=probabilities.dtype)
    return bins @ probabilities


def confidence(log_probs: list[Tensor], sigma: float) -> Tensor:
    """How sure a network is of its points, by the entropy of their heat maps along x and y.

    The entropy, and not the peak, since it also counts a second peak or a broad foot, which move the expected bin: on
    drawn people and hands it goes along with the joints' errors better than the peak does (rank correlation -0.52 to
    -0.38, and -0.53 to -0.46).

    Args:
        log_probs: of the axes x, y and z, each (B, bins, N); the last one does not count.
        sigma: of the Gaussians that heat maps are trained to be, lixels.
    Returns:
        (B, N), 0: a flat heat map, which says nothing; 1: as sharp as those Gaussians, or sharper.
    """
    sharp = math.log(sigma * math.sqrt(2 * math.pi * math.e))  # entropy of the Gaussian
    shares = []
    for log_prob in log_probs[:2]:
        flat = math.log(log_prob.shape[1])
        entropy = -(log_prob.exp() * log_prob).sum(1)
        shares.append((flat - entropy) / (flat - sharp))
    return torch.stack(shares).mean(0).clamp(0, 1)


def gaussian_1d(coord: Tensor, bins: int, sigma: float) -> Tensor:
    """(..., ) coordinates in lixels -> (..., bins) unnormalised Gaussians exp(-(i - coord)^2 / (2 sigma^2)).

    Tails far below the rounding error are zero: products of them would be denormal numbers, ten times slower on a CPU.
    """
    grid = torch.arange(bins, device=coord.device, dtype=coord.dtype)
    gauss = torch.exp(-((grid - coord[..., None]) / sigma) ** 2 / 2)
    return F.threshold(gauss, torch.finfo(gauss.dtype).eps ** 1.5, 0.)


def linear_1x1(conv: nn.Module, x: Tensor) -> Tensor:
    """A Conv1d of kernel 1, (out, in, 1), on x (B, ..., in) -> (B, ..., out): one matrix product over the batch."""
    assert isinstance(conv, nn.Conv1d)
    return F.linear(x, conv.weight.squeeze(2), conv.bias)


class LixelHead(nn.Module):
    """Predicts (x, y, z) lixel coordinates of `out_num` points from the backbone's last feature map.

    PoseNet (29 or 21 joints) and MeshNet (6890 or 778 vertices) are this head; paper, section 4.

    Args:
        out_num: Number of points.
        in_channels: Channels of the backbone's last layer (2048).
        head_width: Channels of the up-sampled map (256).
        hm_shape: (depth, height, width) lixels of the heat maps; height and width are 8 times the backbone's map.
    """

    def __init__(self, out_num: int, in_channels: int = 2048, head_width: int = 256,
                 hm_shape: tuple[int, int, int] = (64, 64, 64)) -> None:
        super().__init__()
        self.head_width = head_width
        self.depth = hm_shape[0]
        self.deconv = make_deconv_layers([in_channels, head_width, head_width, head_width])
        self.conv_x = nn.Sequential(nn.Conv1d(head_width, out_num, 1))
        self.conv_y = nn.Sequential(nn.Conv1d(head_width, out_num, 1))
        z_channels = head_width * self.depth
        z_conv = nn.Conv1d(in_channels, z_channels, 1)
        self.conv_z_1 = nn.Sequential(z_conv, nn.BatchNorm1d(z_channels), nn.ReLU(inplace=True))
        self.conv_z_2 = nn.Sequential(nn.Conv1d(head_width, out_num, 1))

    def heatmaps(self, feat: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits along the three axes.

        Args:
            feat: (B, in_channels, h, w).
        Returns:
            x (B, width, out_num), y (B, height, out_num), z (B, depth, out_num).
        """
        up = self.deconv(feat)
        conv, norm, act = self.conv_z_1
        z = linear_1x1(conv, feat.mean((2, 3)))  # a signal of length one
        z = act(norm(z)).view(-1, self.head_width, self.depth)
        # on a CPU a mean over the axes of a channels_last map is 40 times slower
        pixels = up.permute(0, 2, 3, 1)
        # logits in half precision would shift the vertices, and the regressor makes millimetres of that
        with torch.autocast(feat.device.type, enabled=False):
            dtype = self.conv_x[0].weight.dtype
            return (linear_1x1(self.conv_x[0], pixels.mean(1, dtype=dtype)),
                    linear_1x1(self.conv_y[0], pixels.mean(2, dtype=dtype)),
                    linear_1x1(self.conv_z_2[0], z.transpose(1, 2).to(dtype)))

    def forward(self, feat: Tensor, log_prob: bool = False,
                ) -> Tensor | tuple[Tensor, list[Tensor]]:
        """Coordinates of the points.

        Args:
            feat: (B, in_channels, h, w).
            log_prob: Return the heat maps too.
        Returns:
            (B, out_num, 3) lixels, in x, y, z order. With `log_prob` also the list of the three axes'
            log-probabilities, each (B, bins, out_num).
        """
        maps = self.heatmaps(feat)
        if not log_prob:
            return torch.stack([soft_argmax(logits) for logits in maps], 2)
        coords, log_probs = zip(*(soft_argmax_with_log_prob(logits) for logits in maps), strict=True)
        return torch.stack(coords, 2), list(log_probs)
