"""What each mode costs in accuracy: the bundled network in float32, bf16, fp16, and compiled; and host syncs."""
import functools
from collections.abc import Callable
from typing import Any

import torch

from common.devices.wrap import autocast_dtype, wrap
from common.errors import UserError
from common.human_model import get_human_model
from common.nets.fuse import prepare_for_inference
from common.snapshot import checkpoint, meta
from common.train.loop import train_step
from common.train.optim import make_optimizer
from data import build_dataset
from main.config import ROOT, Config
from main.model import get_model
from tool.gpus.narrow import narrow_config, narrow_model, one_pass, samples
from tool.gpus.results import NotHere, Wrong
from tool.gpus.waits import waits_of

EMBEDDED = ROOT / 'main' / 'embedded'
CPU = torch.device('cpu')
IMAGES = 4
# Mean error of a vertex or joint, millimetres. TF32 and fp16 have ten bits behind the point, bf16 seven.
MOST_MM = {'float32': 0.5, 'bf16': 2.0, 'fp16': 0.5, 'compile': 0.5}
LEAST_ALIKE = 0.5  # cosine of the angle between gradients; a wrong one is at right angles
SCALE = 1024.0  # of the loss in half precision


def bundled(name: str, changes: list[str]) -> tuple[Config, Any]:
    """A bundled network, prepared for inference on the CPU, and its settings with some changed."""
    path = EMBEDDED / f'{name}.pth.tar'
    content = checkpoint.read(path)
    config = Config()
    config.load(name)
    config.override(['synthetic_cache=false', *changes])
    meta.adopt(meta.describe(content, path), config, path, 'param')
    model = get_model(config, get_human_model(config.human_model), 'test')
    checkpoint.load_network(model, content, path)
    return config, prepare_for_inference(model, CPU)


def synthetic_images(config: Config, count: int) -> torch.Tensor:
    """(count, 3, H, W) images of the synthetic test set."""
    dataset = build_dataset('Synthetic', 'test', config)
    return torch.stack([torch.as_tensor(dataset[index][0]['img']) for index in range(count)])


class JointHalf(torch.nn.Module):
    """The half of a network that finds the joints."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: dict[str, torch.Tensor], *rest: Any) -> dict[str, torch.Tensor]:
        """(B, J, 3) joints in lixels."""
        return {'joint_coord_img': self.model.predict_joints(inputs['img'])[1]}


class Meshes:
    """The meshes that the bundled network finds on a few synthetic images, in every mode."""

    def __init__(self) -> None:
        config, model = bundled('nano', [f'synthetic_test_size={IMAGES}'])
        self.images = synthetic_images(config, IMAGES)
        self.exact = self.run(model.double(), CPU, self.images.double())
        self.plain: dict[torch.device, torch.Tensor] = {}  # in float32

    @staticmethod
    @torch.inference_mode()
    def run(net: torch.nn.Module, device: torch.device, images: torch.Tensor) -> torch.Tensor:
        """(count, V, 3) root-relative vertices, millimetres, on the CPU."""
        return net({'img': images.to(device)}, {}, {}, 'test')['mesh_coord_cam'].double().cpu() * 1000

    def float32(self, device: torch.device) -> str:
        """float32 (with TF32 where the GPU has it) against float64 on the CPU."""
        self.plain[device] = self.found(device, 'none')
        return self.compare(self.plain[device], self.exact, 'float32')

    def half(self, device: torch.device, amp: str) -> str:
        """Half precision against float32 on the same device."""
        if device not in self.plain:
            raise NotHere('float32 fails')
        return self.compare(self.found(device, amp), self.plain[device], amp)

    def found(self, device: torch.device, amp: str) -> torch.Tensor:
        """The meshes in a precision."""
        _, model = bundled('nano', [])
        return self.run(wrap(model.to(device), [device], amp), device, self.images)

    def compiled(self, device: torch.device) -> str:
        """The compiled network against the plain one; its joints' half, since compiling takes minutes on a CPU."""
        config, model = bundled('nano', [])
        half = JointHalf(model.to(device))
        try:
            net = wrap(half, [device], compiled=True)
        except UserError as error:
            raise NotHere(str(error)) from error
        batch = {'img': self.images.to(device)}
        with torch.inference_mode():
            lixels = [each(batch, {}, {}, 'test')['joint_coord_img'].double().cpu() for each in (net, half)]
        size = config.bbox_3d_size * 1000 / config.output_hm_shape[0]
        return self.compare(lixels[0] * size, lixels[1] * size, 'compile')

    def compare(self, got: torch.Tensor, want: torch.Tensor, mode: str) -> str:
        """The error in words. Wrong: it is larger than rounding explains."""
        error = float((got - want).norm(dim=-1).mean())
        text = f'off by {error:.2g} mm'
        if not error < MOST_MM[mode]:
            raise Wrong(f'{text}, more than {MOST_MM[mode]} mm: do not use this mode here')
        return text


def half_precision(meshes: Meshes, device: torch.device, amp: str) -> str:
    """bf16 or fp16 against float32: the bundled network's meshes, and the gradient of the narrow network."""
    try:
        dtype = autocast_dtype(amp, device)
    except UserError as error:
        raise NotHere(str(error)) from error
    if dtype is None:
        raise NotHere(f'this CPU has no {amp}')
    text = meshes.half(device, amp)
    alike = gradient_alike(device, amp)
    text += f', gradient agrees to {alike:.2f}'
    if not alike > LEAST_ALIKE:
        raise Wrong(f'{text}, 1 is perfect: do not train in {amp} here')
    return text


def gradient_alike(device: torch.device, amp: str) -> float:
    """Cosine of the angle between the gradients of the narrow network in half precision and in float32."""
    config = narrow_config({})
    gradients = []
    for mode in ('none', amp):
        model = narrow_model(config, torch.float32, device, split=True)
        batch = samples(config, 0, IMAGES, torch.float32, device)
        found = one_pass(wrap(model, [device], mode), model, batch, SCALE).gradients
        gradients.append(torch.cat([value.flatten().double() for value in found.values()]))
    return float(torch.cosine_similarity(gradients[0], gradients[1], dim=0))


def no_waiting(device: torch.device) -> str:
    """Training steps do not wait for the GPU. Wrong: one does."""
    modes = ['none']
    if device.type == 'cuda':
        modes.append('fp16')
    for amp in modes:
        for stage in ('lixel', 'param'):
            step = training_step(device, stage, amp)
            step()
            found = waits_of(step, device)
            if found:
                raise Wrong(f'a training step of the {stage} stage, amp={amp}, waits for the GPU: {found}')
    return 'none in a training step'


def training_step(device: torch.device, stage: str, amp: str) -> Callable[[], object]:
    """A function that makes one step of the narrow network's training, of two batches."""
    config = narrow_config({'stage': stage})
    model = narrow_model(config, torch.float32, device)
    net = wrap(model, [device], amp)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = make_optimizer(config.optimizer, parameters, config.lr, config.weight_decay)
    scaler = torch.amp.GradScaler(device.type, enabled=amp == 'fp16')
    group = [samples(config, first, first + 2, torch.float32, device) for first in (0, 2)]
    return functools.partial(train_step, net, optimizer, scaler, group, device, 1.0)
