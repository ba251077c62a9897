"""ResNet without its classifier: torchvision's blocks and names, split at the stem as the network needs it."""
from pathlib import Path

import torch
from torch import Tensor, nn
from torchvision.models import get_model_weights
from torchvision.models.resnet import BasicBlock, Bottleneck

from common.errors import UserError, one_line
from common.files import torch_file

LAYERS = {
    18: (BasicBlock, (2, 2, 2, 2)),
    34: (BasicBlock, (3, 4, 6, 3)),
    50: (Bottleneck, (3, 4, 6, 3)),
    101: (Bottleneck, (3, 4, 23, 3)),
    152: (Bottleneck, (3, 8, 36, 3)),
}


class ResNetBackbone(nn.Module):
    """ResNet-18 to -152 with torchvision's state-dict names `conv1, bn1, layer1..4`.

    Args:
        resnet_type: 18, 34, 50, 101 or 152.
        width: Channels of the stem; 64 is the published network, less is a narrow one without ImageNet weights.
    Attributes:
        stem_channels: Channels of the stem output (= width).
        out_channels: Channels of the last layer: 32 * width with bottlenecks, else 8 * width.
    """

    def __init__(self, resnet_type: int, width: int = 64) -> None:
        super().__init__()
        if resnet_type not in LAYERS:
            raise UserError(f'resnet_type={resnet_type} is unknown: choose one of {", ".join(map(str, LAYERS))}')
        block, depths = LAYERS[resnet_type]
        self.resnet_type = resnet_type
        self.stem_channels = width
        self.out_channels = 8 * width * block.expansion
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = make_layer(block, width, width, depths[0], stride=1)
        self.layer2 = make_layer(block, width * block.expansion, 2 * width, depths[1], stride=2)
        self.layer3 = make_layer(block, 2 * width * block.expansion, 4 * width, depths[2], stride=2)
        self.layer4 = make_layer(block, 4 * width * block.expansion, 8 * width, depths[3], stride=2)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode='fan_out', nonlinearity='relu')

    def stem(self, img: Tensor) -> Tensor:
        """(B, 3, H, W) image -> (B, width, H/4, W/4)."""
        with torch.autocast(img.device.type, enabled=False):  # bfloat16 has fewer bits than the image
            early = self.conv1(img)
        return self.maxpool(self.relu(self.bn1(early)))

    def forward(self, x: Tensor, skip_early: bool = False) -> tuple[Tensor, Tensor]:
        """The first and the last feature map.

        Args:
            x: (B, 3, H, W) image.
            skip_early: `x` is a (B, width, H/4, W/4) feature map instead, which goes straight into layer1.
        Returns:
            The stem output (B, width, H/4, W/4), or the given map, and the last layer's map
            (B, out_channels, H/32, W/32).
        """
        early = x
        if not skip_early:
            early = self.stem(x)
        return early, self.layer4(self.layer3(self.layer2(self.layer1(early))))

    def load_imagenet(self, source: bool | str | Path = True) -> None:
        """Load ImageNet weights.

        Args:
            source: True for torchvision's (V1, the published start), or a file.
        Raises:
            UserError: They cannot be fetched or read, or do not fit.
        """
        name = f'resnet{self.resnet_type}'
        ways = ('use pretrained_backbone=FILE with a file downloaded elsewhere, '
                'pretrained_backbone=false for a random start, or --continue from a snapshot')
        origin = f'in {source}'
        if source is True:
            origin = f'of torchvision for {name}'
        try:
            if isinstance(source, bool):
                state = get_model_weights(name).IMAGENET1K_V1.get_state_dict(progress=True, check_hash=True)
            else:
                state = torch_file.load(source)
        except Exception as error:  # the three ways out help whatever went wrong
            raise UserError(f'the ImageNet weights {origin} cannot be loaded: {one_line(error)}; {ways}') from error
        if not isinstance(state, dict):
            state = {}
        weights = self.state_dict()
        for key, value in weights.items():
            if key in state and state[key].shape == value.shape:
                weights[key] = state[key]
            elif not key.endswith('num_batches_tracked'):  # files of older versions lack it
                raise UserError(f'the ImageNet weights {origin} do not fit {name} of width {self.stem_channels} '
                                f'(first mismatch: {key}): {ways}')
        self.load_state_dict(weights)


def make_layer(block: type[BasicBlock | Bottleneck], channels: int, planes: int, depth: int,
               stride: int) -> nn.Sequential:
    """One ResNet stage: `depth` blocks, the first with `stride` and, where the shape changes, a projected shortcut."""
    out = planes * block.expansion
    shortcut = None
    if stride != 1 or channels != out:
        shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
    first = block(channels, planes, stride, shortcut)
    return nn.Sequential(first, *(block(out, planes) for _ in range(depth - 1)))
