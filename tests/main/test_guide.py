"""The guide for several GPUs: every command in it runs here, on a CPU, with a tiny network and synthetic data."""
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from torch.distributed.run import parse_args as parse_torchrun

import main.test
import main.train
from common.errors import UserError
from common.snapshot import checkpoint
from common.train.monitor import train_line
from main.cli import make_parser
from main.config import Config
from tests.tiny import SETTINGS
from tool import benchmark, check_gpus, plot_log
from tool.bench import memory, network, scaling, timing
from tool.gpus.speed import Speeds

ROOT = Path(__file__).resolve().parents[2]
GUIDE, CHINESE = (ROOT / 'docs' / name for name in ('multi_gpu.md', 'multi_gpu.zh.md'))
DATA = ['synthetic_train_size=32', 'synthetic_test_size=4', 'synthetic_img_size=64', 'train_batch_size=16',
        'lixel_epochs=1', 'param_epochs=1']
ENV = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': '', 'GLOO_SOCKET_IFNAME': 'lo'}


def blocks(path):
    """The text of every ```bash block."""
    return re.findall(r'^```bash\n(.*?)^```', path.read_text(encoding='utf-8'), re.S | re.M)


def commands(block):
    """The commands of a block, each as a list of words; comments are left out, continued lines joined."""
    lines = [shlex.split(line, comments=True) for line in block.replace('\\\n', ' ').splitlines()]
    return [words for words in lines if words]


def is_script(block):
    return block.startswith('#!')


def runs_elsewhere(block):
    """Blocks with tests of their own: several machines, SLURM."""
    return is_script(block) or '--nnodes' in block


PLAIN = [block for block in blocks(GUIDE) if not runs_elsewhere(block)]


@pytest.fixture(scope='module')
def settings_file(tmp_path_factory):
    """A YAML file of the tiny network and its data, to take the place of the published settings."""
    path = tmp_path_factory.mktemp('settings') / 'tiny.yaml'
    path.write_text(''.join(line.replace('=', ': ', 1) + '\n' for line in (*SETTINGS, *DATA)
                            if line not in ('train_batch_size=2', 'lixel_epochs=2', 'param_epochs=2')))
    return path


@pytest.fixture(scope='module')
def trained(tmp_path_factory, settings_file):
    """An output folder with one epoch of the lixel stage."""
    folder = tmp_path_factory.mktemp('trained') / 'output'
    main.train.main(['--gpu', 'cpu', '--cfg', str(settings_file), f'output_dir={folder}'])
    return folder


@pytest.fixture
def adapt(settings_file, trained, tmp_path, monkeypatch):
    """A function of a program's words that makes it run here: on the CPU, tiny, in a copy of `trained`."""
    shutil.copytree(trained, tmp_path / 'output')
    for name in ('CUDA_VISIBLE_DEVICES', 'RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE'):
        monkeypatch.setenv(name, '')  # restored afterwards
        monkeypatch.delenv(name)

    def adapted(words):
        words = [re.sub(r'^output\b', str(tmp_path / 'output'), word) for word in words]
        words = on_cpu(words)
        if words[0].startswith('main/'):
            words = [word for word in words if not word.startswith('num_thread=')]  # 32 processes are too many here
            words += ['--gpu', 'cpu', '--cfg', str(settings_file), f'output_dir={tmp_path}/output', 'num_thread=1']
        if '--continue' in words:
            words.append('lixel_epochs=2')
        if '--test_epoch' in words:
            newest = checkpoint.find_snapshots(tmp_path / 'output' / 'model_dump')[-1][0]
            words[words.index('--test_epoch') + 1] = str(newest)
        return words
    return adapted


def on_cpu(words):
    """Words without `--gpu IDS`."""
    return words[:words.index('--gpu')] + words[words.index('--gpu') + 2:] if '--gpu' in words else words


def run_program(words, folder, monkeypatch):
    """Run the words after `python` in this process, and look at what they leave behind."""
    program, *options = words
    if program == '-c':
        return exec(options[0], {})
    if program.startswith('main/'):
        return run_main_program(program, options, folder)
    if program == 'tool/plot_log.py':
        named = [str(folder / 'runs.png') if word == 'runs.png' else word for word in options]
        plot_log.main(named or [str(folder)])
        assert (folder / ('runs.png' if options else 'log/losses.png')).stat().st_size > 10000
        return None
    if program == 'tool/check_gpus.py':  # with tests of its own
        monkeypatch.setattr(check_gpus, 'run_checks', lambda *args: ([], Speeds()))
        return check_gpus.main([*options, '--gpu', 'cpu'])
    assert program == 'tool/benchmark.py'
    monkeypatch.setattr(network, 'SIDE', 32)
    monkeypatch.setattr(timing, 'MIN_SECONDS', 1e-6)
    monkeypatch.setattr(memory, 'in_new_process', lambda *args: 1e9)
    monkeypatch.setattr(scaling, 'run', lambda *args, **options: 1.)
    monkeypatch.setattr(scaling.os, 'sched_getaffinity', lambda pid: {0, 1}, raising=False)
    monkeypatch.chdir(folder)
    return benchmark.main([*options, '--gpu', 'cpu', '--batch', '2', '--repeats', '1', *SETTINGS])


def run_main_program(program, options, folder):
    """main/train.py or main/test.py, whose files must hold what the command asked for."""
    if 'amp=fp16' in options:
        with pytest.raises(UserError, match='amp=fp16 needs a GPU'):
            main.train.main(options)
        return
    if program == 'main/test.py':
        main.test.main(options)
        result, = (folder / 'result').glob('Synthetic_*.json')
        assert json.loads(result.read_text())['samples'] == 4
        return
    main.train.main(options)
    used = json.loads((folder / 'log' / 'config.json').read_text())
    wanted = Config()
    wanted.override([word for word in options if '=' in word])
    for name in (word.split('=')[0] for word in options if '=' in word and not word.startswith('output_dir')):
        assert used[name] == wanted.resolved()[name]
    newest = checkpoint.find_snapshots(folder / 'model_dump')[-1][0]
    assert newest == used['end_epoch'] - 1


@pytest.mark.parametrize('block', PLAIN, ids=lambda block: block.split('#')[0].split('\n')[0].strip())
def test_commands(block, adapt, tmp_path, monkeypatch, capsys):
    for words in commands(block):
        while '=' in words[0]:
            name, value = words.pop(0).split('=')
            monkeypatch.setenv(name, value)
        if words[0] == 'python':
            run_program(adapt(words[1:]), tmp_path / 'output', monkeypatch)
        elif words[0] == 'torchrun':
            launch = parse_torchrun(words[1:])
            assert launch.nproc_per_node == '4'
            as_process_of_one(monkeypatch)
            run_program(adapt([launch.training_script, *launch.training_script_args]), tmp_path / 'output', monkeypatch)
        elif words[0] == 'nvidia-smi':
            assert words[1:3] in ([], ['topo', '-m']) or words[1].startswith('--query-gpu=')
        else:
            assert words[0] in ('grep', 'tail')
            done = subprocess.run(adapt(words), capture_output=True, text=True)
            assert done.returncode == 0 and done.stdout


def as_process_of_one(monkeypatch):
    """The environment that torchrun gives to the only process of a group."""
    values = {'RANK': 0, 'WORLD_SIZE': 1, 'LOCAL_RANK': 0, 'LOCAL_WORLD_SIZE': 1, 'MASTER_ADDR': '127.0.0.1',
              'MASTER_PORT': free_port(), 'GLOO_SOCKET_IFNAME': 'lo'}
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def wait_for(processes):
    """All of them must end well within five minutes; their output together."""
    texts = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), '\n'.join(texts)
    return '\n'.join(texts)


def start(words):
    return subprocess.Popen(words, cwd=ROOT, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_two_machines(adapt, tmp_path):
    block, = (block for block in blocks(GUIDE) if '--node_rank' in block)
    block, processes = block.replace('192.168.1.10', '127.0.0.1').replace('29500', str(free_port())), []
    for words in commands(block.replace('--nproc_per_node 4', '--nproc_per_node 1')):
        assert words[0] == 'torchrun'
        at = words.index('main/train.py')
        processes.append(start([sys.executable, '-m', 'torch.distributed.run', *words[1:at], *adapt(words[at:])]))
    text = wait_for(processes)
    assert 'processes: 2' in text and text.count('samples per step') == 1  # one of the two writes the log
    assert '16 per device x 2 devices x 1 accumulated = 32' in text


def test_slurm_script(adapt, tmp_path):
    script, = (block for block in blocks(GUIDE) if is_script(block))
    tiny = shlex.join([*adapt(['main/train.py'])[1:], 'lixel_epochs=2'])
    for name, body in {
            'scontrol': 'echo 127.0.0.1; echo other',
            'srun': 'for node in 0 1; do SLURM_NODEID=$node "$@" & nodes="$nodes $!"; done\n'
                    'for node in $nodes; do wait $node || exit 1; done',
            'torchrun': f'exec {sys.executable} -m torch.distributed.run "$@" {tiny}'}.items():
        (tmp_path / name).write_text(f'#!/bin/bash\n{body}\n')
        (tmp_path / name).chmod(0o755)
    script = script.replace('output/model_dump', f'{tmp_path}/output/model_dump').replace('29500', str(free_port()))
    env = {**ENV, 'PATH': f'{tmp_path}:{ENV["PATH"]}', 'SLURM_JOB_NODELIST': 'two', 'SLURM_NNODES': '2',
           'SLURM_GPUS_ON_NODE': '1', 'SLURM_JOB_ID': '7'}
    done = subprocess.run(['bash', '-eu', '-c', script], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    assert 'processes: 2' in text and 'resuming' in text and text.count('snapshot_1.pth.tar') == 1


def test_the_readme_starts_one_machine_two_and_slurm():
    text = re.sub(r'"\$\(.*?\):', '"first:', (ROOT / 'README.md').read_text(encoding='utf-8'))  # what bash puts there
    starts = [words for block in re.findall(r'^```\n(.*?)^```', text, re.S | re.M) for words in commands(block)
              if 'torchrun' in words and 'cpu' not in words]  # the recipe of the hand network runs on CPUs
    parsed = [parse_torchrun(words[words.index('torchrun') + 1:]) for words in starts]
    kinds = [(words[0], launch.nnodes, launch.nproc_per_node) for words, launch in zip(starts, parsed, strict=True)]
    assert kinds == [('torchrun', '1:1', '4'), ('torchrun', '2', '4'),
                     ('srun', '$SLURM_NNODES', '$SLURM_GPUS_ON_NODE')]
    for launch in parsed:
        assert launch.training_script == 'main/train.py'
        assert make_parser('').parse_intermixed_args(launch.training_script_args).options == []
    assert parsed[2].rdzv_endpoint == 'first:29500' and parsed[2].rdzv_backend == 'c10d'


def test_both_languages_have_the_same_commands():
    ours, theirs = ([[commands(block) for block in blocks(path) if not is_script(block)] for path in (GUIDE, CHINESE)])
    assert ours == theirs
    assert [b for b in blocks(GUIDE) if is_script(b)] == [b for b in blocks(CHINESE) if is_script(b)]


@pytest.mark.parametrize('path', [GUIDE, CHINESE], ids=lambda path: path.name)
def test_settings_links_and_log_lines_are_true(path):
    text = path.read_text(encoding='utf-8')
    for code in re.findall(r'`([^`\n]+)`', re.sub(r'^```.*?^```', '', text, flags=re.S | re.M)):
        Config().override([word for word in code.split() if re.fullmatch(r'[a-z][a-z_0-9]*=[\w.,\[\]-]+', word)])
    titles = [re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-') for title in re.findall(r'^#+ (.*)', text, re.M)]
    links = re.findall(r'\]\((#?[^)#:]+)\)', text)
    assert len(links) > 10
    for link in links:
        assert link[1:] in titles if link[0] == '#' else (path.parent / link).is_file()
    line = train_line((0, 13, 500, 9756), 1e-4, (.52, .02), {'joint_fit': 1.2345})
    assert line + ' ... gpu0 97% 10.2GB' in text
