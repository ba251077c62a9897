"""The network as an ONNX file: what onnxruntime computes from it alone is what PyTorch computes."""
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from common.demo.inputs.images import read_image
from common.errors import UserError, optional_import
from common.export import onnx_file
from main.config import ROOT, Config
from main.predictor import load_predictor
from tests.demo_tools import write_snapshot
from tests.export_tools import guide_blocks
from tests.faults.commands import refusal, says
from tests.tiny import SETTINGS
from tool import export_onnx
from tool.benchmark import main as benchmark

pytest.importorskip('onnxscript')
onnx = pytest.importorskip('onnx')
onnxruntime = pytest.importorskip('onnxruntime')
OUTPUTS = {'joints_lixel': (29, 3), 'mesh_lixel': (6890, 3), 'pose': (72,), 'betas': (10,), 'vertices': (6890, 3),
           'joints': (29, 3)}


@pytest.fixture(scope='module')
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny snapshot, and its ONNX file."""
    folder = tmp_path_factory.mktemp('onnx')
    snapshot = write_snapshot(folder / 'tiny.pth.tar')
    export_onnx.main(['--snapshot', str(snapshot), '--output', str(folder / 'tiny.onnx')])
    return snapshot, folder / 'tiny.onnx'


@pytest.mark.parametrize('batch', [1, 3, 8])
def test_the_file_computes_what_the_demo_does(written: tuple[Path, Path], batch: int) -> None:
    """Beside the demo's own network, which knows nothing of the export."""
    snapshot, path = written
    images = np.random.default_rng(batch).random((batch, 3, 32, 32), np.float32)
    session = onnxruntime.InferenceSession(str(path))
    found = dict(zip(OUTPUTS, session.run(list(OUTPUTS), {'image': images}), strict=True))
    predictor = load_predictor(Config(), snapshot)
    expected = predictor.run(images)
    for name, shape in OUTPUTS.items():
        assert found[name].shape == (batch, *shape)
    for name, theirs in (('joints_lixel', 'joint_coord_img'), ('mesh_lixel', 'mesh_coord_img')):
        np.testing.assert_allclose(found[name], expected[theirs], atol=1e-3)
        assert found[name].std() > 0.5  # lixels, of 8
    np.testing.assert_allclose(found['vertices'], expected['mesh_coord_cam'], atol=1e-5)
    regressor = predictor.human_model.joint_regressor.numpy()
    np.testing.assert_allclose(found['joints'], regressor @ expected['mesh_coord_cam'], atol=1e-5)
    np.testing.assert_allclose(found['betas'], expected['shape_param'], atol=1e-5)
    vertices, _ = predictor.human_model(torch.from_numpy(found['pose']), torch.from_numpy(found['betas']))
    assert np.ptp(vertices.numpy() - found['vertices'], axis=1).max() < 2e-5  # the root joint alone lies between them


def test_the_file_describes_itself(written: tuple[Path, Path]) -> None:
    model = onnx.load(written[1])
    onnx.checker.check_model(model)
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert facts['body_model'] == 'open_body' and facts['stage'] == 'param'
    assert '32, 32' in facts['image'] and '0..1' in facts['image']
    assert [output.name for output in model.graph.output] == list(OUTPUTS)
    for output, unit in zip(model.graph.output, ('lixels', 'lixels', 'radians', 'deviations', 'metres', 'metres'),
                            strict=True):
        assert unit in facts[output.name] and output.doc_string == facts[output.name]
        assert output.type.tensor_type.shape.dim[0].dim_param == 'batch'


def test_a_file_of_the_lixel_stage(written: tuple[Path, Path], tmp_path: Path,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / 'lixel.onnx'
    export_onnx.main(['--snapshot', str(written[0]), '--stage', 'lixel', '--output', str(path)])
    out = capsys.readouterr().out
    says(out, r'wrote .*lixel.onnx', r'largest differences from PyTorch: joints_lixel \d\.\de-\d\d lixels')
    assert [output.name for output in onnxruntime.InferenceSession(str(path)).get_outputs()] == list(OUTPUTS)[:2]


@pytest.mark.parametrize('wrong', [2e-3, float('nan')])
def test_a_file_that_computes_something_else_is_deleted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                        capsys: pytest.CaptureFixture[str], wrong: float) -> None:
    snapshot = write_snapshot(tmp_path / 'tiny.pth.tar')
    values = iter([wrong, 0., 0.])
    monkeypatch.setattr(export_onnx, 'onnx_bytes', lambda *args: b'content')
    monkeypatch.setattr(export_onnx, 'OnnxSession', lambda path: None)
    monkeypatch.setattr(export_onnx, 'differences', lambda *args: {'mesh_lixel': next(values)})
    path = tmp_path / 'a.onnx'
    says(refusal(capsys, export_onnx.main, '--snapshot', snapshot, '--output', path), 'deleted: mesh_lixel differ')
    assert not path.exists()


def test_what_is_wrong_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = write_snapshot(tmp_path / 'tiny.pth.tar')

    def refused(*words: object) -> str:
        return refusal(capsys, export_onnx.main, *words)

    says(refused(), '--snapshot')
    says(refused('--snapshot', tmp_path / 'none.pth.tar'), 'no snapshot')
    monkeypatch.setattr(export_onnx, 'onnx_bytes', lambda *args: b'content')
    (tmp_path / 'file').write_text('')
    message = refused('--snapshot', snapshot, '--output', tmp_path / 'file' / 'a.onnx')
    says(message, 'cannot write', 'choose another place')
    monkeypatch.setattr(onnx_file, 'optional_import', hide('onnxscript'))
    says(refused('--snapshot', snapshot), 'writing ONNX files needs the package "onnxscript"', 'pip install onnxscript')


def hide(name: str) -> Callable[[str, str], object]:
    """An optional_import on a machine without the package `name`."""
    def imported(wanted: str, why: str) -> object:
        if wanted == name:
            raise UserError(f'{why} needs the package "{name}": pip install {name}')
        return optional_import(wanted, why)
    return imported


def test_the_benchmark_puts_onnxruntime_beside_pytorch(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark(['--gpu', 'cpu', '--parts', 'onnx', '--repeats', '1', *SETTINGS])
    says(capsys.readouterr().out, r'onnxruntime on the CPU, batch 3 +[\d.]+ images/s +PyTorch on the CPU +[\d.]+')


def test_the_lines_of_the_guide_give_the_joints_of_the_demo(written: tuple[Path, Path], tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, path = written
    sample = ROOT / 'data' / 'Synthetic' / 'samples' / 'sample_1.jpg'
    shutil.copy(path, tmp_path / 'nano.onnx')
    shutil.copy(sample, tmp_path / 'photo.jpg')
    monkeypatch.chdir(tmp_path)
    block = next(text for text in guide_blocks() if 'nano.onnx' in text)
    names: dict = {}
    exec(block, names)
    predictor = load_predictor(Config(), snapshot)
    predictor.antialias = False  # this network's crop is smaller than a quarter of the box
    box = [names[key] for key in 'xywh']
    crop = predictor.crop(read_image(sample).image, [np.float32(box)])[0]
    patch = crop.patch.transpose(2, 0, 1) / 255
    back = crop.to_image
    assert np.abs(names['image'][0] - patch).mean() < 0.001
    joints = predictor.codec.decode(predictor.run(crop.patch[None])['joint_coord_img'][0], 0., back)[:, :2]
    np.testing.assert_allclose(names['pixels'], joints, atol=.05)
    ends = np.array([[0., 0, 0], [8, 8, 8]])  # lixels: this network's joints lie close together
    found = (ends[:, :2] * float(names['facts']['crop_pixels_per_lixel']) - names['shift']) / names['scale']
    np.testing.assert_allclose(found, predictor.codec.decode(ends, 0., back)[:, :2], atol=.05)
    assert float(names['facts']['metres_per_lixel']) == 2 / 8
