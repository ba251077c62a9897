"""requirements.sh: which packages it hands to pip. pip itself is not run."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def handed_to_pip(folder, versions, extra=()):
    """Arguments of `pip install` where torch, torchvision and OpenCV have these versions (None: no such package)."""
    for name, version in versions.items():
        (folder / name).mkdir()
        source = 'raise ImportError' if version is None else f'__version__ = "{version}"'
        (folder / name / '__init__.py').write_text(source + '\n')
        record = folder / f'{name}-{version}.dist-info'
        record.mkdir()
        (record / 'METADATA').write_text(f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n')
    stub = folder / 'python'
    stub.write_text('#!/bin/sh\nif [ "$1" = -m ]; then shift 3; printf "%s\\n" "$@"; exit; fi\n'
                    f'exec "{sys.executable}" "$@"\n')
    stub.chmod(0o755)
    env = {**os.environ, 'PYTHON': str(stub), 'PYTHONPATH': str(folder), 'PIP_BREAK_SYSTEM_PACKAGES': '1'}
    done = subprocess.run(['bash', str(ROOT / 'requirements.sh'), *extra], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[:-1]


@pytest.mark.parametrize(('versions', 'installed'), [
    ({'torch': '2.7.1+cu118', 'torchvision': '0.22.1', 'cv2': '5.0.0'}, set()),
    ({'torch': '2.4.0', 'torchvision': '0.19.0', 'cv2': '5.0.0'}, {'torch', 'torchvision'}),
    ({'torch': '2.14.1', 'torchvision': '0.29.1', 'cv2': '4.12.0'}, {'opencv-python-headless'}),
    ({'torch': '2.14.1', 'torchvision': '0.29.1', 'cv2': None}, {'opencv-python-headless'})])
def test_what_is_there_and_new_enough_stays(tmp_path, versions, installed):
    names = {word.split('>=')[0] for word in handed_to_pip(tmp_path, versions)}
    assert names & {'torch', 'torchvision', 'opencv-python-headless'} == installed
    assert {'numpy', 'smplx', 'omegaconf'} <= names and 'pytest' not in names


def test_the_packages_of_the_tests_are_an_extra(tmp_path):
    words = handed_to_pip(tmp_path, {'torch': '2.14.1', 'torchvision': '0.29.1', 'cv2': '5.0.0'}, ['test'])
    assert {'numpy>=2.0', 'pytest>=8', 'hypothesis'} <= set(words) and '-r' not in ' '.join(words)


def test_the_extra_of_pyproject_is_what_requirements_sh_installs():
    tomllib = pytest.importorskip('tomllib')
    extras = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['optional-dependencies']
    included = re.findall(r'\w+', re.search(r'i2l-meshnet\[(.*)\]', ' '.join(extras['test']))[1])
    packages = {name for name in extras['test'] if not name.startswith('i2l-meshnet')}
    for extra in included:
        packages |= set(extras[extra])
    assert packages == set((ROOT / 'requirements-test.txt').read_text().split())
