"""Inference and training step of the network and of the yardstick, torchvision's ResNet-50, as functions to time."""
from collections.abc import Callable

import torch
from torch.nn import functional as F
from torchvision.models import resnet50

from common.devices.wrap import use_channels_last, wrap
from common.errors import UserError
from common.human_model import HumanModel, get_human_model
from common.nets.fuse import prepare_for_inference
from common.train.optim import freeze_and_collect, make_optimizer
from data import files
from main.config import Config
from main.model import get_model
from tool.bench.timing import Row, alternate

SIDE = 256  # of the yardstick's images, pixels
INFERENCE = 'ResNet-50 inference'
TRAINING = 'ResNet-50 training'


def choose_body(cfg: Config) -> str:
    """Keep the body model of a Config if its files are there, else set its free stand-in: as many vertices and joints.

    Returns:
        A line of text about it, or ''.
    """
    name = cfg.human_model
    try:
        body = get_human_model(name, cfg.human_model_dir)
        if name == 'smpl':
            for joints in ('h36m', 'coco'):
                files.read_regressor(cfg.data_dir, joints, body.vertex_num)
        return ''
    except UserError:
        cfg.update({'body_model': 'open_hand' if cfg.is_hand else 'open_body'})
        return f'body model: {cfg.human_model}, of the same size as {name}, whose files are not all there'


def network_inference(cfg: Config, devices: list[torch.device]) -> Callable[[], None]:
    """A function that runs the network once on cfg.test_batch_size images per device."""
    model = get_model(cfg, get_human_model(cfg.human_model, cfg.human_model_dir), 'test')
    channels_last = use_channels_last(cfg, devices[0])
    net = wrap(prepare_for_inference(model, devices[0], channels_last), devices, cfg.amp, cfg.compile)
    batch = cfg.test_batch_size * len(devices)
    inputs = {'img': torch.rand(batch, 3, *cfg.input_img_shape, device=devices[0])}

    @torch.inference_mode()
    def call() -> None:
        net(inputs, {}, {}, 'test')
    return call


def network_training(cfg: Config, devices: list[torch.device], step: bool = False) -> Callable[[], None]:
    """A function that runs forward, losses and backward on cfg.train_batch_size samples per device.

    With `step` the optimiser moves too. Under torchrun gradients are averaged over the processes, as in training.
    """
    human_model = get_human_model(cfg.human_model, cfg.human_model_dir)
    channels_last = use_channels_last(cfg, devices[0])
    model = get_model(cfg, human_model, 'train').place(devices[0], channels_last).train()
    parameters = freeze_and_collect(model)
    optimizer = make_optimizer(cfg.optimizer, parameters, cfg.lr, cfg.weight_decay) if step else None
    net = wrap(model, devices, cfg.amp, cfg.compile, cfg.sync_bn)
    batch = random_batch(human_model, cfg, cfg.train_batch_size * len(devices), devices[0])

    def call() -> None:
        losses = net(*batch, 'train')
        sum(value.mean() for value in losses.values()).backward()
        if optimizer:
            optimizer.step()
        model.zero_grad(set_to_none=True)
    return call


def resnet_inference(batch: int, device: torch.device) -> Callable[[], None]:
    """A function that runs ResNet-50 forward in float32 on `batch` images of 256 px."""
    net = resnet50().to(device).eval()
    img = torch.rand(batch, 3, SIDE, SIDE, device=device)

    @torch.inference_mode()
    def call() -> None:
        net(img)
    return call


def resnet_training(batch: int, device: torch.device, step: bool = False) -> Callable[[], None]:
    """A function that runs ResNet-50 forward and backward in float32, with `step` a step of Adam too."""
    net = resnet50().to(device).train()
    img = torch.rand(batch, 3, SIDE, SIDE, device=device)
    labels = torch.zeros(batch, dtype=torch.int64, device=device)
    optimizer = torch.optim.Adam(net.parameters(), 1e-4, fused=True) if step else None

    def call() -> None:
        F.cross_entropy(net(img), labels).backward()
        if optimizer:
            optimizer.step()
        net.zero_grad(set_to_none=True)
    return call


def random_batch(human_model: HumanModel, cfg: Config, batch: int,
                 device: torch.device) -> tuple[dict[str, torch.Tensor], ...]:
    """(inputs, targets, meta_info) with the shapes of build_targets; everything is valid, coordinates are random."""
    joints = human_model.joint_num
    vertices = human_model.vertex_num
    lixels = cfg.output_hm_shape[0]

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(batch, *shape, device=device)

    targets = {
        'orig_joint_img': lixels * uniform(joints, 3), 'orig_joint_cam': uniform(joints, 3),
        'fit_joint_img': lixels * uniform(joints, 3), 'fit_joint_cam': uniform(joints, 3),
        'fit_mesh_img': lixels * uniform(vertices, 3), 'shape_param': uniform(10),
        'pose_param': uniform(human_model.kinematic_joint_num * 3)}
    shapes = {
        'orig_joint_valid': (joints, 1), 'orig_joint_trunc': (joints, 1), 'is_valid_fit': (),
        'fit_joint_trunc': (joints, 1), 'fit_mesh_trunc': (vertices, 1), 'is_3D': ()}
    meta = {name: torch.ones(batch, *shape, device=device) for name, shape in shapes.items()}
    return {'img': uniform(3, *cfg.input_img_shape)}, targets, meta


def measure_inference(cfg: Config, device: torch.device, repeats: int) -> list[Row]:
    """The speed of the network in inference."""
    batch = cfg.test_batch_size
    calls = {'net': network_inference(cfg, [device]), 'resnet': resnet_inference(batch, device)}
    seconds = alternate(calls, repeats, device)
    return [speed_row(f'inference, batch {batch}', batch, seconds, INFERENCE)]


def measure_training(cfg: Config, device: torch.device, repeats: int) -> list[Row]:
    """The speed of a training step: forward, losses, backward."""
    batch = cfg.train_batch_size
    calls = {'net': network_training(cfg, [device]), 'resnet': resnet_training(batch, device)}
    seconds = alternate(calls, repeats, device)
    return [speed_row(f'training step, batch {batch}', batch, seconds, TRAINING)]


def speed_row(what: str, batch: int, seconds: dict[str, float], yardstick: str) -> Row:
    """Row of images per second, from the seconds that a batch takes in the network (net) and the yardstick (resnet)."""
    return Row(what, batch / seconds['net'], 'images/s', yardstick, batch / seconds['resnet'],
               seconds['net'] / seconds['resnet'], 'x its time')
