"""Inference by onnxruntime beside PyTorch, both on the CPU and with the same number of threads."""

import torch

from common.export.onnx_file import Deployed, OnnxSession, onnx_bytes
from common.human_model import get_human_model
from common.nets.fuse import prepare_for_inference
from main.config import Config
from main.model import get_model
from tool.bench.network import network_inference
from tool.bench.timing import Row, alternate


def measure_onnx(cfg: Config, device: torch.device, repeats: int) -> list[Row]:
    """[Row] of the network as an ONNX file; whatever `device` is, both run on the CPU.

    Raises UserError: a package for ONNX is missing.
    """
    cpu = torch.device('cpu')
    model = get_model(cfg, get_human_model(cfg.human_model, cfg.human_model_dir), 'test')
    height, width = cfg.input_img_shape
    content = onnx_bytes(Deployed(prepare_for_inference(model, cpu)), (height, width), {})
    session = OnnxSession(content)
    images = torch.rand(cfg.test_batch_size, 3, height, width)
    seconds = alternate(
        {'onnx': lambda: session(images), 'torch': network_inference(cfg, [cpu])}, repeats, cpu
    )
    batch = cfg.test_batch_size
    return [
        Row(
            f'onnxruntime on the CPU, batch {batch}',
            batch / seconds['onnx'],
            'images/s',
            'PyTorch on the CPU',
            batch / seconds['torch'],
            seconds['onnx'] / seconds['torch'],
            'x its time',
        )
    ]
