"""Person boxes by a torchvision detector (trained on COCO), for those who have none."""
from urllib.error import URLError

import numpy as np
import torch
from torchvision.models import detection

from common.errors import UserError
from common.files import torch_file

DETECTORS = ('fasterrcnn_mobilenet_v3_large_fpn', 'keypointrcnn_resnet50_fpn')
PERSON = 1  # the label of people in COCO
THRESHOLD = 0.7  # lowest score of a person
LONG_SIDE = 1600  # pixels; larger pictures are reduced first, the detector would do the same after copying them


class Detector:
    """Finds people: `detector(image)` -> list of (4,) float32 xywh boxes, the surest first.

    Args:
        name: one of DETECTORS.
        weights: path of a state-dict file for it; None: torchvision's, downloaded once.
        threshold: lowest score of a person. limit: largest number of people per picture.
        device: torch device.
    UserError: the weights cannot be downloaded or do not fit.
    """

    def __init__(self, name=DETECTORS[0], weights=None, threshold=THRESHOLD, limit=50, device='cpu'):
        if name not in DETECTORS:
            raise UserError(f'--detector {name}: one of {", ".join(DETECTORS)}')
        build = getattr(detection, name)
        try:
            self.net = build(weights=None if weights else 'DEFAULT', weights_backbone=None)
        except (URLError, OSError, RuntimeError) as error:  # RuntimeError: the download's checksum is wrong
            raise UserError(
                f'--detect: the weights of {name} cannot be downloaded ({error}); give boxes with --bbox x y w h, or '
                'download the file elsewhere and give it with --detector_weights FILE') from error
        if weights:
            self.net.load_state_dict(_read_weights(weights, self.net, name))
            if name.startswith('keypointrcnn'):  # as torchvision does with the weights that it downloads
                for module in self.net.modules():
                    if isinstance(module, torch.nn.BatchNorm2d):
                        module.eps = 0.
        self.net.eval().to(device)
        self.device, self.threshold, self.limit = device, threshold, limit

    @torch.inference_mode()
    def __call__(self, image):
        """(H, W, 3) uint8 RGB -> list of (4,) xywh boxes in pixels."""
        tensor = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None].to(self.device).float() / 255
        scale = min(LONG_SIDE / max(image.shape[:2]), 1)
        if scale < 1:
            tensor = torch.nn.functional.interpolate(tensor, scale_factor=scale, mode='bilinear', antialias=True)
        found = self.net(list(tensor))[0]
        keep = (found['labels'] == PERSON) & (found['scores'] >= self.threshold)
        boxes = found['boxes'][keep][:self.limit].cpu().numpy()
        boxes[:, 2:] -= boxes[:, :2]
        return list((boxes / scale).astype(np.float32))


def _read_weights(path, net, name):
    """The state dict in a file, checked. Published files come from frozen BatchNorm layers, which count no batches."""
    try:
        state = torch_file.load(path)
    except ValueError as error:
        raise UserError(f'--detector_weights {path}: not a file of PyTorch weights: {error}') from error
    expected = net.state_dict()
    if isinstance(state, dict):
        state = {k: v for k, v in expected.items() if k.endswith('num_batches_tracked')} | state
    if not isinstance(state, dict) or set(state) != set(expected) or any(
            getattr(state[k], 'shape', None) != v.shape for k, v in expected.items()):
        raise UserError(f'--detector_weights {path}: not the weights of {name} (--detector names the other one)')
    return state
