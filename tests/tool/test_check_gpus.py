"""tool/check_gpus.py: every check finds its fault, and the verdict says so."""
import time

import pytest
import torch

from common.errors import UserError
from tests.faults.running_child import ranks
from tool import check_gpus
from tool.gpus import agreement, machine, modes, narrow, simulation, speed
from tool.gpus.results import FINE, SKIPPED, WRONG, NotHere, Row, Wrong, run_check
from tool.gpus.speed import Speed, Speeds

CPU = torch.device('cpu')
GPU = torch.device('cuda', 0)
TWO = [GPU, torch.device('cuda', 1)]


@pytest.fixture
def short(monkeypatch):
    """One case of the network, not three."""
    monkeypatch.setattr(agreement, 'CASES', {'lixel': {}})


@pytest.fixture(scope='module')
def meshes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modes, 'IMAGES', 1)
        found = modes.Meshes()
        found.float32(CPU)
        return found


class Off(torch.nn.Module):
    """A network that finds meshes with one coordinate millimetres off."""

    def __init__(self, net, mm):
        super().__init__()
        self.net = net
        self.mm = mm

    def forward(self, *batch):
        out = self.net(*batch)
        for name, scale in (('mesh_coord_cam', 1e-3), ('joint_coord_img', 32 / 2000)):
            if name in out:
                out[name] = out[name] + torch.tensor([0, 0, self.mm * scale])
        return out


def test_a_device_that_computes_wrong_is_found(short, monkeypatch):
    assert 'differs by 0e+00' in agreement.same_as_cpu(CPU)
    plain = agreement.one_pass
    passes = []

    def one_pass(*args):
        passes.append(plain(*args))
        if len(passes) == 1:
            max(passes[0].gradients.values(), key=lambda value: value.abs().max()).mul_(1.0001)
        return passes[-1]

    monkeypatch.setattr(agreement, 'one_pass', one_pass)
    with pytest.raises(Wrong, match=r'\(lixel\): this device computes wrong'):
        agreement.same_as_cpu(CPU)


@pytest.mark.parametrize('copy', ['broadcast_coalesced', 'scatter', 'gather', 'reduce_add_coalesced'])
def test_copies_that_are_damaged_between_devices_are_found(short, monkeypatch, copy):
    plain = getattr(simulation.Copies, copy)

    def damaged(self, *args, **options):
        out = plain(self, *args, **options)
        part = out
        if not isinstance(part, torch.Tensor):
            part = part[-1]
        if not isinstance(part, torch.Tensor):
            part = part[0]
        with torch.no_grad():
            part.flatten()[0] += 0.01
        return out

    monkeypatch.setattr(simulation.Copies, copy, damaged)
    with pytest.raises(Wrong, match='data are damaged between GPUs: use torchrun, and try NCCL_P2P_DISABLE=1'):
        agreement.replicas_same_as_one([CPU])


def test_replicas_that_agree(short):
    assert agreement.replicas_same_as_one([CPU]).startswith('3 replicas: loss differs by ')


def worker(damage):
    """A process of the check, whose gradients arrive damaged."""
    agreement.CASES = {'lixel': {}}
    plain = narrow.one_pass
    if damage:
        def one_pass(net, model, batch):
            if net is not model:
                model.pose_backbone.conv1.weight.register_hook(lambda gradient: gradient * 1.001)
            return plain(net, model, batch)
        agreement.one_pass = one_pass
    agreement.ddp_worker(CPU)


@pytest.mark.parametrize('damage', [False, True])
def test_processes_against_one(damage, monkeypatch, tmp_path):
    children = ranks(worker, damage)
    assert [child.end() for child in children] == [0, 0], children[0].text()
    line, = (line for line in children[0].text().splitlines() if line.startswith(agreement.MARK))
    launcher(monkeypatch, tmp_path, f"echo '{line}'")
    if damage:
        with pytest.raises(Wrong, match='gradients are damaged between GPUs: try NCCL_P2P_DISABLE=1'):
            agreement.processes_same_as_one([CPU], 'program')
    else:
        assert agreement.processes_same_as_one([CPU], 'program').startswith('2 processes: loss differs by ')


def launcher(monkeypatch, folder, body):
    """Let a shell script take the place of torchrun."""
    path = folder / 'python'
    path.write_text(f'#!/bin/bash\n{body}\n')
    path.chmod(0o755)
    monkeypatch.setattr(agreement.sys, 'executable', str(path))


def test_processes_that_fail_or_hang_are_found(monkeypatch, tmp_path):
    launcher(monkeypatch, tmp_path, 'echo "RuntimeError: NCCL Error 2"; exit 1')
    with pytest.raises(Wrong, match='4 processes failed .RuntimeError: NCCL Error 2.*NCCL_DEBUG'):
        agreement.processes_same_as_one(TWO * 2, 'program')
    monkeypatch.setattr(agreement, 'PATIENCE', 0.2)
    launcher(monkeypatch, tmp_path, 'sleep 60')
    start = time.monotonic()
    with pytest.raises(Wrong, match='2 processes hang: try NCCL_P2P_DISABLE=1'):
        agreement.processes_same_as_one([CPU], 'program')
    assert time.monotonic() - start < 50  # it was killed


def test_the_words_that_start_the_processes(monkeypatch, tmp_path):
    launcher(monkeypatch, tmp_path, 'echo "Error: $@"; exit 1')
    with pytest.raises(Wrong, match='--nproc_per_node=2 program --gpu 0-1 --ddp_worker'):
        agreement.processes_same_as_one(TWO, 'program')


def test_a_step_that_waits_for_the_gpu_is_found(monkeypatch):
    assert modes.no_waiting(CPU) == 'none in a training step'
    plain = modes.train_step
    monkeypatch.setattr(modes, 'train_step', lambda *args: sum(float(loss) for loss in plain(*args).values()))
    with pytest.raises(Wrong, match='lixel stage, amp=none, waits for the GPU: [67] x _local_scalar_dense'):
        modes.no_waiting(CPU)


@pytest.mark.parametrize('mode, mm', [('float32', 1), ('bf16', 4), ('compile', 1)])
def test_a_mode_that_moves_the_mesh_is_found(meshes, monkeypatch, mode, mm):
    """Each of them with a network that is right, and one that is off."""
    monkeypatch.setattr(modes, 'autocast_dtype', lambda amp, device: torch.bfloat16)
    monkeypatch.setattr(torch, 'compile', lambda net: net)
    monkeypatch.setattr(modes, 'gradient_alike', lambda device, amp: 0.9)
    checks = {'float32': lambda: meshes.float32(CPU), 'bf16': lambda: modes.half_precision(meshes, CPU, 'bf16'),
              'compile': lambda: meshes.compiled(CPU)}
    assert checks[mode]().startswith('off by ')
    plain = modes.wrap
    before = dict(meshes.plain)
    monkeypatch.setattr(modes, 'wrap', lambda *args, **options: Off(plain(*args, **options), mm))
    with pytest.raises(Wrong, match='do not use this mode here'):
        checks[mode]()
    meshes.plain = before


def test_a_gradient_in_another_direction_is_found(meshes, monkeypatch):
    monkeypatch.setattr(modes, 'autocast_dtype', lambda amp, device: torch.bfloat16)
    monkeypatch.setattr(modes, 'IMAGES', 2)
    assert 'gradient agrees to 0.' in modes.half_precision(meshes, CPU, 'bf16')
    plain = modes.one_pass

    def one_pass(net, *args):
        found = plain(net, *args)
        if net.dtype:
            found.gradients = {name: -value for name, value in found.gradients.items()}
        return found

    monkeypatch.setattr(modes, 'one_pass', one_pass)
    with pytest.raises(Wrong, match='do not train in bf16 here'):
        modes.half_precision(meshes, CPU, 'bf16')


def test_what_a_device_lacks_is_skipped(meshes):
    rows = []
    run_check('fp16', CPU, lambda: modes.half_precision(meshes, CPU, 'fp16'), rows)
    run_check('speed', CPU, lambda: Speeds().measure(CPU, 'fp16'), rows)
    assert [row.verdict for row in rows] == [SKIPPED, SKIPPED] and 'needs a GPU' in rows[0].detail


def test_memory_that_is_short_halves_the_batch(monkeypatch):
    tried = []

    def one_speed(config, device):
        tried.append(config.train_batch_size)
        if tried[-1] > 4:
            raise torch.OutOfMemoryError('CUDA out of memory')
        return Speed(100.0, tried[-1], 7.5)

    monkeypatch.setattr(speed, 'one_speed', one_speed)
    speeds = Speeds()
    assert speeds.measure(GPU, 'float32') == '100 images/s with 4 per batch, 7.5 GB' and tried == [16, 8, 4]
    assert speeds.best([GPU], ['float32']) == ['train_batch_size=4', 'grad_accum=4']
    monkeypatch.setattr(speed, 'one_speed', lambda *args: (_ for _ in ()).throw(torch.OutOfMemoryError()))
    with pytest.raises(NotHere, match='too little memory'):
        speeds.measure(GPU, 'float32')


def test_the_fastest_mode_that_is_right_everywhere_is_advised():
    speeds = Speeds()
    for mode, images in {'float32': (100, 100), 'bf16': (200, 90), 'fp16': (180, 150)}.items():
        for device, value in zip(TWO, images, strict=True):
            speeds.found[mode, device] = Speed(value, 16, 10.0)
    speeds.found['compile', GPU] = Speed(104, 16, 10.0)
    everything = ['float32', 'bf16', 'fp16', 'compile']
    assert speeds.best(TWO, everything) == ['amp=fp16']
    assert speeds.best([GPU], everything) == ['amp=bf16']
    assert speeds.best(TWO, ['float32', 'compile']) == []
    speeds.found['compile', GPU] = Speed(130, 16, 10.0)
    assert speeds.best(TWO, everything) == ['amp=fp16', 'compile=true']


@pytest.mark.parametrize('faults, code, says', [
    ([], 0, 'all is fine. Train with: torchrun --nproc_per_node 2 main/train.py --gpu 4,5\n'),
    ([('float64 = CPU', 'gpu1')], 1, 'do not train on gpu1'),
    ([('torchrun = one process', 'all 2')], 1, 'what works: python main/train.py --gpu 4,5\n'),
    ([('torchrun = one process', 'all 2'), ('DataParallel = one device', 'all 2')], 1, 'one alone works'),
    ([('bf16', 'gpu0')], 1, 'what works: torchrun'),
])
def test_the_verdict(capsys, faults, code, says):
    rows = [Row('float32', 'gpu0', FINE, ''), *[Row(*fault, WRONG, 'broken') for fault in faults]]
    speeds = Speeds()
    speeds.found['float32', GPU] = Speed(100, 16, 1.0)
    assert check_gpus.conclude('4,5', TWO, rows, speeds) == code
    text = capsys.readouterr().out
    assert says in text and all(f'{name}, {device}: broken' in text for name, device in faults)


def test_the_whole_table(capsys, monkeypatch):
    """Every check runs, one that crashes does not end the others, and the exit code is 1."""
    for place, names in ((agreement, ('same_as_cpu', 'replicas_same_as_one', 'processes_same_as_one')),
                         (modes, ('no_waiting', 'half_precision'))):
        for name in names:
            monkeypatch.setattr(place, name, lambda *args: 'fine')
    monkeypatch.setattr(agreement, 'replicas_same_as_one', lambda used: 1 / 0)

    class Nothing:
        def float32(self, device):
            return 'fine'

        def compiled(self, device):
            return 'fine'

        def measure(self, *args):
            return 'fine'

        def best(self, *args):
            return []

    monkeypatch.setattr(modes, 'Meshes', Nothing)
    monkeypatch.setattr(check_gpus, 'Speeds', Nothing)
    assert check_gpus.main(['--gpu', 'cpu']) == 1
    text = capsys.readouterr().out
    assert 'WRONG   ZeroDivisionError: division by zero' in text and text.count(' ok ') == 11
    assert '1 of 12 checks failed' in text and 'what works: python main/train.py --gpu cpu' in text
    monkeypatch.setattr(agreement, 'replicas_same_as_one', lambda used: 'fine')
    assert check_gpus.main(['--gpu', 'cpu']) == 0


def test_a_gpu_that_is_not_there_is_a_mistake():
    with pytest.raises(UserError, match='finds no GPU here'):
        check_gpus.main([])
    with pytest.raises(UserError, match='write ids such as'):
        check_gpus.main(['--gpu', 'all'])


def test_a_speed_is_measured():
    text = Speeds().measure(CPU, 'float32')
    assert text.endswith('images/s with 2 per batch') and float(text.split()[0]) > 0


def test_little_shared_memory_is_noted(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, 'SHARED', tmp_path)
    monkeypatch.setattr(machine, 'shared_memory', lambda: 0.0625)
    assert '64 MB' in machine.notes()[0] and '--shm-size' in machine.notes()[0]
    monkeypatch.setattr(machine, 'shared_memory', lambda: 8.0)
    assert machine.notes() == []
