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
from main.config import Config
from main.model import Model
from tests.tiny import SETTINGS
from tests.train_with_fixed_batchnorm import keep_eval

ROOT = Path(__file__).resolve().parent.parent
DATA = ['synthetic_train_size=20', 'synthetic_test_size=5', 'synthetic_img_size=64', 'num_thread=1']
ENV = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONUNBUFFERED': '1', 'PYTHONPATH': ''}
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
    process = subprocess.Popen(words, cwd=ROOT, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
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
    assert code == 0, text
    resume = text.splitlines()[-1].split('go on with: ')[1].split()
    assert resume[0] == 'python' and resume[-1] == '--continue'
    run([sys.executable, *resume[1:]], cwd=ROOT / 'main')
    assert len(read_losses(parts)) == 20 and read_losses(tmp_path / 'whole') == read_losses(parts)
    run(program('train.py', '--cfg', tiny, '--stage', 'param', '--continue', 'end_epoch=3'), cwd=tmp_path)
    text = run(program('test.py', '--cfg', tiny, '--test_epoch', '2'), cwd=tmp_path)
    assert 'lixel mesh (mm): MPJPE' in text and 'param mesh (mm): MPJPE' in text and 'nan' not in text.lower()
    metrics = json.loads((parts / 'result' / 'Synthetic.json').read_text())['metrics']
    assert {'mpjpe_lixel', 'pa_mpjpe_lixel', 'mpjpe_param', 'pa_mpjpe_param'} <= set(metrics)


def test_two_processes_train_and_test_like_one(tmp_path, monkeypatch):
    monkeypatch.setattr(Model, 'train', keep_eval)
    one, two = tmp_path / 'one', tmp_path / 'two'
    train_here(one, train_batch_size=4, lixel_epochs=1, lr=1e-4)
    tiny = settings_file(two, train_batch_size=2, lixel_epochs=1, lr=1e-4)
    text = run([*TORCHRUN, str(ROOT / 'tests' / 'train_with_fixed_batchnorm.py'), '--gpu', 'cpu', '--cfg', tiny])
    assert '2 per device x 2 devices x 1 accumulated = 4 samples per step, 5 steps per epoch' in text
    ours, theirs = read_losses(one), read_losses(two)
    assert [row[:2] for row in ours] == [row[:2] for row in theirs] == [(0, step) for step in range(5)]
    assert [row[2] for row in ours] == pytest.approx([row[2] for row in theirs], rel=1e-4)

    config = Config()
    config.load(str(one / 'tiny.yaml'))
    alone = base.Tester(config, two / 'model_dump' / 'snapshot_0.pth.tar').test()
    run([*TORCHRUN, *program('test.py', '--cfg', tiny, '--test_epoch', '0')[1:]])
    together = json.loads((two / 'result' / 'Synthetic.json').read_text())
    assert together['samples'] == 5
    assert together['metrics'] == pytest.approx(alone, rel=1e-5)  # batches of other sizes round differently


def test_missing_data_is_one_message_and_code_2(tmp_path):
    folders = [f'{name}={tmp_path}' for name in ('data_dir', 'human_model_dir', 'output_dir')]
    text = run(program('train.py', *folders), code=2)
    for word in ('Human36M', 'MuCo', 'MSCOCO', 'SMPL', '--cfg nano'):
        assert word in text
    assert 'Traceback' not in text
