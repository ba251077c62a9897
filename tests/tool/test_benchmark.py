"""The benchmark: what it times, against what, and that its imitations of data have the shapes of real data."""
import importlib
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from common.errors import UserError
from common.human_model import get_human_model
from data import build_dataset
from data.MuCo.MuCo import MuCo
from main.config import ROOT, Config
from tests.tiny import SETTINGS, tiny_config
from tool import benchmark
from tool.bench import evaluation, full_size, imitation, memory, network, opening, scaling, timing

CPU = torch.device('cpu')
WORDS = ['--gpu', 'cpu', *SETTINGS, 'synthetic_train_size=8', 'synthetic_img_size=64']


def with_settings(**changes):
    """WORDS with some of their settings changed, or more of them."""
    return [word for word in WORDS if word.split('=')[0] not in changes] + [f'{k}={v}' for k, v in changes.items()]


class Clock:
    """A clock that functions set forward; `log` keeps their names."""

    def __init__(self):
        self.now, self.log = 0., []

    def task(self, name, durations):
        durations = iter(durations)

        def call():
            self.log.append(name)
            self.now += next(durations)
        return call


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing.time, 'perf_counter', lambda: clock.now)
    return clock


def test_rounds_alternate_and_medians_leave_out_the_warm_up(clock):
    calls = {'a': clock.task('a', [50, 1, 9, 2]), 'b': clock.task('b', [70, 4, 3, 99])}
    assert timing.alternate(calls, 3) == {'a': 2, 'b': 4}
    assert ''.join(clock.log) == 'ab' + 'ab' * 3


def test_short_functions_are_called_often_enough(clock):
    calls = {'quick': clock.task('quick', [.15, .05] + [.05] * 100), 'slow': clock.task('slow', [1] * 3)}
    assert timing.alternate(calls, 2) == {'quick': pytest.approx(.05), 'slow': 1}
    assert clock.log.count('quick') == 2 + 2 * 4 and clock.log.count('slow') == 1 + 2


def test_a_speed_is_images_over_seconds_and_its_ratio_of_times():
    row = network.speed_row('inference, batch 8', 8, {'net': 4., 'resnet': 2.}, network.INFERENCE)
    assert (row.value, row.yardstick_value, row.ratio) == (2., 4., 2.)
    assert str(row).split() == ['inference,', 'batch', '8', '2', 'images/s', 'ResNet-50', 'inference', '4', '2', 'x',
                                'its', 'time']


@pytest.mark.parametrize('kind', [*imitation.BODIES, *imitation.HANDS], ids=lambda kind: kind.title.split()[0])
def test_imitated_data_is_whole_and_of_the_shapes_of_the_random_batch(tmp_path, kind):
    body = 'open_hand' if kind in imitation.HANDS else 'open_body'
    config = tiny_config(tmp_path, f'body_model={body}')
    imitation.write_photo(tmp_path / 'a.jpg', kind.shape)
    data = imitation.Imitation('train', config, kind, tmp_path / 'a.jpg')
    parts = data.get_item(5, None)
    _, targets, meta = parts
    assert meta['is_valid_fit'] == 1 and meta['fit_mesh_trunc'].all() and meta['fit_joint_trunc'].all()
    assert meta['is_3D'] == kind.has_3d and meta['orig_joint_trunc'].any() == (kind.joint_set is not None)
    assert np.ptp(targets['fit_mesh_img'][:, :2], axis=0).max() > 4  # of 8 lixels: the person fills the crop
    batch = network.random_batch(get_human_model(body), config, 3, CPU)
    for mine, theirs in zip(batch, parts, strict=True):
        assert {k: tuple(v.shape) for k, v in mine.items()} == {k: (3, *v.shape) for k, v in theirs.items()}


def test_a_training_step_moves_the_weights_only_when_asked_to(tmp_path, monkeypatch):
    made = []
    plain = network.get_model
    monkeypatch.setattr(network, 'get_model', lambda *args: made.append(plain(*args)) or made[-1])
    for step in (False, True):
        call = network.network_training(tiny_config(tmp_path), [CPU], step=step)
        before = made[-1].pose_net.conv_x[0].weight.clone()
        call()
        assert torch.equal(before, made[-1].pose_net.conv_x[0].weight) != step
        assert all(p.grad is None for p in made[-1].parameters())


def test_memory_is_split_into_peak_and_growth(tmp_path, monkeypatch):
    config = tiny_config(tmp_path, 'train_batch_size=6', 'test_batch_size=8')
    asked = []

    def fake(function, cfg, name, batch):
        asked.append(batch)
        return (2e9 if name.startswith('network') else 1e9) + batch * (3e8 if name.endswith('training') else 1e8)

    monkeypatch.setattr(memory, 'in_new_process', fake)
    rows = memory.measure_memory(config, CPU, 1)
    assert [row.value for row in rows] == pytest.approx([2.8, 3.8, .3])
    assert [row.yardstick_value for row in rows] == pytest.approx([1.8, 2.8, .3])
    assert sorted(set(asked)) == [3, 6, 8]


@pytest.mark.parametrize('body', ['open_body', 'open_hand'])
def test_every_kind_of_test_set_is_evaluated_whole(tmp_path, body):
    config = tiny_config(tmp_path, f'body_model={body}', 'stage=param', 'synthetic_test_size=2')
    scores = {title: data.evaluate(evaluation.random_outputs(data, config, 2), 0)
              for title, data in evaluation.test_sets(config).items()}
    joints, mesh = {'mpjpe', 'pa_mpjpe', 'joint_error'}, {'mpvpe', 'pa_mpvpe'}
    kinds = {'Synthetic': joints | mesh} | ({'FreiHAND-like': joints | mesh | {'f_5', 'f_15', 'auc'}} if config.is_hand
                                            else {'3DPW-like': joints | mesh, 'Human3.6M-like': joints})
    assert kinds.keys() == scores.keys()
    for title, metrics in kinds.items():
        got = {name: value for name, value in scores[title].items() if '_out' not in name}
        assert got.keys() == {f'{metric}_{name}' for metric in metrics for name in ('lixel', 'param')}
        assert all(len(value) == 2 and np.isfinite(value).all() for value in got.values())


def test_the_peak_counts_memory_that_was_given_back():
    code = ('import numpy as np\nfrom tool.bench.memory import process_peak\nbefore = process_peak()\n'
            'np.ones(2 ** 28, np.uint8)\nprint(process_peak() - before)')
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert 2 ** 27 < int(done.stdout) < 2 ** 29, done.stderr


def test_scaling_alternates_and_compares_with_one_process(monkeypatch):
    runs = []

    def run(command, kind, count, on_gpu):
        runs.append(count)
        return {1: [2., 4., 8.], 2: [3., 8., 4.]}[count][runs.count(count) - 1]

    monkeypatch.setattr(scaling, 'run', run)
    monkeypatch.setattr(scaling.os, 'sched_getaffinity', lambda pid: {0, 1}, raising=False)
    monkeypatch.setattr(scaling.torch.cuda, 'device_count', lambda: 0)
    rows = scaling.measure_scaling([], 3, show=lambda line: None)
    # the ratio is the median of the rounds' ratios 3/2, 8/4 and 4/8
    assert runs == [1, 2] * 3 and [(row.value, row.ratio) for row in rows] == [(4., 1.), (4., 1.5)]
    monkeypatch.setattr(scaling.os, 'sched_getaffinity', lambda pid: {0}, raising=False)
    with pytest.raises(UserError, match='there is only one'):
        scaling.measure_scaling([], 3)
    with pytest.raises(UserError, match='only one in use: name them, such as --gpu 0-3'):
        scaling.ways_to_train(1)  # --scaling without --gpu


def test_scaling_under_torchrun(monkeypatch, capsys):
    monkeypatch.setattr(scaling.os, 'sched_getaffinity', lambda pid: {0, 1}, raising=False)
    benchmark.main([*WORDS, '--cfg', 'nano', '--stage', 'lixel', '--batch', '2', '--scaling', '--repeats', '1'])
    rows = re.findall(r'training, processes: (\d) +([\d.]+) images/s', capsys.readouterr().out)
    assert [int(count) for count, _ in rows] == [1, 2] and all(float(speed) > 0 for _, speed in rows)


def test_the_table_and_its_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(network, 'SIDE', 32)
    monkeypatch.setattr(timing, 'MIN_SECONDS', 1e-6)
    out = tmp_path / 'speed.json'
    benchmark.main([*with_settings(body_model='smpl', num_thread=1, human_model_dir=tmp_path), '--repeats', '1',
                    '--batch', '2', '--parts', 'inference,training,loader,evaluation', '--json', str(out)])
    text, content = capsys.readouterr().out, json.loads(out.read_text())
    assert 'body model: open_body, of the same size as smpl' in text
    assert content['body_model'] == 'open_body' and content['threads'] == torch.get_num_threads()
    names = [row['what'].split(',')[0] for row in content['rows']]
    assert names == ['inference', 'training step', *['loader'] * 5, *['evaluation'] * 3]
    for row in content['rows']:
        assert row['value'] > 0 and row['yardstick_value'] > 0 and f'{row["ratio"]:.3g} {row["meaning"]}' in text
        if row['meaning'] == 'x its time':
            assert row['ratio'] == pytest.approx(row['yardstick_value'] / row['value'])


def test_mistakes_are_named():
    with pytest.raises(UserError, match='some of inference, training'):
        benchmark.main([*WORDS, '--parts', 'speed'])
    with pytest.raises(UserError, match='batch normalisation needs at least two samples'):
        benchmark.main(with_settings(train_batch_size=1))


@pytest.mark.parametrize('words', [['--batch', '0'], ['--repeats', '0'], ['--repeats', '-1']])
def test_counts_below_one_are_refused(words):
    with pytest.raises(UserError, match='--repeats and --batch must be 1 or more'):
        benchmark.main([*WORDS, *words])


def test_opening(tmp_path, monkeypatch, capsys):
    """Files of a hundredth of a percent, each way of opening them in this process."""
    monkeypatch.setattr(opening, 'in_new_process', lambda function, *args: function(*args))
    monkeypatch.setattr(MuCo, 'fit_models', MuCo.fit_models)
    json_file = tmp_path / 'rows.json'
    benchmark.main(['--gpu', 'cpu', '--parts', 'opening', '--files', str(tmp_path), '--share', '0.0001',
                    '--repeats', '1', '--json', str(json_file)])
    rows = json.loads(json_file.read_text())['rows']
    assert [row['what'] for row in rows] == ['opening 20 samples, cold', 'opening, warm', 'peak memory, cold',
                                             'peak memory, warm', 'private memory, one more process']
    assert all(row['yardstick'] == 'plain reader' and row['unit'] in ('s', 'GB', 'MB') for row in rows)
    assert (tmp_path / 'cache' / 'MuCo_train.index').is_file()
    cfg = Config()
    cfg.override([f'data_dir={tmp_path}', 'body_model=open_body', 'use_index=false'])
    plain = opening.read_plainly(tmp_path)
    for ours, theirs in zip(opening.open_muco(cfg).samples, plain, strict=True):
        assert ours.img_path.endswith(theirs['img_path']) and ours.fit is not None
        np.testing.assert_allclose(ours.joint_cam, theirs['joint_cam'] / 1000, rtol=1e-6)


@pytest.mark.parametrize(('name', 'count'), [('MuCo', 20), ('Human36M', 5 * 30 * 4), ('MSCOCO', 15)])
def test_full_size_files_are_good_data_sets(tmp_path, monkeypatch, name, count):
    full_size.write_sets(tmp_path, [name], .0001)
    cfg = Config()
    cfg.override([f'data_dir={tmp_path}', 'body_model=open_body', 'use_index=false'])
    loader = getattr(importlib.import_module(f'data.{name}.{name}'), name)
    monkeypatch.setattr(loader, 'fit_models', (*loader.fit_models, 'open_body'))
    dataset = build_dataset(name, 'train', cfg)
    assert len(dataset) == count and not dataset.check.counts and dataset.check.fits == count
    assert dataset[0][2]['is_valid_fit'] == 1 and not dataset.check.rejected
    with pytest.raises(UserError, match='no full-size files of "PW3D"'):
        full_size.write_sets(tmp_path, ['PW3D'], 1)
