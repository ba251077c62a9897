#!/usr/bin/env bash
# Installs what this project needs into the Python environment that is active:
#
#     bash requirements.sh            # or: PYTHON=/path/to/python bash requirements.sh
#     bash requirements.sh test       # also what the tests need
#
# A torch that is already there stays (builds differ by CUDA version) unless it is too old, and so does an OpenCV 5 of
# any flavour (opencv-python, -headless and -contrib all install the same module, and would overwrite each other).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="${PYTHON:-$(command -v python || command -v python3 || true)}"
if [ -z "$python" ]; then
    echo "error: no python found: install Python 3.10 or newer, or name it: PYTHON=/path/to/python bash requirements.sh" >&2
    exit 2
fi

if ! "$python" - <<'CHECK'
import os
import sys
import sysconfig

if sys.version_info < (3, 10):
    sys.exit(f'error: Python 3.10 or newer is needed, this is {sys.version.split()[0]} ({sys.executable})')
marker = os.path.join(sysconfig.get_path('stdlib'), 'EXTERNALLY-MANAGED')
if sys.prefix == sys.base_prefix and os.path.exists(marker) and not os.environ.get('PIP_BREAK_SYSTEM_PACKAGES'):
    sys.exit(f'error: {sys.executable} is managed by the operating system, so pip must not install into it.\n'
             'Make an environment of your own and activate it:\n'
             '    python3 -m venv .venv && source .venv/bin/activate && bash requirements.sh\n'
             '(Debian and Ubuntu: apt install python3-venv first)')
CHECK
then
    exit 2
fi

wanted="$("$python" - "$here/requirements.txt" <<'SELECT'
import importlib.metadata
import importlib.util
import pathlib
import re
import sys


def numbers(version):
    return [int(number) for number in re.findall(r'\d+', version)[:2]]


lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
keep = set()
for line in lines:
    name, _, oldest = line.partition('>=')
    if name in ('torch', 'torchvision') and importlib.util.find_spec(name):
        try:
            if numbers(importlib.metadata.version(name)) >= numbers(oldest):
                keep.add(name)
        except importlib.metadata.PackageNotFoundError:  # a build of its own, without a record
            keep.add(name)
try:
    import cv2
    if int(cv2.__version__.split('.')[0]) >= 5:
        keep.add('opencv-python-headless')
except Exception:  # absent, or present but broken: both are put right by installing it
    pass
for line in lines:
    name = re.match(r'[A-Za-z0-9_-]*', line)[0]
    if name and name not in keep:
        print(line)
SELECT
)"
mapfile -t packages <<< "$wanted"
if [ "${1:-}" = test ]; then
    mapfile -t -O "${#packages[@]}" packages < <(cat "$here/requirements-test.txt")
fi
"$python" -m pip install "${packages[@]}"
echo "done. Try: python main/demo.py"
