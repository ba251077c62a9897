"""How a program ends."""
import os
import signal
import subprocess
import sys

import pytest

from main.config import ROOT

PROGRAM = f'import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom common.errors import UserError, run_main\n'


@pytest.mark.parametrize('lines', [1, 100_000])  # few lines stay in a buffer until the end
def test_a_reader_that_goes_away_is_no_fault(lines):
    code = f'{PROGRAM}def main():\n sys.stdin.read(1)\n for i in range({lines}): print("line", i)\nrun_main(main)'
    with subprocess.Popen([sys.executable, '-c', code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        process.stdout.close()
        _, told = process.communicate(b'x', timeout=60)
    assert (process.returncode, told) == (141, b'')


@pytest.mark.parametrize('end, code, told', [
    ('pass', 0, ''), ('return 3', 3, ''), ('raise UserError("no")', 2, 'error: no\n'),
    ('raise KeyboardInterrupt', 130, 'interrupted\n'),
    ('raise OSError(28, "No space left", "a.txt")', 2, 'error: a.txt: No space left: make room and start again\n')])
def test_exit_codes(end, code, told):
    done = subprocess.run([sys.executable, '-c', f'{PROGRAM}def main():\n {end}\nrun_main(main)'], capture_output=True,
                          text=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, told)


@pytest.mark.parametrize('program', ['train', 'test', 'demo'])
def test_an_interrupt_during_the_imports(program, tmp_path):
    """Importing PyTorch takes seconds, and Ctrl-C then is no fault of the program's either."""
    (tmp_path / 'torch.py').write_text('raise KeyboardInterrupt\n')
    done = subprocess.run([sys.executable, ROOT / 'main' / f'{program}.py'], capture_output=True, text=True, timeout=60,
                          env={**os.environ, 'PYTHONPATH': str(tmp_path)})
    assert (done.returncode, done.stderr) == (-signal.SIGINT, 'interrupted\n')
