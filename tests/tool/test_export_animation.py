"""Figures from what the demo has saved: they stand and move as the results say."""
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from common.human_model import get_human_model
from main.demo import main as demo
from tests.demo_tools import write_image, write_snapshot, write_video
from tests.export_tools import FROM_CAMERA
from tests.faults.commands import refusal, says
from tests.gltf_reader import Gltf
from tool.export_animation import main

pytest.importorskip('pygltflib')


def run_demo(folder: Path, *words: str, hand: bool = False) -> Path:
    """The output folder of the demo with a tiny random network."""
    snapshot = write_snapshot(folder / 'tiny.pth.tar', *(['body_model=open_hand'] if hand else []))
    assert demo(['--gpu', 'cpu', '--snapshot', str(snapshot), '--output', str(folder / 'out'), *words]) == 0
    return folder / 'out'


@pytest.fixture(scope='module')
def image_result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of an image of two people."""
    folder = tmp_path_factory.mktemp('image')
    photo = write_image(folder / 'photo.png')
    out = run_demo(folder, '--input', str(photo), '--bbox', '10', '10', '80', '200', '--bbox', '90', '20', '80', '200')
    return out / 'photo' / 'result.npz'


def test_people_of_an_image(image_result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(image_result), '--output', str(tmp_path / 'figures')])
    assert 'wrote person_0.glb, person_0.bvh, person_1.glb, person_1.bvh (1 frame)' in capsys.readouterr().out
    with np.load(image_result) as data:
        for number, vertices in enumerate(data['param_vertices_cam']):
            glb = Gltf((tmp_path / 'figures' / f'person_{number}.glb').read_bytes())
            np.testing.assert_allclose(glb.vertices_at(None) * FROM_CAMERA, vertices, atol=1e-4)
            assert glb.json['cameras'][0]['extras']['focal'] == data['focal'].tolist()
            assert (tmp_path / 'figures' / f'person_{number}.bvh').is_file()


def test_a_left_hand(tmp_path: Path) -> None:
    photo = write_image(tmp_path / 'photo.png')
    out = run_demo(tmp_path, '--input', str(photo), '--bbox', '10', '10', '80', '200', '--left', hand=True)
    result = out / 'photo' / 'result.npz'
    main([str(result)])
    glb = Gltf((result.parent / 'person_0.glb').read_bytes())
    with np.load(result) as data:
        np.testing.assert_allclose(glb.vertices_at(None) * FROM_CAMERA, data['param_vertices_cam'][0], atol=1e-4)
        np.testing.assert_array_equal(glb.faces(), data['faces'])
    assert glb.extras['left_hand'] is True


def test_a_person_of_a_video(tmp_path: Path) -> None:
    clip = write_video(tmp_path / 'clip.avi', 12)
    boxes = {str(i): [[5 + i, 4, 20, 40]] for i in range(12) if i not in (5, 6)}
    (tmp_path / 'boxes.json').write_text(json.dumps(boxes))
    out = run_demo(tmp_path, '--input', str(clip), '--bbox_file', str(tmp_path / 'boxes.json'))
    saved = out / 'clip' / 'person_0.npz'
    main([str(saved)])
    glb = Gltf(saved.with_suffix('.glb').read_bytes())
    assert glb.extras['gaps'] == [[5, 6]]
    assert glb.json['cameras'][0]['extras']['width'] == 64
    with np.load(saved) as data:
        betas = torch.from_numpy(data['betas'][:10]).expand(10, -1)
        vertices, _ = get_human_model('open_body')(torch.from_numpy(data['pose']), betas,
                                                   torch.from_numpy(data['trans_camera']).float())
        for frame, expected in zip(data['frames'], vertices.numpy(), strict=True):
            np.testing.assert_allclose(glb.vertices_at(frame / 25) * FROM_CAMERA, expected, atol=1e-4)


def test_what_is_wrong_with_a_file_is_said_in_one_line(image_result: Path, tmp_path: Path,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    def refused(path: Path, *words: str) -> str:
        return refusal(capsys, main, path, *words)

    (tmp_path / 'broken.npz').write_bytes(image_result.read_bytes()[:5000])
    np.savez(tmp_path / 'other.npz', numbers=np.zeros(3))
    np.savez(tmp_path / 'odd.npz', poses=np.zeros((2, 5)), trans=np.zeros((2, 3)), betas=np.zeros(10), fps=25,
             gender='neutral', body_model='open_body')
    np.savez(tmp_path / 'objects.npz', poses=np.array([None]), fps=25)
    says(refused(tmp_path / 'broken.npz'), 'broken.npz cannot be read')
    says(refused(tmp_path / 'none.npz'), 'none.npz: no such file')
    says(refused(tmp_path), 'cannot be read')
    says(refused(tmp_path / 'other.npz'), 'has no pose', 'person_<n>.npz')
    says(refused(tmp_path / 'odd.npz'), 'needs poses of 72 values')
    says(refused(tmp_path / 'objects.npz'), 'cannot be read')
    (tmp_path / 'file').write_text('')
    says(refused(image_result, '--output', str(tmp_path / 'file')), 'cannot write', 'choose another place')
    assert not list(tmp_path.glob('*.glb'))


def test_a_result_of_the_lixel_stage_has_no_pose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photo = write_image(tmp_path / 'photo.png')
    out = run_demo(tmp_path, '--input', str(photo), '--bbox', '10', '10', '80', '200', '--stage', 'lixel')
    says(refusal(capsys, main, out / 'photo' / 'result.npz'), 'no pose', 'lixel stage', 'param stage')


def test_arrays_that_do_not_belong_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = {'poses': np.zeros((2, 72)), 'trans': np.zeros((2, 3)), 'betas': np.zeros(10), 'fps': 25.,
            'gender': 'neutral', 'body_model': 'open_body'}
    cases = [('gender', 'x' * 10, 'neutral only'), ('body_model', 'none', 'unknown body model'),
             ('body_model', np.zeros(3), 'a text was expected'), ('fps', 0., '0 frames per second'),
             ('trans', np.zeros((1, 3)), r'trans have the shape \(1, 3\)'), ('trans', np.zeros((2, 2)), 'trans have'),
             ('poses', np.zeros(72), 'trans have'), ('frames', np.zeros((2, 2)), 'frames have'),
             ('frames', np.array([0., np.nan]), 'frames have'), ('frames', np.array([0, 10**9]), 'at most'),
             ('focal', np.ones(2), "has no 'size'"), ('betas', np.zeros(9), 'betas of a figure are 10')]
    for name, value, words in cases:
        np.savez(tmp_path / 'a.npz', **{**good, name: value})
        says(refusal(capsys, main, tmp_path / 'a.npz'), words)
    np.savez(tmp_path / 'a.npz', **good)
    main([str(tmp_path / 'a.npz')])


def test_a_text_that_claims_to_be_huge_takes_no_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = b"{'descr': '<U500000000', 'fortran_order': False, 'shape': (), }"
    header += b' ' * (-(len(header) + 11) % 64) + b'\n'
    with zipfile.ZipFile(tmp_path / 'a.npz', 'w') as archive:
        archive.writestr('gender.npy', b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header)
    says(refusal(capsys, main, tmp_path / 'a.npz'), 'a text was expected')
