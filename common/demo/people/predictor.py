"""The network on people of one or many pictures: crops in batches, predictions out, in order."""
import time

import cv2
import numpy as np
import torch

from common.demo.people.prediction import Prediction
from common.errors import UserError
from common.utils.preprocessing import crop_image, process_bbox

PIXELS_WAITING = 1 << 26  # pixels of pictures kept until their batch is full: bounds the memory for huge photos


class Predictor:
    """Runs the network on boxes.

    Args:
        model: the network in test mode, `model(inputs, targets, meta_info, 'test')`.
        human_model: its HumanModel. codec: the LixelCodec of its input.
        input_img_shape: (height, width) of the crop, pixels.
        batch_size: people per forward pass.
        device: torch device of the input.
        left_hand: mirror the picture before the network, and the answer after it.
    """

    def __init__(self, model, human_model, codec, input_img_shape, batch_size=16, device='cpu', left_hand=False):
        self.model, self.human_model, self.codec = model.eval(), human_model, codec
        self.input_img_shape, self.batch_size, self.device = tuple(input_img_shape), batch_size, device
        self.left_hand = left_hand
        self.faces = human_model.face[:, ::-1] if left_hand else human_model.face  # outward again after mirroring
        self.network_time = 0.  # seconds spent in the network

    def crop(self, image, boxes):
        """(H, W, 3) uint8 RGB, (4,) xywh boxes -> per box: patch (3, h, w) float32, its affine back, the enlarged box.

        All are of the mirrored picture for a left hand. UserError for a box with too little inside the picture.
        """
        height, width = image.shape[:2]
        image = cv2.flip(image, 1) if self.left_hand else image
        crops = []
        for box in boxes:
            x, y, w, h = (float(v) for v in box)
            crop_box = process_bbox((width - x - w if self.left_hand else x, y, w, h), width, height,
                                    self.input_img_shape)
            if crop_box is None:
                raise UserError(f'the box {x:g} {y:g} {w:g} {h:g} covers too little of the picture of '
                                f'{width} x {height} pixels')
            patch, _, back = crop_image(image, crop_box, None, self.input_img_shape)
            crops.append((patch, back, crop_box))
        return crops

    @torch.inference_mode()
    def run(self, patches):
        """Patches (B, 3, h, w) -> the network's outputs as float32 numpy arrays. UserError if one is not finite."""
        started = time.perf_counter()
        out = self.model({'img': torch.from_numpy(patches).to(self.device)}, {}, {}, 'test')
        if 'pose_param' in out:
            mesh, _ = self.human_model(out['pose_param'].float(), out['shape_param'].float(), None)
            out['model_root'] = self.human_model.joint_regressor[self.human_model.root_joint_idx] @ mesh
        out = {key: value.float().cpu().numpy() for key, value in out.items()}
        self.network_time += time.perf_counter() - started
        if not all(np.isfinite(value).all() for value in out.values()):
            raise UserError('the network gives numbers that are not finite: the snapshot is broken')
        return out

    def predict(self, image, boxes):
        """All people of one picture: (H, W, 3) uint8 RGB and its boxes -> list of Prediction."""
        return next(iter(self.stream([(image, boxes)])))[1]

    def stream(self, pictures, on_batch=None):
        """Iterate over (picture, predictions) in order, batches filled across pictures.

        pictures: iterable of (image, boxes), or of objects with `image` and `boxes`. on_batch: called with the number
        of people after every forward pass.
        """
        waiting, crops, pixels = [], [], 0
        for picture in pictures:
            image, boxes = picture if isinstance(picture, tuple) else (picture.image, picture.boxes)
            waiting.append((picture, image.shape[1], boxes))
            crops += self.crop(image, boxes)
            pixels += image.size // 3
            if len(crops) >= self.batch_size or pixels > PIXELS_WAITING:
                yield from self._flush(waiting, crops, on_batch)
                waiting, crops, pixels = [], [], 0
        yield from self._flush(waiting, crops, on_batch)

    def _flush(self, waiting, crops, on_batch):
        """Run all crops, then hand out the waiting pictures with their people."""
        rows = []
        for start in range(0, len(crops), self.batch_size):
            part = crops[start:start + self.batch_size]
            out = self.run(np.stack([patch for patch, _, _ in part]))
            rows += [{key: value[i] for key, value in out.items()} for i in range(len(part))]
            if on_batch:
                on_batch(len(part))
        done = 0
        for picture, width, boxes in waiting:
            people = [self._prediction(rows[done + i], crops[done + i], box, width) for i, box in enumerate(boxes)]
            done += len(boxes)
            yield picture, people

    def _prediction(self, row, crop, box, width):
        """One row of the network's output, in the picture's pixels (mirrored back for a left hand)."""
        _, back, crop_box = crop
        mesh_img = self.codec.decode(row['mesh_coord_img'], 0., back).astype(np.float32)
        mesh_cam = row.get('mesh_coord_cam')
        crop_box = crop_box.copy()
        if self.left_hand:
            mesh_img[:, 0] = width - 1 - mesh_img[:, 0]
            crop_box[0] = width - crop_box[0] - crop_box[2]
            mesh_cam = None if mesh_cam is None else mesh_cam * np.float32([-1, 1, 1])
        return Prediction(np.array(box, np.float32), crop_box, mesh_img, row.get('pose_param'), row.get('shape_param'),
                          mesh_cam, row.get('model_root'), self.left_hand)
