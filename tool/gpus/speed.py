"""Images per second and memory of a training step in each mode, and the settings that follow from all checks."""
from dataclasses import dataclass

import torch

from common.devices.wrap import autocast_dtype
from common.errors import UserError
from main.config import Config
from tool.bench.network import choose_body, network_training
from tool.bench.timing import timed
from tool.gpus.narrow import NARROW
from tool.gpus.results import NotHere

STEPS = 5  # that are timed
WORTH = 1.05  # times as fast: less is no reason for another mode
GB = 2 ** 30
MODES: dict[str, dict[str, object]] = {'float32': {}, 'bf16': {'amp': 'bf16'}, 'fp16': {'amp': 'fp16'},
                                       'compile': {'compile': True}}


@dataclass
class Speed:
    """Of one mode on one device."""
    images: float  # per second
    batch: int  # samples, of which so many fit
    memory: float | None  # peak, GB; None on a CPU


class Speeds:
    """Measures the training steps of all modes: on GPUs of the published network for bodies, else of a narrow one."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, torch.device], Speed] = {}

    def measure(self, device: torch.device, mode: str) -> str:
        """Images per second and memory in words. NotHere: the device does not have the mode, or too little memory."""
        config = Config()
        if device.type == 'cpu' and mode == 'compile':
            raise NotHere('minutes on a CPU')
        if device.type == 'cpu':
            config.update({**NARROW, 'train_batch_size': 2})
        config.update({'pretrained_backbone': False, **MODES[mode]})
        choose_body(config)
        try:
            if autocast_dtype(config.amp, device) is None and config.amp != 'none':
                raise NotHere(f'this CPU has no {config.amp}')
            speed = self.largest_batch(config, device)
        except UserError as error:
            raise NotHere(str(error)) from error
        self.found[mode, device] = speed
        memory = ''
        if speed.memory is not None:
            memory = f', {speed.memory:.1f} GB'
        return f'{speed.images:.3g} images/s with {speed.batch} per batch{memory}'

    def largest_batch(self, config: Config, device: torch.device) -> Speed:
        """The speed with the default batch, or with half of it and so on where that does not fit."""
        while True:
            try:
                return one_speed(config, device)
            except torch.OutOfMemoryError as error:
                if config.train_batch_size < 4:
                    raise NotHere('too little memory for the published network') from error
            config.update({'train_batch_size': config.train_batch_size // 2})
            torch.cuda.empty_cache()

    def best(self, devices: list[torch.device], usable: list[str]) -> list[str]:
        """The settings to train with: the fastest mode that computes right, by the slowest device.

        Args:
            devices: all that are used. usable: the modes that passed their checks.
        """
        chosen = 'float32'
        for mode in ('bf16', 'fp16'):
            if mode in usable and self.slowest(mode, devices) > WORTH * self.slowest(chosen, devices):
                chosen = mode
        settings = []
        if chosen != 'float32':
            settings.append(f'amp={chosen}')
        first = devices[:1]
        if 'compile' in usable and self.slowest('compile', first) > WORTH * self.slowest('float32', first):
            settings.append('compile=true')
        batches = [self.found[chosen, device].batch for device in devices if (chosen, device) in self.found]
        wanted = Config().train_batch_size
        if devices[0].type == 'cuda' and batches and min(batches) < wanted:
            settings += [f'train_batch_size={min(batches)}', f'grad_accum={wanted // min(batches)}']
        return settings

    def slowest(self, mode: str, devices: list[torch.device]) -> float:
        """Images per second of a mode on the slowest of some devices; 0 where one does not have it."""
        speeds = [self.found[mode, device].images for device in devices if (mode, device) in self.found]
        if len(speeds) < len(devices):
            return 0.0
        return min(speeds)


def one_speed(config: Config, device: torch.device) -> Speed:
    """The speed of one mode, after steps that do not count."""
    if device.type == 'cuda':
        torch.cuda.reset_peak_memory_stats(device)
    step = network_training(config, [device], step=True)
    count = STEPS
    if device.type == 'cpu':
        count = 1
    else:
        step()
    step()
    seconds = timed(step, count, device)
    memory = None
    if device.type == 'cuda':
        memory = torch.cuda.max_memory_allocated(device) / GB
    return Speed(config.train_batch_size / seconds, config.train_batch_size, memory)
