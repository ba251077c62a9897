"""The commands as a user runs them: real processes, from three folders, on synthetic data and a tiny network."""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from common import base
from main import hints, train
from main.config import Config
from main.model import Model
from tests.common.train.train_with_fixed_batchnorm import keep_eval
from tests.faults.running_child import ranks
from tests.tiny import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
DATA = ['synthetic_train_size=20', 'synthetic_test_size=5', 'synthetic_img_size=64', 'num_thread=1']
ENV = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONUNBUFFERED': '1', 'PYTHONPATH': ''}
# Python 3.12 and newer warn of every fork of a process with threads; that is how loader processes start
KNOWN_WARNINGS = ['-W', 'ignore:This process:DeprecationWarning']
TORCHRUN = [sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc_per_node=2']


@pytest.fixture(autouse=True)
def one_thread():
    """As in the processes started here, so that sums round the same way."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def settings_file(folder, **more):
    """A YAML file of the tiny network and a small Synthetic, writing into `folder`."""
    folder.mkdir()
    values = dict(line.split('=', 1) for line in (*SETTINGS, *DATA, f'output_dir={folder}'))
    path = folder / 'tiny.yaml'
    path.write_text(''.join(f'{key}: {value}\n' for key, value in {**values, **more}.items()))
    return str(path)


def train_here(folder, **more):
    """The same training within this process."""
    config = Config()
    config.load(settings_file(folder, **more))
    base.Trainer(config).train()


def run(words, cwd=ROOT, code=0):
    """Run to the end; the text of both outputs."""
    done = subprocess.run(words, cwd=cwd, env=ENV, capture_output=True, text=True, timeout=400)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def program(name, *words):
    return [sys.executable, str(ROOT / 'main' / name), '--gpu', 'cpu', *words]


def stop_at(words, marker, kind):
    """Start, send a signal when `marker` is printed; (exit code, text)."""
    lines, options = [], {'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT, 'text': True}
    with subprocess.Popen(words, cwd=ROOT, env=ENV, **options) as process:
        for line in process.stdout:
            lines.append(line)
            if marker in line:
                process.send_signal(kind)
                marker = '\0'
        return process.wait(timeout=60), ''.join(lines)


def read_losses(folder):
    rows = [json.loads(line) for line in (folder / 'log' / 'metrics.jsonl').read_text().splitlines()]
    return [(row['epoch'], row['step'], row['loss']) for row in rows]


def test_the_main_job_from_three_folders_with_an_interruption(tmp_path):
    train_here(tmp_path / 'whole')
    parts = tmp_path / 'parts'
    tiny = settings_file(parts)
    code, text = stop_at(program('train.py', '--cfg', tiny), 'itr 3/10', signal.SIGTERM)
    assert code == 128 + signal.SIGTERM, text
    resume = text.splitlines()[-1].split('Resume with: ')[1].split()
    assert resume[0] == 'python' and resume[-1] == '--continue'
    run([sys.executable, *resume[1:]], cwd=ROOT / 'main')
    assert len(read_losses(parts)) == 20 and read_losses(tmp_path / 'whole') == read_losses(parts)
    run(program('train.py', '--cfg', tiny, '--stage', 'param', '--continue', 'end_epoch=3'), cwd=tmp_path)
    text = run(program('test.py', '--cfg', tiny, '--test_epoch', '2'), cwd=tmp_path)
    assert 'lixel mesh (mm): MPJPE' in text and 'param mesh (mm): MPJPE' in text and 'nan' not in text.lower()
    metrics = json.loads((parts / 'result' / 'Synthetic_2.json').read_text())['metrics']
    assert {'mpjpe_lixel', 'pa_mpjpe_lixel', 'mpjpe_param', 'pa_mpjpe_param'} <= set(metrics)


def test_two_processes_train_and_test_like_one(tmp_path, monkeypatch):
    monkeypatch.setattr(Model, 'train', keep_eval)
    one, two = tmp_path / 'one', tmp_path / 'two'
    phases = {'pose_epochs': 1, 'lixel_epochs': 2, 'lr': 1e-4}
    train_here(one, train_batch_size=4, **phases)
    tiny = settings_file(two, train_batch_size=2, **phases)
    script = ROOT / 'tests' / 'common' / 'train' / 'train_with_fixed_batchnorm.py'
    text = run([*TORCHRUN, str(script), '--gpu', 'cpu', '--cfg', tiny])
    assert '2 per device x 2 devices x 1 accumulated = 4 samples per step, 5 steps per epoch' in text
    ours, theirs = read_losses(one), read_losses(two)
    assert [row[:2] for row in ours] == [row[:2] for row in theirs] == [
        (epoch, step) for epoch in (0, 1) for step in range(5)]
    assert 'Warning' not in text and 'find_unused_parameters' not in text
    assert [row[2] for row in ours] == pytest.approx([row[2] for row in theirs], rel=1e-4)

    config = Config()
    config.load(str(one / 'tiny.yaml'))
    alone = base.Tester(config, two / 'model_dump' / 'snapshot_1.pth.tar').test()
    run([*TORCHRUN, *program('test.py', '--cfg', tiny, '--test_epoch', '1')[1:]])
    together = json.loads((two / 'result' / 'Synthetic_1.json').read_text())
    assert together['samples'] == 5
    assert together['metrics'] == pytest.approx(alone, rel=1e-5)  # batches of other sizes round differently


def test_torchrun_is_interrupted_twice(tmp_path):
    more = {'lixel_epochs': 1, 'synthetic_train_size': 80}
    whole = ranks(train.main, ['--gpu', 'cpu', '--cfg', settings_file(tmp_path / 'whole', **more)])
    parts = tmp_path / 'parts'
    words = program('train.py', '--cfg', settings_file(parts, **more))[1:]
    for kind, marker in ((signal.SIGTERM, 'itr 2/20'), (signal.SIGINT, 'itr 10/20')):
        code, text = stop_at([*TORCHRUN, *words], marker, kind)
        assert code == 1 and f'got signal: {kind.value}' in text, text  # torchrun's own
        stopped = 'stopped; the last step is saved. Resume with: '
        hint, = (line.removeprefix(stopped) for line in text.splitlines() if line.startswith(stopped))
        start, words = hint.split()[:3], hint.split()[3:]
        assert start == ['torchrun', '--nproc_per_node', '2'] and words[-1] == '--continue'
    last = ranks(train.main, words[1:])
    assert [child.end() for child in (*whole, *last)] == [0] * 4
    assert [row[:2] for row in read_losses(parts)] == [(0, step) for step in range(20)]
    assert read_losses(parts) == read_losses(tmp_path / 'whole')


def test_how_to_go_on_on_several_machines(monkeypatch):
    monkeypatch.setattr('common.devices.processes.active', lambda: True)
    words = ['main/train.py', '--gpu', '0-3', '--snapshot', 'a b.pth.tar', 'lr=1e-3']
    monkeypatch.setenv('LOCAL_WORLD_SIZE', '4')
    monkeypatch.setenv('GROUP_WORLD_SIZE', '1')
    assert hints.resume_hint(words, 'a b.pth.tar') == ('Resume with: torchrun --nproc_per_node 4 main/train.py '
                                                       '--gpu 0-3 lr=1e-3 --continue')
    monkeypatch.setenv('GROUP_WORLD_SIZE', '2')
    assert hints.resume_hint(words, 'a b.pth.tar') == (
        'Resume, on every machine with the options that torchrun had there: torchrun ... main/train.py --gpu 0-3 '
        'lr=1e-3 --continue')


def test_what_comes_after_a_stage():
    words = ['main/train.py', '--gpu', 'cpu', '--stage', 'lixel', '--continue', 'lr=1e-3', 'end_epoch=2']
    assert hints.next_hint(words, None, 'lixel', 1).splitlines() == [
        'The lixel stage is finished. Test it with: python main/test.py --test_epoch 1 --gpu cpu lr=1e-3 end_epoch=2',
        'Train the parameters with: python main/train.py --stage param --continue --gpu cpu lr=1e-3']
    words = ['main/train.py', '--stage=param', '--snapshot', 'a.pth.tar']
    assert hints.next_hint(words, 'a.pth.tar', 'param', 17) == (
        'The param stage is finished. Test it with: python main/test.py --test_epoch 17')


def test_nothing_of_ours_warns(tmp_path):
    """Training of both stages, a test and the demo, with every warning an error."""
    tiny = settings_file(tmp_path / 'out', lixel_epochs=1, param_epochs=1, synthetic_cache='true')
    common = ['--gpu', 'cpu', '--cfg', tiny]
    calls = [('train', common), ('train', [*common, '--stage', 'param', '--continue']),
             ('test', [*common, '--test_epoch', '1']),
             ('demo', ['--gpu', 'cpu', '--output', str(tmp_path / 'demo')])]
    code = f'import importlib\nfor name, words in {calls!r}: importlib.import_module("main." + name).main(words)'
    text = run([sys.executable, '-W', 'error', *KNOWN_WARNINGS, '-c', code])
    assert 'param mesh (mm): MPJPE' in text and (tmp_path / 'demo' / 'sample_1' / 'result.json').exists()
    assert 'Warning' not in text and 'Exception ignored' not in text, text


def test_missing_data_is_one_message_and_code_2(tmp_path):
    folders = [f'{name}={tmp_path}' for name in ('data_dir', 'human_model_dir', 'output_dir')]
    text = run(program('train.py', *folders), code=2)
    for word in ('Human36M', 'MuCo', 'MSCOCO', 'SMPL', '--cfg nano'):
        assert word in text
    assert 'Traceback' not in text
