"""The network as one ONNX file: an image crop in; joints, mesh and body out, without PyTorch."""

import contextlib
import io
import logging
import os
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast

import torch
from torch import nn

from common.errors import optional_import
from common.nets.layer import Upsample

INPUT = 'image'
OUTPUTS = {  # name -> (meaning, unit)
    'joints_lixel': ('(batch, J, 3) joints: x, y in the crop, z in depth', 'lixels'),
    'mesh_lixel': ('(batch, V, 3) vertices: x, y in the crop, z in depth', 'lixels'),
    'pose': (
        '(batch, K * 3) axis-angle of each joint relative to its parent, the root first',
        'radians',
    ),
    'betas': ('(batch, 10) shape of the body model', 'standard deviations'),
    'vertices': (
        '(batch, V, 3) of the body model, relative to the root joint, x right, y down, z forward',
        'metres',
    ),
    'joints': (
        '(batch, J, 3) of the body model, relative to the root joint, x right, y down, z forward',
        'metres',
    ),
}
LIXEL_OUTPUTS = ('joints_lixel', 'mesh_lixel')
EXAMPLES = 3  # images that the network is traced with: any other number than 0, 1 and its own sizes


class Deployed(nn.Module):
    """The network as a function of a crop, with its results in the order of OUTPUTS.

    Args:
        model: the I2L-MeshNet in eval mode; its stage says whether there are parameters. It is
            changed: its up-sampling becomes PyTorch's own layer, which other programs have too.
    """

    model: Any  # main.model.Model, which this folder may not know

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.names = LIXEL_OUTPUTS if model.stage == 'lixel' else tuple(OUTPUTS)
        for module in model.modules():
            if isinstance(module, Upsample):
                # its base class has the same weights; mypy takes classes for fixed
                module.__class__ = nn.ConvTranspose2d  # type: ignore[assignment]

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(B, 3, H, W) RGB in 0..1 -> a tensor for each of `names`."""
        model = self.model
        stem, joints, _ = model.predict_joints(image)
        mesh = model.predict_mesh(stem, joints)
        if model.stage == 'lixel':
            return joints, mesh
        joints_of_mesh = model.human_model.joint_regressor @ mesh
        return joints, mesh, *model.predict_params(joints_of_mesh)


def onnx_bytes(network: Deployed, image_shape: tuple[int, ...], facts: dict[str, str]) -> bytes:
    """The content of an ONNX file with a free batch size.

    Args:
        network: on the CPU. image_shape: (height, width) of the crop, pixels. facts: further
            entries of the file's metadata.
    Raises:
        UserError: onnx or onnxscript is missing.
    """
    onnx = onnx_library()
    image = torch.rand(EXAMPLES, 3, *image_shape)
    shapes = {'image': {0: torch.export.Dim('batch', min=1, max=2**15)}}
    with quiet(), torch.no_grad():
        program = torch.onnx.export(
            network,
            (image,),
            dynamo=True,
            input_names=[INPUT],
            output_names=list(network.names),
            dynamic_shapes=shapes,
            external_data=False,
        )
    proto = cast(torch.onnx.ONNXProgram, program).model_proto
    crop = f'(batch, 3, {image_shape[0]}, {image_shape[1]}) RGB crop around one person, 0..1'
    described = {
        INPUT: crop,
        **{name: f'{OUTPUTS[name][0]}; {OUTPUTS[name][1]}' for name in network.names},
    }
    for value in (*proto.graph.input, *proto.graph.output):
        value.doc_string = described[value.name]
    onnx.helper.set_model_props(proto, {**facts, **described})
    return proto.SerializeToString()


def onnx_library() -> ModuleType:
    """onnx. UserError: it or onnxscript, which PyTorch writes such files with, is not installed."""
    optional_import('onnxscript', 'writing ONNX files')
    return optional_import('onnx', 'writing ONNX files')


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without PyTorch's reports of its steps and its warnings about its own insides."""
    logger = logging.getLogger('torch.onnx')
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter('ignore')
            yield
    finally:
        logger.setLevel(level)


class OnnxSession:
    """onnxruntime on the CPU: called with images (B, 3, H, W), it gives {output name: array}.

    Args:
        source: a file's path or content. It runs on as many threads as PyTorch does.
    Raises:
        UserError: onnxruntime is missing.
    """

    def __init__(self, source: str | os.PathLike | bytes) -> None:
        runtime = optional_import('onnxruntime', 'running ONNX files')
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        source = source if isinstance(source, bytes) else os.fspath(source)
        self.session = runtime.InferenceSession(source, options, providers=['CPUExecutionProvider'])
        self.names = [output.name for output in self.session.get_outputs()]

    def __call__(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        values = self.session.run(self.names, {INPUT: images.numpy()})
        return {
            name: torch.from_numpy(value) for name, value in zip(self.names, values, strict=True)
        }


def differences(network: Deployed, session: OnnxSession, images: torch.Tensor) -> dict[str, float]:
    """{output name: largest difference of onnxruntime from PyTorch} for images (B, 3, H, W)."""
    with torch.inference_mode():
        expected = dict(zip(network.names, network(images), strict=True))
    found = session(images)
    return {name: float((found[name] - expected[name]).abs().max()) for name in network.names}
