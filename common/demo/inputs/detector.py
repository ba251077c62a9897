"""Boxes of people by a torchvision detector (trained on COCO), for those who have none."""
from pathlib import Path
from urllib.error import URLError

import numpy as np
import torch
import torch.nn.functional as F
from torchvision.models import detection, get_model_weights

from common.demo.inputs.detectors import DETECTORS, THRESHOLD
from common.errors import UserError
from common.files import torch_file

PERSON = 1  # the label of people in COCO
LONG_SIDE = 1600  # pixels; larger images are reduced first, as the detector itself does later


class Detector:
    """Finds people: `detector(image)` -> list of (4,) float32 xywh boxes, the surest first.

    Args:
        name: one of DETECTORS.
        weights: path of a state-dict file for it; None: torchvision's, downloaded once.
        threshold: lowest score of a person.
        limit: largest number of people per image.
        device: of the network.
    Raises:
        UserError: the weights cannot be downloaded, or do not fit.
    """

    def __init__(self, name: str = DETECTORS[0], weights: str | Path | None = None, threshold: float = THRESHOLD,
                 limit: int = 50, device: torch.device | str = 'cpu') -> None:
        if name not in DETECTORS:
            raise UserError(f'--detector {name}: one of {", ".join(DETECTORS)}')
        self.device = device
        self.threshold = threshold
        self.limit = limit
        net = _download(name) if weights is None else _from_file(name, weights)
        self.net = net.eval().to(device)

    @torch.inference_mode()
    def __call__(self, image: np.ndarray) -> list[np.ndarray]:
        """Find the people of an image.

        Args:
            image: (H, W, 3) uint8 RGB.
        Returns:
            (4,) float32 xywh boxes, pixels.
        """
        pixels = torch.from_numpy(np.ascontiguousarray(image)).to(self.device)
        tensor = pixels.permute(2, 0, 1)[None].float() / 255
        scale = min(LONG_SIDE / max(image.shape[:2]), 1)
        if scale < 1:
            tensor = F.interpolate(tensor, scale_factor=scale, mode='bilinear', antialias=True)
        found = self.net(list(tensor))[0]
        keep = (found['labels'] == PERSON) & (found['scores'] >= self.threshold)
        boxes = found['boxes'][keep][:self.limit].cpu().numpy()
        boxes[:, 2:] -= boxes[:, :2]
        return list((boxes / scale).astype(np.float32))


def download_size(name: str) -> float:
    """Megabytes that `Detector(name)` downloads: 0 where its weights are there from a former time."""
    weights = get_model_weights(name).DEFAULT
    if Path(torch.hub.get_dir(), 'checkpoints', Path(weights.url).name).exists():
        return 0.
    return float(weights.meta['_file_size'])


def _download(name: str) -> torch.nn.Module:
    """The detector with torchvision's own weights."""
    try:
        return getattr(detection, name)(weights='DEFAULT', weights_backbone=None)
    except (URLError, OSError, RuntimeError) as error:  # RuntimeError: a wrong checksum
        raise UserError(
            f'--detect: the weights of {name} cannot be downloaded ({error}); give boxes with '
            '--bbox x y w h, or download the file elsewhere and give it with --detector_weights FILE') from error


def _from_file(name: str, path: str | Path) -> torch.nn.Module:
    """The detector with the weights of a file."""
    net = getattr(detection, name)(weights=None, weights_backbone=None)
    net.load_state_dict(_read_weights(path, net, name))
    if name.startswith('keypointrcnn'):  # as torchvision does with the weights that it downloads
        for module in net.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.eps = 0.
    return net


def _read_weights(path: str | Path, net: torch.nn.Module, name: str) -> dict[str, torch.Tensor]:
    """The state dict in a file, checked. Published files come from frozen BatchNorm layers, which count no batches."""
    try:
        state = torch_file.load(path)
    except ValueError as error:
        raise UserError(f'--detector_weights {path}: not a file of PyTorch weights: {error}') from error
    expected = net.state_dict()
    if isinstance(state, dict):
        counters = [key for key in expected if key.endswith('num_batches_tracked')]
        state = {key: expected[key] for key in counters} | state
    shapes = {key: value.shape for key, value in expected.items()}
    if not isinstance(state, dict) or shapes != {key: getattr(value, 'shape', 0) for key, value in state.items()}:
        raise UserError(f'--detector_weights {path}: not the weights of {name} (--detector names '
                        'the other one)')
    return state
