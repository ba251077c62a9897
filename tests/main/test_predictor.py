"""The Python API: the lines of the guide, from another folder, and the same numbers as the demo's."""
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from common.demo.inputs.images import read_image
from common.demo.pipeline import Pipeline
from common.errors import UserError
from main.bundled import ROOT, SAMPLES, SNAPSHOT
from main.demo import main as demo
from main.predictor import Predictor
from tests.demo_tools import blobs, write_snapshot

pytestmark = pytest.mark.filterwarnings('ignore:this network')  # the tiny ones know drawings, too
BOXES = [[20, 30, 60, 120], [70, 20, 80, 180]]


def guide_lines() -> str:
    """The Python block of the guide that uses the class."""
    blocks = re.findall(r'^```python\n(.*?)^```', (ROOT / 'docs' / 'demo.md').read_text(encoding='utf-8'), re.S | re.M)
    block, = (text for text in blocks if 'Predictor(' in text)
    return block


@pytest.mark.timeout(320)
def test_the_lines_of_the_guide_run_from_another_folder(tmp_path: Path) -> None:
    assert len(guide_lines().splitlines()) <= 10
    shutil.copy(SAMPLES / 'sample_1.jpg', tmp_path / 'photo.jpg')
    (tmp_path / 'lines.py').write_text(guide_lines())
    env = os.environ | {'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1', 'CUDA_VISIBLE_DEVICES': ''}
    ran = subprocess.run([sys.executable, 'lines.py'], cwd=tmp_path, env=env, capture_output=True, text=True,
                         timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert 'lixel_vertices_cam (1, 6890, 3)' in ran.stdout and 'knows drawn people only' in ran.stderr
    demo(['--gpu', 'cpu', '--input', str(tmp_path / 'photo.jpg'), '--bbox', '156', '107', '185', '290', '--output',
          str(tmp_path / 'out')])
    with np.load(tmp_path / 'people.npz') as found, np.load(tmp_path / 'out' / 'photo' / 'result.npz') as expected:
        assert set(found) == set(expected) - {'meta', 'joint_names'}
        for name in found:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-3, err_msg=name)
    assert 'Pelvis [' in ran.stdout


def test_the_docstring_names_every_array(tmp_path: Path) -> None:
    predictor = Predictor(write_snapshot(tmp_path / 'tiny.pth.tar'), 'cpu')
    arrays = predictor(blobs(240, 180), BOXES)
    shapes = re.findall(r'(\w+(?:, \w+)*) \((P[^)]*|F, 3|2,)\)', Predictor.__call__.__doc__ or '')
    sizes = {'P': 2, 'V': 6890, 'J': 29, 'K * 3': 72, 'F': len(arrays['faces']), 'joints of the network': 29}
    described = {}
    for names, shape in shapes:
        parts = [part.strip() for part in shape.split(',') if part.strip()]
        for name in names.split(', '):
            described[name] = tuple(sizes.get(part) or int(part) for part in parts)
    assert described == {name: array.shape for name, array in arrays.items()}


def test_it_is_what_the_demo_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the page: `Work` gets one, too."""
    made: list[object] = []
    for name in ('run_images', 'serve'):
        monkeypatch.setattr(f'main.demo.{name}', lambda first, *rest: made.append(first) or 0)
    monkeypatch.setattr('main.demo.Work', lambda pipeline, finder: pipeline)
    demo(['--gpu', 'cpu'])
    demo(['--gpu', 'cpu', '--serve'])
    assert [type(one) for one in made] == [Predictor, Predictor] and issubclass(Predictor, Pipeline)


def test_keywords_and_the_lixel_stage(tmp_path: Path) -> None:
    predictor = Predictor(write_snapshot(tmp_path / 'tiny.pth.tar'), 'cpu', stage='lixel', focal=[800.],
                          root_depth=[5.], princpt=[10., 20.], joint_set='coco')
    arrays = predictor(blobs(240, 180), BOXES[:1])
    assert arrays['focal'].tolist() == [800, 800] and arrays['princpt'].tolist() == [10, 20]
    assert arrays['root_depth'].tolist() == [5] and arrays['lixel_joints_cam'].shape == (1, 17, 3)
    assert 'pose' not in arrays


def test_an_array_is_the_same_as_its_file(tmp_path: Path) -> None:
    predictor = Predictor(write_snapshot(tmp_path / 'tiny.pth.tar'), 'cpu')
    path = SAMPLES / 'sample_1.jpg'
    by_path = predictor(path, ['full'])
    for name, array in predictor(read_image(path).image, ['full']).items():
        np.testing.assert_array_equal(array, by_path[name])


def test_one_warning_of_the_bundled_network() -> None:
    predictor = Predictor(SNAPSHOT, 'cpu', stage='lixel')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        predictor(blobs(240, 180), BOXES)
        predictor(blobs(240, 180), BOXES)
    assert ['drawn people only' in str(warning.message) for warning in caught] == [True]
    assert caught[0].filename == __file__


def test_what_cannot_be_used(tmp_path: Path) -> None:
    predictor = Predictor(write_snapshot(tmp_path / 'tiny.pth.tar'), 'cpu')
    for image, boxes, told in ((blobs(240, 180)[..., 0], BOXES, 'height, width, 3'),
                               (blobs(240, 180) / 255, BOXES, 'float64'), (blobs(240, 180), [], 'a box for each'),
                               (blobs(240, 180), [[1, 2, 3]], 'box 0: a box is four'),
                               (tmp_path / 'no.jpg', BOXES, 'read')):
        with pytest.raises(UserError, match=told):
            predictor(image, boxes)
    with pytest.raises(UserError, match='no such file|cannot'):
        Predictor(tmp_path / 'none.pth.tar')


@pytest.mark.parametrize('wrong, says', [({'joint_set': 'foo'}, 'joint_set foo: one of all, smpl, h36m, coco'),
                                         ({'device': 'cuda:99'}, 'device cuda:99 cannot be used here: '),
                                         ({'device': 'gpu'}, 'device gpu cannot be used here: ')])
def test_a_wrong_keyword_is_one_line(wrong: dict[str, str], says: str) -> None:
    with pytest.raises(UserError, match=says) as error:
        Predictor(**wrong)
    assert '\n' not in str(error.value)
