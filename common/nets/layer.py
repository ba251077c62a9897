"""Building blocks and their published initial weights."""
from torch import nn


def make_deconv_layers(channels):
    """ConvTranspose2d(4, stride 2) + BatchNorm + ReLU between each two of `channels`; each doubles height and width."""
    layers = []
    for a, b in zip(channels[:-1], channels[1:], strict=True):
        deconv = nn.ConvTranspose2d(a, b, 4, stride=2, padding=1, bias=False)
        layers += [deconv, nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
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
