"""Who may import whom, who may see the global configuration, and that every package used is required."""
import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OWN = ('common', 'data', 'main', 'tool', 'tests')
LIBRARIES = {'numpy', 'torch', 'torchvision', 'cv2', 'scipy', 'smplx'}
DISTRIBUTIONS = {'cv2': 'opencv-python-headless', 'yaml': 'pyyaml'}
OPTIONAL = {'pynvml', 'matplotlib', 'fontTools'}  # asked for by `optional_import`, or within a tool that says so
# folder -> what of this project it may import (and, where given, the only libraries)
RULES = {
    'common/nets': (('common.nets', 'common.errors', 'common.files', 'common.utils'), LIBRARIES),
    'common/utils': (('common.utils', 'common.errors', 'common.human_model'), LIBRARIES),
    'common/human_model': (('common.human_model', 'common.errors', 'common.files', 'common.utils'), LIBRARIES),
    'data': (('data', 'common.utils', 'common.metrics', 'common.errors', 'common.files', 'common.human_model'), None),
}
SOURCES = sorted(path for folder in ('common', 'data', 'main', 'tool') for path in (ROOT / folder).rglob('*.py')
                 if '/samples/' not in str(path))


def imports(path):
    """[(module, names)] of a file's import statements, wherever they stand."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f'{path}: imports start from the root of the repository'
            found.append((node.module, [alias.name for alias in node.names]))
    return found


def within(module, packages):
    return any(module == package or module.startswith(package + '.') for package in packages)


@pytest.mark.parametrize('folder', RULES)
def test_who_may_import_whom(folder):
    own, libraries = RULES[folder]
    for path in (ROOT / folder).rglob('*.py'):
        for module, names in imports(path):
            top = module.split('.')[0]
            if top in OWN:
                modules = [module] if within(module, own) else [f'{module}.{name}' for name in names] or [module]
                assert all(within(m, own) for m in modules), f'{path} imports {module}'
            elif libraries is not None and top not in sys.stdlib_module_names:
                assert top in libraries, f'{path} imports {module}'


def test_the_parts_below_do_not_know_those_above():
    """common (but for the engine) stands on nothing else here, and no part of the programs on a tool."""
    for path in SOURCES:
        where = path.relative_to(ROOT).as_posix()
        above = ('tool',)
        if where.startswith('common/') and where != 'common/base.py':
            above = ('main', 'data', 'tool')
        for module, _ in imports(path) if not where.startswith('tool/') else ():
            assert module.split('.')[0] not in above, f'{where} imports {module}'


def test_only_main_and_the_engine_see_the_global_configuration():
    for path in SOURCES:
        where = path.relative_to(ROOT).as_posix()
        for module, names in imports(path):
            if module == 'main.config' and 'cfg' in names:
                assert where.startswith('main/') or where == 'common/base.py', f'{where} imports cfg'


def required_packages():
    lines = (ROOT / 'requirements.txt').read_text().splitlines()
    return {re.match(r'[\w-]+', line)[0] for line in lines if line and not line.startswith('#')}


def test_every_package_required_is_used():
    used = set()
    for path in SOURCES:
        for module, _ in imports(path):
            top = module.split('.')[0]
            used.add(DISTRIBUTIONS.get(top, top))
    assert required_packages() <= used


def test_every_package_used_is_required():
    required = required_packages()
    for path in SOURCES:
        if path.is_relative_to(ROOT / 'tool' / 'open_body'):
            continue  # builds the shipped bodies once, with packages that nobody else needs
        for module, _ in imports(path):
            top = module.split('.')[0]
            if top not in sys.stdlib_module_names and top not in OWN and top not in OPTIONAL:
                assert DISTRIBUTIONS.get(top, top) in required, f'{path} imports {top}'


def test_files_can_be_read_in_one_go():
    long = {path.relative_to(ROOT).as_posix(): lines for path in SOURCES
            if (lines := len(path.read_text(encoding='utf-8').splitlines())) > 250}
    assert not long
