"""person_<n>.glb of the demo: what a program that knows glTF alone shows is what the results say, in every frame."""
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from common.demo.outputs.figures import Figures
from common.human_model import get_human_model
from main.demo import main
from tests.demo_tools import write_image, write_snapshot, write_video
from tests.export_tools import FROM_CAMERA, model_of, wave
from tests.gltf_reader import Gltf

VERTEX_MM = 0.1


def run(folder: Path, *options: str, overrides: tuple[str, ...] = ()) -> None:
    snapshot = write_snapshot(folder / 'tiny.pth.tar', *overrides)
    assert main(['--gpu', 'cpu', '--snapshot', str(snapshot), '--output', str(folder / 'out'), *options]) == 0


def off_mm(found: np.ndarray, in_camera: np.ndarray) -> float:
    return 1000 * float(np.linalg.norm(found * FROM_CAMERA - in_camera, axis=-1).max())


@pytest.mark.parametrize('overrides, more', [((), []), (('body_model=open_hand',), []),
                                             (('body_model=open_hand',), ['--left'])])
def test_people_of_an_image(tmp_path: Path, overrides: tuple[str, ...], more: list[str]) -> None:
    pytest.importorskip('pygltflib')
    photo = write_image(tmp_path / 'photo.jpg')
    run(tmp_path, '--input', str(photo), '--bbox', '20', '30', '60', '80', '--bbox', '70', '20', '80', '180', *more,
        overrides=overrides)
    folder = tmp_path / 'out' / 'photo'
    with np.load(folder / 'result.npz') as data:
        for number, vertices in enumerate(data['param_vertices_cam']):
            glb = Gltf((folder / f'person_{number}.glb').read_bytes())
            assert off_mm(glb.vertices_at(None), vertices) < VERTEX_MM
            assert glb.extras['left_hand'] == bool(more) and 'animations' not in glb.json
            lixel = Gltf((folder / f'lixel_{number}.glb').read_bytes())
            assert off_mm(lixel.vertices_at(None), data['lixel_vertices_cam'][number]) < VERTEX_MM
            np.testing.assert_array_equal(lixel.faces(), data['faces'])
    assert not (folder / 'person_2.glb').exists()


@pytest.fixture(scope='module')
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of 12 frames: person 0 in all but 5 and 6, person 1 in the first three."""
    pytest.importorskip('pygltflib')
    folder = tmp_path_factory.mktemp('figures')
    path = write_video(folder / 'clip.avi', 12)
    boxes = {str(i): [[5 + i, 4, 20, 40]] + [[30 - 3 * i, 4, 20, 40]] * (i < 3) for i in range(12) if i not in (5, 6)}
    (folder / 'boxes.json').write_text(json.dumps(boxes))
    run(folder, '--input', str(path), '--bbox_file', str(folder / 'boxes.json'), '--smooth')
    return folder / 'out' / 'clip'


@pytest.mark.parametrize('person', [0, 1])
def test_people_of_a_video(clip: Path, person: int) -> None:
    glb = Gltf((clip / f'person_{person}.glb').read_bytes())
    assert glb.extras['gaps'] == ([[5, 6]] if person == 0 else [])
    with np.load(clip / 'result.npz') as data:
        rows = np.flatnonzero(data['person'] == person)
        assert len(rows) == (10, 3)[person]
        for row in rows:
            assert off_mm(glb.vertices_at(data['times'][row]), data['param_vertices_cam'][row]) < VERTEX_MM
        moved = np.linalg.norm(np.diff(data['param_vertices_cam'][rows], axis=0), axis=-1)
        assert moved.max() > 1e-3  # otherwise any one pose would do


@pytest.mark.parametrize('person', [0, 1])
def test_one_shape_for_a_person_of_a_video(clip: Path, person: int) -> None:
    """The results of every frame, the motion file and the figure have the same."""
    with np.load(clip / 'result.npz') as data, np.load(clip / f'person_{person}.npz') as motion:
        mine = data['person'] == person
        np.testing.assert_array_equal(data['betas'][mine], np.broadcast_to(motion['betas'][:10], (mine.sum(), 10)))
        np.testing.assert_array_equal(data['trans'][mine], motion['trans_camera'])
        betas = torch.from_numpy(data['betas'][mine])
        vertices, _ = get_human_model('open_body')(
            torch.from_numpy(motion['pose']), betas, torch.from_numpy(motion['trans_camera']).float())
        np.testing.assert_allclose(vertices.numpy(), data['param_vertices_cam'][mine], atol=1e-4)
        glb = Gltf((clip / f'person_{person}.glb').read_bytes())
        np.testing.assert_allclose(glb.extras['betas'], motion['betas'][:10])
    for frame in json.loads((clip / 'result.json').read_text())['frames']:
        for entry in frame['people']:
            if entry['id'] == person:
                np.testing.assert_allclose(entry['betas'], glb.extras['betas'], atol=1e-7)


def test_corrections_left_out_are_said_once(tmp_path: Path, stand_in_bodies: Path) -> None:
    """Of all people of all images, the largest."""
    pytest.importorskip('pygltflib')
    body = model_of('smpl', stand_in_bodies)
    figures = Figures(body)
    largest = 0.
    for number in range(3):
        figures.write(tmp_path, number, wave(body, [0], seed=number))
        extras = Gltf((tmp_path / f'person_{number}.glb').read_bytes()).extras
        largest = max(largest, extras['posedirs']['mm_max'])
    assert figures.note.startswith('person_<n>.glb: without the pose-dependent corrections of smpl')
    assert f'up to {largest:.1f} mm off' in figures.note and largest > 1


@pytest.mark.parametrize('stage', ['param', 'lixel'])
def test_without_the_package_there_is_one_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture, stage: str) -> None:
    monkeypatch.setitem(sys.modules, 'pygltflib', None)
    (tmp_path / 'in').mkdir()
    for name in ('a.jpg', 'b.jpg'):
        write_image(tmp_path / 'in' / name)
    run(tmp_path, '--input', str(tmp_path / 'in'), '--bbox', '20', '30', '60', '80', '--stage', stage)
    said = capsys.readouterr().out
    assert said.count('no .glb files: writing glTF files needs the package "pygltflib"') == 1
    assert (tmp_path / 'out' / 'b' / 'result.npz').exists() and not list((tmp_path / 'out').rglob('*.glb'))
