"""What a run prints before its first step."""
import torch
import yaml

from common.devices import processes
from common.snapshot.meta import versions


def startup(config, devices, datasets, batches, model, schedule):
    """Lines on software, devices, batch sizes, data, network and learning rate.

    Args:
        datasets: {name: number of samples}; batches: TrainBatches; schedule: Schedule.
    """
    names = [torch.cuda.get_device_name(d) if d.type == 'cuda' else f'CPU, {torch.get_num_threads()} threads'
             for d in devices]
    replicas = len(devices) * processes.world_size()
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    lines = [', '.join(f'{name} {version}' for name, version in versions().items()),
             f'devices: {"; ".join(names)}; processes: {processes.world_size()}',
             f'batch: {config.train_batch_size} per device x {replicas} devices x {config.grad_accum} accumulated = '
             f'{batches.step_size} samples per step, {batches.steps} steps per epoch',
             'training samples: ' + ', '.join(f'{name} {count}' for name, count in datasets.items()),
             f'parameters: {sum(p.numel() for p in model.parameters()) / 1e6:.1f} M, '
             f'{trained / 1e6:.1f} M of them trained in the {config.stage} stage',
             f'learning rate: {schedule.table()}']
    if batches.length < 1000:
        lines.append(f'note: {batches.length} samples are too few to learn from; fine for a trial run')
    return '\n'.join(lines)


def settings(config):
    """The resolved configuration as YAML text."""
    return yaml.safe_dump(config.resolved(), sort_keys=False, default_flow_style=None, width=120)
