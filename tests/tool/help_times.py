"""Processor time that the help of each program takes: python tests/tool/help_times.py; seconds, user and system."""
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 3  # of which the least counts


def children_seconds() -> float:
    """Processor time of all processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def help_seconds(program: Path) -> float:
    """Of one program."""
    found = []
    for _ in range(REPEATS):
        before = children_seconds()
        subprocess.run([sys.executable, str(program), '--help'], check=True, capture_output=True)
        found.append(children_seconds() - before)
    return min(found)


if __name__ == '__main__':
    for folder in ('main', 'tool'):
        for path in sorted((ROOT / folder).rglob('*.py')):
            if 'run_main(main)' in path.read_text(encoding='utf-8'):
                print(f'{path.relative_to(ROOT)} {help_seconds(path):.2f} s')
