"""Building blocks and their published initial weights."""
from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F


class Upsample(nn.ConvTranspose2d):
    """ConvTranspose2d(4, stride 2, padding 1) without bias at first: doubles height and width.

    On a CPU, where the input has many more channels than the output (2048 from the backbone), one matrix product and a
    sum of its overlapping patches take half the time of the library's kernel.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, 4, stride=2, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]  # one size only
        """(B, in_channels, H, W) -> (B, out_channels, 2 H, 2 W)."""
        if x.device.type != 'cpu' or self.in_channels < 4 * self.out_channels:
            return super().forward(x)
        batch, _, height, width = x.shape
        weight = self.weight.permute(0, 2, 3, 1).reshape(self.in_channels, -1)  # (in, 4 * 4 * out)
        taps = (x.permute(0, 2, 3, 1).flatten(1, 2) @ weight).unflatten(2, (16, -1))  # (B, H * W, 4 * 4, out)
        patches = taps.permute(0, 3, 2, 1).reshape(batch, -1, height * width)
        out = F.fold(patches, (2 * height, 2 * width), 4, padding=1, stride=2)
        if self.bias is None:
            return out
        return out + self.bias[:, None, None]


def make_deconv_layers(channels: Sequence[int]) -> nn.Sequential:
    """Upsample + BatchNorm + ReLU between each two of `channels`; each doubles height and width."""
    layers: list[nn.Module] = []
    for a, b in zip(channels[:-1], channels[1:], strict=True):
        layers += [Upsample(a, b), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def make_linear_layers(channels: Sequence[int], norm: bool = True) -> nn.Sequential:
    """Linear + BatchNorm1d + ReLU between each two of `channels`; without `norm` plain Linear layers."""
    layers: list[nn.Module] = []
    for a, b in zip(channels[:-1], channels[1:], strict=True):
        layers.append(nn.Linear(a, b))
        if norm:
            layers += [nn.BatchNorm1d(b), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def init_head(module: nn.Module) -> None:
    """Initial weights of the heads: (transposed) 2-D convolutions N(0, 0.001), linear layers N(0, 0.01), biases zero.

    Conv1d and BatchNorm1d keep PyTorch's default, as in the published training; without this the lixels of hands end
    several millimetres worse.
    """
    for m in module.modules():
        if isinstance(m, nn.ConvTranspose2d | nn.Conv2d):
            nn.init.normal_(m.weight, std=0.001)
        elif isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, std=0.01)
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.ones_(m.weight)
        else:
            continue
        if m.bias is not None:
            nn.init.zeros_(m.bias)
