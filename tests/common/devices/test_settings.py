"""Settings that the devices cannot do, and processes that do not belong together, are refused in one line."""
import time
import types

import pytest
import torch

import main.test
import main.train
from common import base
from common.devices import processes, wrap
from common.devices.wrap import autocast_dtype
from common.errors import UserError
from common.snapshot import checkpoint
from common.train import loop
from tests.faults.running_child import ranks, slow, train
from tests.tiny import tiny_config, use_random_data
from tool.gpus.simulation import cpu_devices, simulated_devices


def test_compiling_for_several_gpus_in_one_process_is_refused_before_the_data(monkeypatch, tmp_path):
    monkeypatch.setattr(base, 'devices', lambda: cpu_devices(2))
    monkeypatch.setattr(base, 'build_dataset', lambda *_: pytest.fail('the data are opened'))
    with pytest.raises(UserError, match='compile=true cannot .* on 2 GPUs .*torchrun --nproc_per_node 2'):
        base.Trainer(tiny_config(tmp_path, 'compile=true'))
    with pytest.raises(UserError, match='torchrun'):
        wrap.wrap(torch.nn.Linear(1, 1), cpu_devices(2), compiled=True)


def test_bf16_on_a_gpu_without_it_names_fp16(monkeypatch):
    gpu = torch.device('cuda', 0)
    monkeypatch.setattr(torch.cuda, 'is_bf16_supported', lambda including_emulation=True: including_emulation)
    with pytest.raises(UserError, match='use amp=fp16'):
        autocast_dtype('bf16', gpu)
    assert autocast_dtype('fp16', gpu) == torch.float16
    monkeypatch.setattr(torch.cuda, 'is_bf16_supported', lambda including_emulation=True: True)
    assert autocast_dtype('bf16', gpu) == torch.bfloat16


class Full(torch.nn.Module):
    """Has no memory left on one of the devices."""

    def forward(self, x, *rest):
        raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.')


def test_memory_that_runs_out_in_a_replica_is_said_in_its_own_words():
    with simulated_devices(), pytest.raises(torch.OutOfMemoryError) as error:
        torch.nn.DataParallel(Full(), [0, 1])(torch.zeros(4))
    assert main.train.own_words(error.value) == 'CUDA out of memory. Tried to allocate 2.00 GiB.'


def train_of_own_length(folder, *overrides, lengths):
    """Train on a data set whose length depends on the process."""
    train(folder, *overrides, length=lengths[int(processes.os.environ['RANK'])])


def test_processes_with_other_data_do_not_train_side_by_side(tmp_path):
    children = ranks(train_of_own_length, tmp_path, lengths=[25, 21])
    assert [child.end() for child in children] == [2, 2]
    for child in children:
        assert child.text().splitlines()[-1].startswith('error: the processes of this run differ in the number of '
                                                        'training samples: 25 in process 0, 21 in process 1')
    assert not checkpoint.find_snapshots(tmp_path / 'model_dump')


def train_of_own_settings(folder, *overrides, settings):
    """Train with settings that depend on the process."""
    train(folder, *overrides, settings[int(processes.os.environ['RANK'])], length=5)


def test_processes_with_other_settings_do_not_train_side_by_side(tmp_path):
    children = ranks(train_of_own_settings, tmp_path, settings=['lr=1e-3', 'lr=1e-4'])
    assert [child.end() for child in children] == [2, 2]
    differ = 'differ in the setting lr: 0.001 in process 0, 0.0001 in process 1'
    assert all(differ in child.text() for child in children)


def train_late(folder, *overrides):
    """Train; the data of the second process open later, and the network is wrapped when both are open."""
    mark = folder / 'open'
    plain = loop.wrap
    if processes.os.environ['RANK'] == '1':
        build = base.mix_datasets

        def late(*args):
            time.sleep(1)
            mark.touch()
            return build(*args)
        base.mix_datasets = late

    def wrap_after(*args):
        assert mark.exists(), 'wrapped before all data are open'
        return plain(*args)

    loop.wrap = wrap_after
    train(folder, *overrides, length=5)


def test_a_process_whose_data_open_later_is_waited_for(tmp_path):
    """Before DistributedDataParallel is made, whose own patience is ten minutes with NCCL."""
    children = ranks(train_late, tmp_path, 'lixel_epochs=1')
    assert [child.end() for child in children] == [0, 0], children[0].text()


def test_the_group_is_left_after_success_alone(monkeypatch):
    """With NCCL it waits for the others, which may wait for a process that failed."""
    order = []

    class Run:
        progress = types.SimpleNamespace(epoch=1)

        def __init__(self, *args):
            pass

        def train(self):
            order.append('train')
            if len(order) > 2:
                raise UserError('another process exited')
            return True

        test = train

    monkeypatch.setattr(base, 'Trainer', Run)
    monkeypatch.setattr(processes, 'close', lambda: order.append('close'))
    monkeypatch.setattr('main.train.configure', lambda *args: None)
    main.train.main([])
    assert order == ['train', 'close']
    with pytest.raises(UserError):
        main.train.main([])
    assert order == ['train', 'close', 'train']
    monkeypatch.setattr(base, 'Tester', Run)
    for name in ('configure', 'chosen_snapshot'):
        monkeypatch.setattr(f'main.test.{name}', lambda *args: None)
    with pytest.raises(UserError):
        main.test.main([])
    order.clear()
    main.test.main([])
    assert order == ['train', 'close']


def train_elsewhere(folder, *overrides):
    """Train on; the second process looks for its snapshots in a folder of its own machine."""
    rank = processes.os.environ['RANK']
    train(folder / rank, *overrides, length=5)


def test_processes_at_other_positions_do_not_train_side_by_side(tmp_path):
    """As with an output folder that the machines do not share."""
    for rank, epochs in (('0', 2), ('1', 1)):
        with pytest.MonkeyPatch.context() as patch:
            use_random_data(patch, length=5)
            base.Trainer(tiny_config(tmp_path / rank, f'lixel_epochs={epochs}')).train()
    children = ranks(train_elsewhere, tmp_path, 'continue_train=true', 'lixel_epochs=3')
    assert [child.end() for child in children] == [2, 2]
    for child in children:
        assert 'differ in the epoch to start at: 2 in process 0, 1 in process 1' in child.text()
        assert 'several machines: an output_dir that all of them share' in child.text()


def train_as_with_nccl(folder, *overrides, **options):
    """Train with gloo, but take it for NCCL."""
    processes.whole_after_loss = lambda: False
    train(folder, *overrides, **options)


@pytest.mark.parametrize('backend', ['nccl', 'gloo'])
def test_what_is_whole_after_a_loss(monkeypatch, backend):
    assert processes.whole_after_loss()  # alone
    monkeypatch.setattr(processes, 'active', lambda: True)
    monkeypatch.setattr(processes.dist, 'get_backend', lambda: backend)
    assert processes.whole_after_loss() == (backend == 'gloo')


def test_nothing_is_saved_after_a_loss_with_nccl(tmp_path):
    """A step may have been made with some of the gradients; reading the weights may never end."""
    children = ranks(train_as_with_nccl, tmp_path, 'lixel_epochs=2', length=25, before_step=slow)
    children[0].wait_for('Epoch 1/2 itr 2/6')
    children[1].kill()
    assert children[0].end() == 2 and children[1].end() < 0
    assert 'the newest snapshot is' in children[0].text()
    (newest, path), = checkpoint.find_snapshots(tmp_path / 'model_dump')
    assert newest == 0 and checkpoint.read(path)['state']['step'] == 0
