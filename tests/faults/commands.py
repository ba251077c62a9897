"""Running a command line within the test's process, as a user sees it: exit code and what is printed."""
import re
from pathlib import Path

import pytest

from common.errors import run_main


def run(main, *words):
    """The exit code of a command line. Anything but UserError, argparse's exit and Ctrl-C fails the test."""
    with pytest.raises(SystemExit) as end:
        run_main(lambda: main([str(word) for word in words]))
    return end.value.code


def refusal(capsys, main, *words):
    """The message of a command line that has to be refused: exit code 2, one line on stderr, no traceback."""
    capsys.readouterr()
    code = run(main, *words)
    err = capsys.readouterr().err
    assert code == 2, (code, err)
    assert 'Traceback' not in err
    lines = [line for line in err.strip().splitlines() if not line.startswith(('note: ', 'warning: '))]
    assert len(lines) == 1 and lines[0].startswith('error: '), err
    return lines[0].removeprefix('error: ')


def says(message, *patterns):
    """Checks that a message matches every pattern (regular expressions)."""
    for pattern in patterns:
        assert re.search(pattern, message), f'{pattern!r} is not in {message!r}'


def resident(field):
    """Bytes of memory of this process: VmRSS now, VmHWM at most; 0 where the system does not tell."""
    status = Path('/proc/self/status')
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(f'{field}:'))
