"""How the programs of main/ and tool/ find the repository: from any folder, without their own folder on the path."""
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(path.relative_to(ROOT).as_posix() for folder in ('main', 'tool')
                  for path in (ROOT / folder).rglob('*.py') if 'run_main(main)' in path.read_text())


@pytest.mark.parametrize('program', PROGRAMS)
def test_every_program_starts_with_init_path(program, monkeypatch):
    """Its lines before the first import of this project run main/init_path.py, wherever the program lies."""
    head = (ROOT / program).read_text().split('\nfrom common')[0]
    started = []
    monkeypatch.setattr(runpy, 'run_path', started.append)
    exec(compile(head, program, 'exec'), {'__package__': '', '__file__': str(ROOT / program)})
    assert started == [str(ROOT / 'main' / 'init_path.py')]


@pytest.mark.parametrize('program', PROGRAMS)
def test_help_imports_no_pytorch(program: str) -> None:
    """Nor what imports it: the help is there at once. How long it takes: tests/tool/help_times.py."""
    words = [sys.executable, '-X', 'importtime', str(ROOT / program), '--help']
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith('usage: ')
    imported = {line.rpartition('|')[2].strip() for line in done.stderr.splitlines()}
    assert 'argparse' in imported and not imported & {'torch', 'torchvision', 'smplx'}
    assert done.stderr.count('\n') == sum(line.startswith('import time:') for line in done.stderr.splitlines())


@pytest.mark.parametrize('program, folder', [('main/train.py', 'main'), ('tool/3DPW/convert.py', '/'),
                                             ('tool/plot_log.py', '')])
def test_programs_run_from_any_folder_without_their_own_on_the_path(program, folder):
    words = [sys.executable, str(ROOT / program), '--no_such_option']
    env = {**os.environ, 'PYTHONSAFEPATH': '1'}
    done = subprocess.run(words, cwd=ROOT / folder, env=env, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith('error: ') and done.stderr.count('\n') == 1, done.stderr


@pytest.mark.parametrize('flag', [[], pytest.param(['-P'], marks=pytest.mark.skipif(
    sys.version_info < (3, 11), reason='Python 3.10 has no safe path'))])
def test_init_path_replaces_the_folder_of_the_program_and_nothing_else(flag, tmp_path):
    script = tmp_path / 'script.py'
    script.write_text('import runpy, sys\n'
                      'others = [path for path in sys.path if path != sys.argv[1]]\n'
                      'runpy.run_path(sys.argv[2])\n'
                      'assert sys.path == [sys.argv[3], *others], sys.path\n'
                      'raise KeyboardInterrupt')
    words = [sys.executable, *flag, script, tmp_path, ROOT / 'main' / 'init_path.py', ROOT]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stderr == 'interrupted\n'
