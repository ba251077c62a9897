"""What a run says before its first step."""
import json
import logging
from pathlib import Path
from typing import Any

import torch

from common.devices import processes
from common.files.whole import write_text
from common.snapshot.meta import versions
from common.train.loader import TrainBatches
from common.train.optim import Schedule
from common.train.start import Start, TrainConfig

log = logging.getLogger(__name__)
FEW = 1000  # samples; fewer are worth a note
# Settings that may differ between the machines of a run.
OF_A_MACHINE = {'gpu_ids', 'num_thread', 'data_dir', 'human_model_dir', 'output_dir', 'cache_dir', 'use_index', 'vis',
                'tensorboard'}


def compare_processes(config: TrainConfig, start: Start, samples: int, steps: int) -> None:
    """Before the processes of a run train side by side; also waits for those whose data take longer.

    Args:
        config: Config. start: where this process starts. samples: in its data. steps: of an epoch.
    Raises:
        UserError: they differ.
    """
    same = {'the number of training samples': samples, 'the epoch to start at': start.epoch,
            'the step to start at': start.step, 'the first epoch of the stage': start.stage_start}
    settings = config.resolved()
    for name in sorted(settings.keys() - OF_A_MACHINE):
        same[f'the setting {name}'] = settings[name]
    same['steps per epoch'] = steps
    processes.require_same(same)


def report(config: TrainConfig, folder: Path, devices: list[torch.device], datasets: list[Any],
           batches: TrainBatches, model: torch.nn.Module, schedule: Schedule) -> None:
    """Log what the run begins with; the first process also writes all settings to config.json.

    Args:
        config: Config. folder: of the log. devices: of this process.
        datasets: the training sets.
        batches, model, schedule: of the run; `model` with its frozen parameters marked.
    """
    resolved = config.resolved()
    path = folder / 'config.json'
    log.info('settings that are not the default (all: %s): %s', path, changed_settings(config))
    if processes.is_main():
        write_text(path, json.dumps(resolved, indent=2) + '\n')
    counts = ', '.join(f'{type(dataset).__name__} {len(dataset)}' for dataset in datasets)
    world = processes.world_size()
    log.info(', '.join(f'{name} {version}' for name, version in versions().items()))
    log.info('devices: %s; processes: %d', '; '.join(map(device_name, devices)), world)
    if len(devices) > 1:
        log.info('note: torchrun, one process per GPU, is faster: torchrun --nproc_per_node %d main/train.py ...',
                 len(devices))
    log.info('batch: %d per device x %d devices x %d accumulated = %d samples per step, '
             '%d steps per epoch', config.train_batch_size, len(devices) * world, config.grad_accum,
             batches.step_size, batches.steps)
    log.info('training samples: %s', counts)
    parameters = list(model.parameters())
    total = sum(parameter.numel() for parameter in parameters)
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    log.info('parameters: %.1f M, %.1f M of them trained in the %s stage', total / 1e6, trained / 1e6,
             config.stage)
    log.info('learning rate: %s', schedule.table())
    for note in unreached(config, schedule):
        log.info('note: %s', note)
    if batches.length < FEW:
        log.info('note: %d samples are too few to learn from; fine for a trial run', batches.length)


def changed_settings(config: TrainConfig) -> str:
    """'key=value key=value ...' of the settings that differ from their defaults."""
    defaults = type(config)().resolved()
    return ' '.join(f'{key}={value}' for key, value in config.resolved().items() if value != defaults[key])


def unreached(config: TrainConfig, schedule: Schedule) -> list[str]:
    """Settings that the run is too short for, a line each."""
    notes = []
    end = schedule.end_epoch
    steps = (end - schedule.start_epoch) * schedule.steps_per_epoch
    if schedule.warmup > steps:
        notes.append(f'warmup_iters={schedule.warmup}, but the stage has {steps} steps: the learning rate stays '
                     f'below {schedule.lr:g}')
    if config.stage == 'lixel' and config.pose_epochs >= end:
        notes.append(f'pose_epochs={config.pose_epochs}, but the stage ends at epoch {end}: its last epoch trains '
                     'the whole network')
    late = [epoch for epoch in schedule.dec_epochs if epoch >= end]
    if late and schedule.kind == 'step':
        notes.append(f'lr_dec_epoch={schedule.dec_epochs}, but the stage ends at epoch {end}: the learning rate is '
                     f'divided {len(schedule.dec_epochs) - len(late)} times')
    return notes


def device_name(device: torch.device) -> str:
    """The name of a GPU, or the CPU with its number of threads."""
    if device.type == 'cuda':
        return torch.cuda.get_device_name(device)
    return f'CPU, {torch.get_num_threads()} threads'
