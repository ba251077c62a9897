"""The training engine on a tiny network: stages, snapshots, exact resume, interruption."""
import json
import os
import signal

import numpy as np
import pytest
import torch

from common import base
from common.errors import UserError
from common.snapshot import checkpoint
from tests.tiny import RandomDataset, calling, tiny_config, use_random_data

COSINE = ['lr_schedule=cosine', 'optimizer=adamw', 'warmup_iters=3', 'clip_grad=1', 'weight_decay=0.01', 'grad_accum=2']


def read_losses(folder):
    """[(epoch, step, loss, lr), ...] of all runs in a folder."""
    rows = [json.loads(line) for line in (folder / 'log' / 'metrics.jsonl').read_text().splitlines()]
    return [(row['epoch'], row['step'], row['loss'], row['lr']) for row in rows]


def train(folder, *overrides, stop_after=None, weights=None, kind=signal.SIGTERM, times=1):
    """Run a Trainer; `stop_after`: a signal arrives during that step. Returns it, and whether it finished."""
    trainer = base.Trainer(tiny_config(folder, *overrides), weights)

    def before_step(number):
        if number == stop_after:
            for _ in range(times):
                os.kill(os.getpid(), kind)

    with calling(before_step):
        return trainer, trainer.train()


def snapshot(folder, epoch):
    return checkpoint.read(checkpoint.snapshot_path(folder / 'model_dump', epoch))


def same_tensors(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(autouse=True)
def random_data(monkeypatch):
    use_random_data(monkeypatch)


def test_two_and_two_epochs_are_four(tmp_path):
    train(tmp_path / 'whole', 'end_epoch=4', 'lr_dec_epoch=[1,3]')
    train(tmp_path / 'parts', 'end_epoch=2', 'lr_dec_epoch=[1,3]')
    train(tmp_path / 'parts', 'end_epoch=4', 'lr_dec_epoch=[1,3]', 'continue_train=true')
    assert len(read_losses(tmp_path / 'whole')) == 16  # 9 samples, batches of 2, the last one dropped: 4 steps
    assert read_losses(tmp_path / 'whole') == read_losses(tmp_path / 'parts')
    whole, parts = snapshot(tmp_path / 'whole', 3), snapshot(tmp_path / 'parts', 3)
    assert same_tensors(whole['network'], parts['network'])
    moments = [content['optimizer']['state'][0]['exp_avg'] for content in (whole, parts)]
    assert torch.equal(*moments)


@pytest.mark.parametrize('workers', [0, 1, 2])
def test_a_stop_within_an_epoch_changes_nothing(tmp_path, workers):
    settings = [*COSINE, f'num_thread={workers}']
    train(tmp_path / 'whole', *settings)
    _, finished = train(tmp_path / 'parts', *settings, stop_after=2 * 1)
    assert not finished
    _, finished = train(tmp_path / 'parts', *settings, 'continue_train=true')
    assert finished
    assert read_losses(tmp_path / 'whole') == read_losses(tmp_path / 'parts')
    assert same_tensors(snapshot(tmp_path / 'whole', 1)['network'], snapshot(tmp_path / 'parts', 1)['network'])


@pytest.mark.parametrize(('kind', 'times'), [(signal.SIGINT, 1), (signal.SIGHUP, 2), (signal.SIGUSR1, 2)])
def test_every_request_to_stop_saves_the_step_before_it_ends(tmp_path, kind, times):
    before = signal.getsignal(kind)
    _, finished = train(tmp_path, stop_after=2, kind=kind, times=times)
    assert not finished and signal.getsignal(kind) is before
    assert snapshot(tmp_path, 0)['state']['step'] == 2


def test_a_run_that_ignores_closed_terminals_goes_on(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        assert train(tmp_path, 'end_epoch=1', stop_after=2, kind=signal.SIGHUP)[1]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_snapshot_within_an_epoch_counts_the_epochs_before(tmp_path):
    train(tmp_path, stop_after=6)
    content = snapshot(tmp_path, 1)
    assert (content['epoch'], content['state']['step']) == (0, 2)
    _, _ = train(tmp_path, 'continue_train=true', 'train_batch_size=3')  # the step means nothing in other batches
    assert [row[:2] for row in read_losses(tmp_path)][6:] == [(1, 0), (1, 1), (1, 2)]


def test_param_stage_trains_the_regressor_alone(tmp_path):
    train(tmp_path, 'end_epoch=1')
    trainer, _ = train(tmp_path, 'stage=param', 'end_epoch=3', 'freeze_bn=true', 'continue_train=true')
    before, after = snapshot(tmp_path, 0), snapshot(tmp_path, 2)
    changed = {name.split('.')[1] for name in before['network']
               if not torch.equal(before['network'][name], after['network'][name])}
    assert changed == {'param_regressor'}
    assert [row[0] for row in read_losses(tmp_path)][4::4] == [1, 2]
    assert after['meta']['stage'] == 'param' and after['meta']['stage_start'] == 1
    assert len(after['optimizer']['state']) == len(list(trainer.model.param_regressor.parameters()))


def test_param_stage_moves_batchnorm_by_default(tmp_path):
    train(tmp_path, 'end_epoch=1')
    train(tmp_path, 'stage=param', 'end_epoch=2', 'continue_train=true')
    before, after = snapshot(tmp_path, 0)['network'], snapshot(tmp_path, 1)['network']
    changed = {name for name in before if 'param_regressor' not in name and not torch.equal(before[name], after[name])}
    assert changed and all('running_' in name or 'num_batches' in name for name in changed)


def test_a_cosine_param_stage_has_its_own_length(tmp_path):
    train(tmp_path, 'end_epoch=1', 'lr_schedule=cosine')
    trainer, _ = train(tmp_path, 'stage=param', 'lr_schedule=cosine', 'continue_train=true')
    assert (trainer.schedule.start_epoch, trainer.schedule.end_epoch) == (1, 3)
    rates = [row[3] for row in read_losses(tmp_path)][4:]
    assert rates[0] == 1e-3 and rates == sorted(rates, reverse=True) and 0 < rates[-1] < 1e-4


def test_snapshots_hold_the_network_under_published_names(tmp_path):
    trainer, _ = train(tmp_path, 'end_epoch=1')
    content = snapshot(tmp_path, 0)
    assert all(name.startswith('module.') and 'human_model' not in name for name in content['network'])
    assert {name.removeprefix('module.') for name in content['network']} == set(trainer.model.state_dict())
    assert content['meta']['config']['train_batch_size'] == 2 and content['meta']['human_model'] == 'open_body'
    saved = json.loads((tmp_path / 'log' / 'config.json').read_text())
    assert saved == content['meta']['config'] and saved['end_epoch'] == 1


def test_what_to_train_from(tmp_path):
    with pytest.raises(UserError, match='first python main/train.py --stage lixel'):
        train(tmp_path, 'stage=param')
    with pytest.raises(UserError, match='no snapshot_<epoch>'):
        train(tmp_path, 'continue_train=true')
    train(tmp_path, 'end_epoch=1')
    train(tmp_path, 'stage=param', 'end_epoch=2', 'continue_train=true')
    with pytest.raises(UserError, match='is of the param stage'):
        train(tmp_path, 'continue_train=true')
    with pytest.raises(UserError, match='head_width 4 there, 8 here'):
        train(tmp_path, 'stage=param', 'continue_train=true', 'head_width=8')
    trainer, _ = train(tmp_path / 'fine', 'end_epoch=1', weights=tmp_path / 'model_dump' / 'snapshot_0.pth.tar')
    assert read_losses(tmp_path / 'fine')[0][:2] == (0, 0)


def test_a_damaged_newest_snapshot_is_passed_over(tmp_path, capsys):
    train(tmp_path, 'end_epoch=2')
    newest = tmp_path / 'model_dump' / 'snapshot_1.pth.tar'
    newest.write_bytes(newest.read_bytes()[:1000])
    train(tmp_path, 'end_epoch=2', 'continue_train=true')
    assert 'snapshot_1.pth.tar is not a checkpoint: it is truncated or damaged' in capsys.readouterr().err
    rows = read_losses(tmp_path)
    assert rows[4:8] == rows[8:]


def test_what_is_left_after_a_kill_within_an_epoch(tmp_path):
    """Nobody can save at a power cut: the snapshots of `snapshot_every` are what there is."""
    train(tmp_path / 'whole', 'end_epoch=2')
    trainer = base.Trainer(tiny_config(tmp_path / 'cut', 'end_epoch=2', 'snapshot_every=3'))
    with pytest.raises(ZeroDivisionError), calling(lambda number: 1 / (8 - number)):
        trainer.train()
    state = snapshot(tmp_path / 'cut', 1)['state']
    assert state['step'] == 3 and len(checkpoint.find_snapshots(tmp_path / 'cut' / 'model_dump')) == 2
    train(tmp_path / 'cut', 'end_epoch=2', 'continue_train=true')
    rows = read_losses(tmp_path / 'cut')
    assert rows[7:] == read_losses(tmp_path / 'whole')[7:] and len(rows) == 8


def test_a_lixel_epoch_that_has_not_ended_is_not_written_over(tmp_path, capsys):
    train(tmp_path, stop_after=2)
    with pytest.raises(UserError, match=r'snapshot_0.pth.tar is from the middle of epoch 0 .*--stage lixel --continue'):
        train(tmp_path, 'stage=param', 'continue_train=true')
    path = checkpoint.snapshot_path(tmp_path / 'model_dump', 0)
    before = path.read_bytes()
    train(tmp_path, 'stage=param', 'end_epoch=2', 'freeze_bn=true', weights=path)
    assert path.read_bytes() == before
    capsys.readouterr()
    base.Tester(tiny_config(tmp_path), path)
    assert 'snapshot_0.pth.tar is from the middle of an epoch, after step 2' in capsys.readouterr().err


def test_none_of_the_snapshots_can_be_read(tmp_path, capsys):
    folder = tmp_path / 'model_dump'
    folder.mkdir()
    for epoch in (0, 1):
        checkpoint.snapshot_path(folder, epoch).write_bytes(b'')
    with pytest.raises(UserError, match=r'none of the snapshots in .* can be read \(2, the reasons are above'):
        train(tmp_path, 'continue_train=true')
    err = capsys.readouterr().err
    assert 'snapshot_0.pth.tar is not a checkpoint' in err and err.count('trying the one before it') == 1


def test_what_fails_at_once_fails_before_the_data_are_opened(tmp_path, monkeypatch):
    """Opening them may take minutes: images that are drawn, annotations of gigabytes."""
    train(tmp_path, 'end_epoch=1')
    monkeypatch.setattr(base, 'build_dataset', lambda *_: pytest.fail('the data are opened'))
    with pytest.raises(UserError, match='the ImageNet weights in .*nowhere.pth cannot be loaded: it cannot be read'):
        train(tmp_path / 'new', 'pretrained_backbone=nowhere.pth')
    path = checkpoint.snapshot_path(tmp_path / 'model_dump', 0)
    content = checkpoint.read(path)
    del content['network']['module.mesh_net.conv_x.0.weight']
    checkpoint.write(path, content)
    (tmp_path / 'page.pth.tar').write_text('<html>')
    with pytest.raises(UserError, match='page.pth.tar is not a checkpoint'):
        train(tmp_path, weights=tmp_path / 'page.pth.tar')
    with pytest.raises(UserError, match='no snapshot_<epoch>'):
        train(tmp_path / 'other', 'continue_train=true')
    with pytest.raises(UserError, match='snapshot_0.pth.tar'):
        train(tmp_path, 'continue_train=true', 'end_epoch=2')
    with pytest.raises(UserError, match='snapshot_0.pth.tar'):
        base.Tester(tiny_config(tmp_path), path)


def test_too_few_samples_and_missing_data(tmp_path, monkeypatch):
    with pytest.raises(UserError, match='has 9 samples, but one step takes 20'):
        train(tmp_path, 'train_batch_size=10', 'grad_accum=2')

    def missing(name, split, config):
        raise UserError(f'{name} is not there')

    monkeypatch.setattr(base, 'build_dataset', missing)
    with pytest.raises(UserError) as error:
        train(tmp_path, 'trainset_3d=[Human36M,MuCo]', 'trainset_2d=[MSCOCO]')
    for word in ('Human36M is not there', 'MuCo is not there', 'MSCOCO is not there', '--cfg nano'):
        assert word in str(error.value)


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    with pytest.raises(UserError, match='not finite at epoch 0 itr .*loss_mesh_fit: nan'):
        train(tmp_path, 'lr=1e30')
    assert not checkpoint.find_snapshots(tmp_path / 'model_dump')


def test_only_the_last_snapshots_are_kept(tmp_path):
    train(tmp_path, 'end_epoch=4', 'keep_snapshots=2')
    assert [epoch for epoch, _ in checkpoint.find_snapshots(tmp_path / 'model_dump')] == [2, 3]


def test_test_counts_every_sample_once(tmp_path):
    train(tmp_path, 'end_epoch=1')
    config = tiny_config(tmp_path, 'resnet_width=8')  # the network's shape comes from the snapshot
    tester = base.Tester(config, tmp_path / 'model_dump' / 'snapshot_0.pth.tar')
    assert tester.test() == {'row': 4.0}
    assert tester.dataset.evaluated == list(range(9))
    assert (tester.cfg.resnet_width, config.resnet_width) == (4, 8)  # the caller's configuration stays as it is
    written = json.loads((tmp_path / 'result' / 'Synthetic_0.json').read_text())
    assert written['metrics'] == {'row': 4.0} and (written['stage'], written['epoch']) == ('lixel', 0)
    with pytest.raises(UserError, match='trained in the lixel stage only'):
        base.Tester(config, tmp_path / 'model_dump' / 'snapshot_0.pth.tar', stage='param')


@pytest.mark.parametrize('settings', [(), ('keep_snapshots=1', 'lixel_epochs=3'), ('stage=param', 'lixel_epochs=1')])
def test_a_new_run_never_touches_the_snapshots_of_an_earlier_one(tmp_path, settings):
    """Not from weights either, of the lixel stage, or with snapshots of the param stage already there."""
    train(tmp_path, 'lixel_epochs=2')
    folder = tmp_path / 'model_dump'
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(UserError, match='of an earlier run, up to epoch 1: .* --continue, .* output_dir=FOLDER'):
        config = tiny_config(tmp_path, *settings)
        base.Trainer(config, checkpoint.snapshot_path(folder, 0)).train()
    if not settings:
        with pytest.raises(UserError, match='of an earlier run'):
            train(tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_param_stage_may_follow_beside_the_snapshots_that_it_starts_from(tmp_path):
    train(tmp_path, 'lixel_epochs=1')
    config = tiny_config(tmp_path, 'stage=param', 'lixel_epochs=1', 'param_epochs=1')
    base.Trainer(config, checkpoint.snapshot_path(tmp_path / 'model_dump', 0)).train()
    assert [epoch for epoch, _ in checkpoint.find_snapshots(tmp_path / 'model_dump')] == [0, 1]


def test_a_fresh_run_sets_the_old_records_aside_with_its_first_step(tmp_path):
    train(tmp_path, 'end_epoch=2')
    first = read_losses(tmp_path)
    for path in (tmp_path / 'model_dump').iterdir():
        path.unlink()
    trainer = base.Trainer(tiny_config(tmp_path, 'end_epoch=1'))
    trainer.lock.release()  # it never makes a step
    assert read_losses(tmp_path) == first
    train(tmp_path, 'end_epoch=1')
    assert read_losses(tmp_path) == first[:4]
    assert len((tmp_path / 'log' / 'metrics.1.jsonl').read_text().splitlines()) == 8


@pytest.mark.parametrize(('settings', 'says'), [
    (('warmup_iters=9',), 'warmup_iters=9, but the stage has 8 steps: the learning rate stays below 0.001'),
    (('pose_epochs=2',), 'pose_epochs=2, but the stage ends at epoch 2: its last epoch trains the whole network'),
    (('lr_schedule=step', 'lr_dec_epoch=[1,2]'),
     'lr_dec_epoch=[1, 2], but the stage ends at epoch 2: the learning rate is divided 1 times'),
    (('warmup_iters=8', 'pose_epochs=1', 'lr_schedule=step', 'lr_dec_epoch=[1]'), None)])
def test_settings_that_a_short_run_never_reaches_are_named(tmp_path, caplog, settings, says):
    base.Trainer(tiny_config(tmp_path, 'lixel_epochs=2', 'lr_schedule=cosine', *settings))
    notes = [line.removeprefix('note: ') for line in caplog.messages if line.startswith('note: ')]
    assert notes[:-1] == ([says] if says else [])  # the last one: few samples


def test_a_test_of_the_other_kind_of_body_is_told(tmp_path, caplog):
    """Such as --cfg nano_hand with the snapshot of a body."""
    train(tmp_path, 'end_epoch=1')
    path = checkpoint.snapshot_path(tmp_path / 'model_dump', 0)
    base.Tester(tiny_config(tmp_path, 'body_model=smpl'), path)
    assert not any('is of the body model' in line for line in caplog.messages)
    base.Tester(tiny_config(tmp_path, 'body_model=open_hand'), path)
    told, = [line for line in caplog.messages if 'is of the body model' in line]
    assert told.startswith(f'{path} is of the body model open_body and is tested with it') and 'open_hand' in told


def test_a_batch_too_large_for_synthetic_data_is_refused_before_they_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(base, 'build_dataset', lambda *_: pytest.fail('the images are drawn'))
    with pytest.raises(UserError, match='one step takes 12 samples .*: more than synthetic_train_size=11'):
        train(tmp_path, 'train_batch_size=4', 'grad_accum=3', 'synthetic_train_size=11')


def without(*names):
    """A RandomDataset.__getitem__ whose masks of those names are 0."""
    original = RandomDataset.__getitem__

    def get(self, index):
        inputs, targets, meta = original(self, index)
        for name in names:
            meta[name] = np.zeros_like(meta[name])
        return inputs, targets, meta

    return get


def test_a_run_with_nothing_to_learn_is_refused(tmp_path, monkeypatch):
    """2-D sets without fits in the param stage: the four losses are exactly 0."""
    train(tmp_path, 'lixel_epochs=1')
    monkeypatch.setattr(RandomDataset, '__getitem__', without('is_3D', 'is_valid_fit'))
    says = r'nothing to learn: all losses were 0 in the first 4 steps: loss_pose_param \(no sample .* has a fit'
    with pytest.raises(UserError, match=says):
        train(tmp_path, 'lixel_epochs=1', 'stage=param', 'continue_train=true', 'snapshot_every=1')
    assert not checkpoint.snapshot_path(tmp_path / 'model_dump', 1).exists()


def test_losses_that_are_always_zero_are_told(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr('common.train.zero_losses.WATCHED', 5)
    monkeypatch.setattr(RandomDataset, '__getitem__', without('is_valid_fit'))
    train(tmp_path, 'lixel_epochs=2')
    told, = [line for line in caplog.messages if 'always 0' in line]
    assert told.startswith('always 0 in the first 5 steps: loss_joint_fit (no sample read so far has a fit')
    assert 'mesh_fit' in told and 'joint_orig' not in told
