"""Building blocks and their published initial weights."""
from torch import nn
from torch.nn import functional as F


class Upsample(nn.ConvTranspose2d):
    """ConvTranspose2d(4, stride 2, padding 1) without bias at first: doubles height and width.

    On a CPU, where the input has many more channels than the output (2048 from the backbone), one matrix product and a
    sum of its overlapping patches take half the time of the library's kernel.
    """

    def __init__(self, in_channels, out_channels):
        super().__init__(in_channels, out_channels, 4, stride=2, padding=1, bias=False)

    def forward(self, x):
        """(B, in_channels, H, W) -> (B, out_channels, 2 H, 2 W)."""
        if x.device.type != 'cpu' or self.in_channels < 4 * self.out_channels:
            return super().forward(x)
        batch, _, height, width = x.shape
        weight = self.weight.permute(0, 2, 3, 1).reshape(self.in_channels, -1)  # (in, 4 * 4 * out)
        taps = (x.permute(0, 2, 3, 1).flatten(1, 2) @ weight).unflatten(2, (16, -1))  # (B, H * W, 4 * 4, out)
        out = F.fold(taps.permute(0, 3, 2, 1).reshape(batch, -1, height * width), (2 * height, 2 * width), 4,
                     padding=1, stride=2)
        return out if self.bias is None else out + self.bias[:, None, None]


def make_deconv_layers(channels):
    """Upsample + BatchNorm + ReLU between each two of `channels`; each doubles height and width."""
    layers = []
    for a, b in zip(channels[:-1], channels[1:], strict=True):
        layers += [Upsample(a, b), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def make_linear_layers(channels, norm=True):
    """Linear + BatchNorm1d + ReLU between each two of `channels`; without `norm` plain Linear layers."""
    layers = []
    for a, b in zip(channels[:-1], channels[1:], strict=True):
        layers += [nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(inplace=True)] if norm else [nn.Linear(a, b)]
    return nn.Sequential(*layers)


def init_head(module):
    """Initial weights of the heads: (transposed) 2-D convolutions N(0, 0.001), linear layers N(0, 0.01), biases zero.

    Conv1d and BatchNorm1d keep PyTorch's default, as in the published training; without this the lixels of hands end
    several millimetres worse.
    """
    for m in module.modules():
        if isinstance(m, nn.ConvTranspose2d):
            nn.init.normal_(m.weight, std=0.001)
        elif isinstance(m, nn.Conv2d):
            nn.init.normal_(m.weight, std=0.001)
            nn.init.zeros_(m.bias)
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.ones_(m.weight)
            nn.init.zeros_(m.bias)
        elif isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, std=0.01)
            nn.init.zeros_(m.bias)
