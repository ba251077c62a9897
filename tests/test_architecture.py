"""Who may import whom, who may see the global configuration, and that every package used is required."""
import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OWN = ('common', 'data', 'main', 'tool', 'tests')
DISTRIBUTIONS = {'cv2': 'opencv-python-headless', 'yaml': 'pyyaml'}
# Asked for by `optional_import`, or within a tool that says so.
OPTIONAL = {'pynvml', 'matplotlib', 'fontTools', 'pygltflib', 'onnx', 'onnxscript', 'onnxruntime'}
SET_FOLDERS = {path.parent.name for path in (ROOT / 'data').glob('*/*.py') if path.stem == path.parent.name}
# From the bottom to the top: a part imports those of its own level and below.
LEVELS = {
    'common': (
        {'', 'errors', 'arguments', 'files', 'utils'},
        {'metrics', 'human_model', 'nets'},
        {'devices', 'snapshot', 'export'},
        {'train'},
        {'demo', 'base'}),
    'data': (
        {'settings', 'sample', 'joint_set', 'codec', 'files', 'records'},
        {'rootnet', 'placed_fit', 'target', 'dataset', 'packed'},
        {'checks', 'evaluation'},
        {'boxes', 'fit_bodies', 'index', 'opening'},
        {'mesh_dataset'},
        SET_FOLDERS,
        {'assets', ''}),
}
# What a folder may import from the others. common/base.py alone, the engine, builds on main and data.
OTHERS = {
    'common': (),
    'data': ('common.errors', 'common.files', 'common.utils', 'common.metrics', 'common.human_model'),
    'main': ('common', 'data'),
    'tool': ('common', 'data', 'main'),
}
PURE = ('common.nets', 'common.human_model', 'common.utils', 'common.metrics')  # arrays in, arrays out
PURE_LIBRARIES = {'numpy', 'torch', 'torchvision', 'cv2', 'scipy', 'smplx'}


def module_name(path):
    """'data/__init__.py' -> 'data', 'data/files.py' -> 'data.files'."""
    parts = path.relative_to(ROOT).with_suffix('').parts
    return '.'.join(parts).removesuffix('.__init__')


SOURCES = {module_name(path): path for folder in ('common', 'data', 'main', 'tool')
           for path in sorted((ROOT / folder).rglob('*.py'))}


def imports(path):
    """The modules of a file's import statements, wherever they stand; names of ours that are no module are cut off."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f'{path}: imports start from the root of the repository'
            for alias in node.names:
                name = f'{node.module}.{alias.name}'
                found.add(name if name in SOURCES else node.module)
    return found


IMPORTS = {module: imports(path) for module, path in SOURCES.items()}
OUR_IMPORTS = [(module, other) for module, found in IMPORTS.items() for other in sorted(found)
               if other.split('.')[0] in OWN]


def within(module, packages):
    return any(module == package or module.startswith(package + '.') for package in packages)


def level(module):
    """Number of the level of a module of common or data."""
    folder, _, rest = module.partition('.')
    part = rest.partition('.')[0]
    found = [number for number, parts in enumerate(LEVELS[folder]) if part in parts]
    assert found, f'{module}: give {part} a level'
    return found[0]


@pytest.mark.parametrize('folder', LEVELS)
def test_nothing_runs_upwards(folder):
    upwards = [f'{module} imports {other}' for module, other in OUR_IMPORTS
               if within(module, [folder]) and within(other, [folder]) and level(module) < level(other)]
    assert not upwards


def test_no_circle():
    graph = {module: {other for other in found if other in SOURCES} for module, found in IMPORTS.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(' <- '.join(error.args[1]))


def test_who_may_import_whom():
    wrong = []
    for module, other in OUR_IMPORTS:
        folder = module.split('.')[0]
        if module != 'common.base' and not within(other, [folder, *OTHERS[folder]]):
            wrong.append(f'{module} imports {other}')
        if module == 'common.base' and within(other, ['tool', 'tests']):
            wrong.append(f'{module} imports {other}')
    assert not wrong


def test_the_pure_parts_need_few_libraries():
    for module, found in IMPORTS.items():
        if within(module, PURE):
            tops = {other.split('.')[0] for other in found} - set(sys.stdlib_module_names) - set(OWN)
            assert tops <= PURE_LIBRARIES, f'{module} imports {tops - PURE_LIBRARIES}'


def test_only_main_and_the_engine_see_the_global_configuration():
    for module, path in SOURCES.items():
        if module != 'common.base' and not within(module, ['main']):
            assert not re.search(r'from main\.config import .*\bcfg\b', path.read_text(encoding='utf-8')), module


def required_packages():
    lines = (ROOT / 'requirements.txt').read_text().splitlines()
    return {re.match(r'[\w-]+', line)[0] for line in lines if line and not line.startswith('#')}


def test_every_package_required_is_used():
    used = set()
    for found in IMPORTS.values():
        for module in found:
            top = module.split('.')[0]
            used.add(DISTRIBUTIONS.get(top, top))
    assert required_packages() <= used


def test_every_package_used_is_required():
    required = required_packages()
    for module, found in IMPORTS.items():
        if within(module, ['tool.open_body']):
            continue  # builds the shipped bodies once, with packages that nobody else needs
        for top in {other.split('.')[0] for other in found}:
            if top not in sys.stdlib_module_names and top not in OWN and top not in OPTIONAL:
                assert DISTRIBUTIONS.get(top, top) in required, f'{module} imports {top}'


def test_files_can_be_read_in_one_go():
    lengths = {module: len(path.read_text(encoding='utf-8').splitlines()) for module, path in SOURCES.items()}
    assert not {module: lines for module, lines in lengths.items() if lines > 250}
