"""The network on people of one or many images: crops in batches, predictions out, in order."""
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from torch import nn

from common.demo.inputs.sources import InputImage
from common.demo.people.body import body_meshes
from common.demo.people.prediction import BodyParams, Prediction
from common.devices.wrap import to_device
from common.errors import UserError
from common.human_model import HumanModel
from common.utils.preprocessing import color_scale, crop_image, process_bbox

MAX_RATIO = 4.  # pixels of the image for one of the crop, in x and y; beyond, the image is shrunk first
PIXELS_WAITING = 1 << 26  # of images kept until their batch is full: bounds the memory for huge photos


@dataclass(frozen=True)
class NetworkInfo:
    """Which network made a result, for the record."""
    snapshot: str  # path
    stage: str  # 'lixel' or 'param'
    body_model: str
    gender: str
    is_hand: bool = False
    left_hand: bool = False  # left hands, by the network for right ones: it sees mirror images
    joint_names: tuple[str, ...] = ()  # (J,) of the joints that it predicts
    drawn_only: bool = False  # it was trained on the synthetic images alone
    trained_maps: bool = False  # its heat maps were trained to be Gaussians: confidences mean the same everywhere

    @property
    def warning(self) -> str:
        """A line for whoever gives it images of their own, or ''."""
        if not self.drawn_only:
            return ''
        return (f'this network ({Path(self.snapshot).name}) knows drawn {self.subject} only: its meshes of photos are '
                'of no use. For photos get the published weights, or train (README); then: --snapshot FILE')

    @property
    def subject(self) -> str:
        """What it knows: 'people' or 'hands'."""
        if self.is_hand:
            return 'hands'
        return 'people'

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of meshes that it gives."""
        return ('lixel',) if self.stage == 'lixel' else ('lixel', 'param')


@dataclass
class Crop:
    """What the network sees of one box; for a left hand all but `bbox` are of the mirrored image."""
    patch: np.ndarray  # (height, width, 3) uint8
    to_image: np.ndarray  # (2, 3) affine from patch to image pixels
    bbox: np.ndarray  # (4,) xywh as it was given, pixels
    crop_bbox: np.ndarray  # (4,) xywh, enlarged, pixels
    image_width: int  # pixels


class BoxPredictor:
    """Runs the network on boxes.

    Args:
        model: the network in test mode, `model(inputs, targets, meta_info, 'test')`.
        human_model: its body model.
        codec: the LixelCodec of its input.
        info: about the network.
        batch_size: people per forward pass.
        device: of the input.

    Attributes:
        antialias: shrink large parts of an image before they are cropped, see `_cut`.
    """

    def __init__(self, model: nn.Module, human_model: HumanModel, codec: Any, info: NetworkInfo,
                 batch_size: int = 16, device: torch.device | str = 'cpu') -> None:
        self.model = model.eval()
        self.human_model = human_model
        self.codec = codec
        self.info = info
        self.batch_size = batch_size
        self.device = device
        self.antialias = True
        self.faces = human_model.face
        if info.left_hand:
            self.faces = self.faces[:, ::-1]  # outward again after mirroring
        self.network_time = 0.  # seconds spent in the network

    def predict(self, image: np.ndarray, boxes: list[np.ndarray]) -> list[Prediction]:
        """All people of one image.

        Args:
            image: (H, W, 3) uint8 RGB.
            boxes: (4,) xywh each, pixels.
        Raises:
            UserError: a box with too little inside the image, or a broken snapshot.
        """
        return self._answers(self.crop(image, boxes))

    def stream(self, images: Iterable[InputImage]) -> Iterator[tuple[InputImage, list[Prediction]]]:
        """Iterate over (image, its people) in order; batches are filled across images."""
        waiting: list[tuple[InputImage, list[Crop]]] = []
        people = 0
        pixels = 0
        for image in images:
            waiting.append((image, self.crop(image.image, image.boxes)))
            people += len(image.boxes)
            pixels += image.image.size // 3
            if people >= self.batch_size or pixels > PIXELS_WAITING:
                yield from self._finish(waiting)
                waiting = []
                people = 0
                pixels = 0
        yield from self._finish(waiting)

    def _finish(self, waiting: list[tuple[InputImage, list[Crop]]],
                ) -> Iterator[tuple[InputImage, list[Prediction]]]:
        """Run all crops, then hand out the waiting images with their people."""
        answers = iter(self._answers([crop for _, crops in waiting for crop in crops]))
        for image, crops in waiting:
            yield image, [next(answers) for _ in crops]

    def crop(self, image: np.ndarray, boxes: list[np.ndarray]) -> list[Crop]:
        """Cut out what the network sees of each box: image (H, W, 3) uint8 RGB, boxes (4,) xywh.

        Raises:
            UserError: a box with too little inside the image.
        """
        height, width = image.shape[:2]
        if self.info.left_hand:
            image = cv2.flip(image, 1)
        crops = []
        for box in boxes:
            x, y, w, h = (float(value) for value in box)
            seen_x = width - x - w if self.info.left_hand else x
            crop_bbox = process_bbox((seen_x, y, w, h), width, height, self.codec.input_img_shape)
            if crop_bbox is None:
                raise UserError(f'the box {x:g} {y:g} {w:g} {h:g} covers too little of the image of '
                                f'{width} x {height} pixels')
            patch, to_image = self._cut(image, crop_bbox)
            crops.append(Crop(patch, to_image, np.array(box, np.float32), crop_bbox, width))
        return crops

    def _cut(self, image: np.ndarray, crop_bbox: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The patch of an enlarged box, and the (2, 3) affine from it to the image.

        Where the box has many pixels for one of the patch, its part of the image is shrunk first: the crop looks at
        four pixels for each of its own, so the grain of a large photo would reach the network.
        """
        shape = self.codec.input_img_shape
        ratio = min(crop_bbox[2] / shape[1], crop_bbox[3] / shape[0])
        if not self.antialias or ratio <= MAX_RATIO:
            patch, _, to_image = crop_image(image, crop_bbox, None, shape)
            return patch, to_image
        height, width = image.shape[:2]
        low = np.maximum(np.floor(crop_bbox[:2]).astype(int), 0)
        high = np.minimum(np.ceil(crop_bbox[:2] + crop_bbox[2:]).astype(int) + 1, (width, height))
        part = image[low[1]:high[1], low[0]:high[0]]
        size = np.maximum(np.rint((high - low) * MAX_RATIO / ratio), 1).astype(int)
        small = cv2.resize(part, size.tolist(), interpolation=cv2.INTER_AREA)
        factor = (high - low) / size  # pixels of the image for one of `small`
        small_box = np.concatenate([(crop_bbox[:2] - low + 0.5) / factor - 0.5, crop_bbox[2:] / factor])
        patch, _, to_small = crop_image(small, small_box, None, shape)
        to_image = to_small * factor[:, None]
        to_image[:, 2] += low + 0.5 * factor - 0.5
        return patch, to_image.astype(np.float32)

    @torch.inference_mode()
    def run(self, patches: np.ndarray) -> dict[str, np.ndarray]:
        """Patches (B, h, w, 3) uint8 -> the network's outputs, float32. UserError if one is not finite."""
        started = time.perf_counter()
        scales = np.tile(color_scale(None), (len(patches), 1))
        inputs = {'img': torch.from_numpy(patches), 'color_scale': torch.from_numpy(scales)}
        out = self.model(to_device(inputs, torch.device(self.device)), {}, {}, 'test')
        if 'pose_param' in out:
            pose = out['pose_param'].float()
            _, out['model_root'] = body_meshes(self.human_model, pose, out['shape_param'].float())
        arrays = {key: value.float().cpu().numpy() for key, value in out.items()}
        self.network_time += time.perf_counter() - started
        if not all(np.isfinite(value).all() for value in arrays.values()):
            raise UserError('the network gives numbers that are not finite: the snapshot is broken')
        return arrays

    def _answers(self, crops: list[Crop]) -> list[Prediction]:
        """A prediction for each crop, a batch at a time."""
        predictions = []
        for start in range(0, len(crops), self.batch_size):
            batch = crops[start:start + self.batch_size]
            out = self.run(np.stack([crop.patch for crop in batch]))
            for row, crop in enumerate(batch):
                one = {key: value[row] for key, value in out.items()}
                predictions.append(self._prediction(crop, one))
        return predictions

    def _prediction(self, crop: Crop, out: dict[str, np.ndarray]) -> Prediction:
        """One person's output, in the image's pixels (mirrored back for a left hand)."""
        mesh_img = self.codec.decode(out['mesh_coord_img'], 0., crop.to_image).astype(np.float32)
        body = None
        if 'pose_param' in out:
            body = BodyParams(out['pose_param'], out['shape_param'], out['mesh_coord_cam'],
                              out['model_root'])
        if self.info.left_hand:
            mesh_img[:, 0] = crop.image_width - 1 - mesh_img[:, 0]
            crop.crop_bbox[0] = crop.image_width - crop.crop_bbox[0] - crop.crop_bbox[2]
        prediction = Prediction(crop.bbox, crop.crop_bbox, mesh_img, body, self.info.left_hand, out['joint_confidence'])
        if body is not None:
            body.mesh_cam = body.mesh_cam * prediction.mirror
        return prediction
