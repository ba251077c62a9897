"""A snapshot of a very small random network, images and videos, for the tests of the demo."""
from pathlib import Path

import cv2
import numpy as np
import torch

from common.human_model import get_human_model
from common.snapshot import checkpoint
from common.snapshot import meta as snapshot_meta
from main.model import get_model
from tests.tiny import tiny_config


def write_snapshot(path: Path, *overrides: str) -> Path:
    """A random network's snapshot; its answers spread over the crop instead of sitting in the middle."""
    config = tiny_config(path.parent, 'stage=param', *overrides)
    torch.manual_seed(0)
    human_model = get_human_model(config.human_model)
    model = get_model(config, human_model, 'test')
    with torch.no_grad():
        for head in (model.pose_net, model.mesh_net):
            for name, weight in head.named_parameters():
                if name.startswith('conv_') and name.endswith('weight') and weight.ndim == 3:
                    weight.mul_(300)
    content = {'epoch': 0, 'network': checkpoint.pack_network(model),
               'meta': snapshot_meta.record(config, human_model, 0)}
    checkpoint.write(path, content)
    return path


def blobs(height: int, width: int, seed: int = 0) -> np.ndarray:
    """A colourful image (H, W, 3) uint8 RGB."""
    small = np.random.default_rng(seed).integers(0, 255, (9, 11, 3), np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)


def write_image(path: Path, height: int = 240, width: int = 180, seed: int = 0) -> Path:
    """Write `blobs` as an image file; returns its path."""
    cv2.imwrite(str(path), blobs(height, width, seed)[..., ::-1])
    return path


def write_webm(path: Path, times: list[int], height: int = 48, width: int = 64) -> Path:
    """Write a VP8 video as browsers record it: frames at the given milliseconds (24 at most), no durations."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'VP80'), 25, (width, height))
    for _ in times:
        writer.write(blobs(height, width)[..., ::-1])
    writer.release()
    data = bytearray(path.read_bytes())
    for element, size in ((b'\x23\xe3\x83\x84', 4), (b'\x44\x89\x88', 8)):  # a frame's and the file's duration
        start = data.index(element)
        length = len(element) + size
        data[start:start + length] = b'\xec' + bytes([0x80 + length - 2]) + bytes(length - 2)  # nothing
    at = data.index(b'\x1f\x43\xb6\x75') + 4
    at += 9 - data[at].bit_length()  # a number's length: the leading zero bits of its first byte
    for time in times:
        while data[at] != 0xa3:  # a block
            at += 2 + data[at + 1] - 0x80
        bytes_of_size = 9 - data[at + 1].bit_length()
        size = int.from_bytes(data[at + 1:at + 1 + bytes_of_size], 'big') - (1 << 7 * bytes_of_size)
        at += 1 + bytes_of_size
        data[at + 1:at + 3] = time.to_bytes(2, 'big')  # after the number of the track
        at += size
    path.write_bytes(data)
    return path


def write_video(path: Path, frames: int, height: int = 48, width: int = 64) -> Path:
    """Write a Motion-JPEG video of 25 frames per second; returns its path."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'MJPG'), 25, (width, height))
    for _ in range(frames):
        writer.write(blobs(height, width)[..., ::-1])
    writer.release()
    return path
