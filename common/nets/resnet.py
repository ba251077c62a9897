"""ResNet without its classifier: torchvision's blocks and names, split at the stem as the network needs it."""
from torch import nn
from torchvision.models import get_model_weights
from torchvision.models.resnet import BasicBlock, Bottleneck

from common.errors import UserError, one_line
from common.files import torch_file

LAYERS = {18: (BasicBlock, (2, 2, 2, 2)), 34: (BasicBlock, (3, 4, 6, 3)), 50: (Bottleneck, (3, 4, 6, 3)),
          101: (Bottleneck, (3, 4, 23, 3)), 152: (Bottleneck, (3, 8, 36, 3))}


class ResNetBackbone(nn.Module):
    """ResNet-18 to -152 with torchvision's state-dict names `conv1, bn1, layer1..4`.

    Args:
        resnet_type: 18, 34, 50, 101 or 152.
        width: channels of the stem; 64 is the published network, less is a narrow one without ImageNet weights.
    Attributes:
        stem_channels: channels of the stem output (= width).
        out_channels: channels of the last layer: 32 * width with bottlenecks, else 8 * width.
    """

    def __init__(self, resnet_type, width=64):
        super().__init__()
        if resnet_type not in LAYERS:
            raise UserError(f'resnet_type={resnet_type} is unknown: choose one of {", ".join(map(str, LAYERS))}')
        block, depths = LAYERS[resnet_type]
        self.resnet_type, self.stem_channels = resnet_type, width
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        channels = width
        for i, depth in enumerate(depths):
            planes = width * 2 ** i
            setattr(self, f'layer{i + 1}', make_layer(block, channels, planes, depth, stride=1 if i == 0 else 2))
            channels = planes * block.expansion
        self.out_channels = channels
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode='fan_out', nonlinearity='relu')

    def stem(self, img):
        """(B, 3, H, W) picture -> (B, width, H/4, W/4)."""
        return self.maxpool(self.relu(self.bn1(self.conv1(img))))

    def forward(self, x, skip_early=False):
        """(B, 3, H, W) picture, or with `skip_early` a (B, width, H/4, W/4) feature map that goes straight into layer1.

        Returns the stem output (B, width, H/4, W/4), or the given map, and the last layer's map
        (B, out_channels, H/32, W/32).
        """
        early = x if skip_early else self.stem(x)
        return early, self.layer4(self.layer3(self.layer2(self.layer1(early))))

    def load_imagenet(self, source=True):
        """Load torchvision's ImageNet weights (V1, the published start), or those of the file `source`.

        Raises UserError when they cannot be fetched or read, or do not fit.
        """
        name = f'resnet{self.resnet_type}'
        origin = f'of torchvision for {name}' if source is True else f'in {source}'
        ways = ('use pretrained_backbone=FILE with a file downloaded elsewhere, pretrained_backbone=false for a random '
                'start, or --continue from a snapshot')
        try:
            if source is True:
                state = get_model_weights(name).IMAGENET1K_V1.get_state_dict(progress=True, check_hash=True)
            else:
                state = torch_file.load(source)
        except Exception as error:  # whatever the download or the file may raise, the three ways out are the same
            reason = one_line(error)
            raise UserError(f'the ImageNet weights {origin} cannot be loaded: {reason}; {ways}') from error
        own = self.state_dict()
        state = {k: v for k, v in state.items() if not k.startswith('fc.')} if isinstance(state, dict) else {}
        needed = (k for k in own if not k.endswith('num_batches_tracked'))
        odd = [k for k in needed if k not in state or state[k].shape != own[k].shape]
        if odd:
            raise UserError(f'the ImageNet weights {origin} do not fit {name} of width '
                            f'{self.stem_channels} (first mismatch: {odd[0]}): {ways}')
        self.load_state_dict({k: state.get(k, v) for k, v in own.items()})


def make_layer(block, channels, planes, depth, stride):
    """One ResNet stage: `depth` blocks, the first with `stride` and, where the shape changes, a projected shortcut."""
    out = planes * block.expansion
    shortcut = None
    if stride != 1 or channels != out:
        shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
    return nn.Sequential(block(channels, planes, stride, shortcut), *(block(out, planes) for _ in range(depth - 1)))
