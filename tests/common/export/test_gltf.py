"""glTF files: what a program that knows glTF alone makes of them is what the body model gives."""
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from common.export import glb_builder
from common.export.figure import joint_names
from common.export.gltf import Glb, mesh_glb, person_glb
from common.export.motion import Motion, View, still
from common.human_model import get_human_model
from common.human_model.body_model import HumanModel
from common.utils.transforms import cam2pixel
from tests.export_tools import FPS, FROM_CAMERA, MODELS, VIEW, guide_blocks, model_of, truth, wave
from tests.gltf_reader import Gltf

pytest.importorskip('pygltflib')
FRAMES = [*range(3, 9), 12, 13, 15]
VERTEX_MM, JOINT_MM = 0.1, 0.01


@pytest.fixture(params=MODELS)
def case(request: pytest.FixtureRequest, stand_in_bodies: Path) -> tuple[HumanModel, Motion]:
    """A body model, and a motion with gaps."""
    human_model = model_of(request.param, stand_in_bodies)
    return human_model, wave(human_model, FRAMES, MODELS[request.param])


def off_mm(found: np.ndarray, expected_in_camera: np.ndarray) -> float:
    """Largest distance of points (N, 3) of a file from points in camera space, mm."""
    return 1000 * float(np.linalg.norm(found * FROM_CAMERA - expected_in_camera, axis=-1).max())


def check_joints(glb: Gltf, human_model: HumanModel, joints: np.ndarray, time: float | None) -> None:
    found = glb.joints_at(time)
    assert tuple(found) == joint_names(human_model)
    assert off_mm(np.stack(list(found.values())), joints) < JOINT_MM


def test_every_frame_is_the_body_models(case: tuple[HumanModel, Motion]) -> None:
    human_model, motion = case
    glb = Gltf(person_glb(human_model, motion).content)
    vertices, joints = truth(human_model, motion)
    share = glb.extras['posedirs']
    assert (share['mm_max'] > 1) == (human_model.name in ('smpl', 'mano'))
    worst = 0.
    for row, time in enumerate(motion.times):
        worst = max(worst, off_mm(glb.vertices_at(time), vertices[row]))
        check_joints(glb, human_model, joints[row], time)
    assert worst < VERTEX_MM + share['mm_max']
    assert worst > 0.5 * share['mm_max']  # it says how far they are off, not just some large number


def test_morph_targets_bring_the_corrections_back(case: tuple[HumanModel, Motion]) -> None:
    human_model, motion = case
    made = person_glb(human_model, motion, posedirs='morph')
    glb = Gltf(made.content)
    vertices, _ = truth(human_model, motion)
    assert max(off_mm(glb.vertices_at(t), v) for t, v in zip(motion.times, vertices, strict=True)) < VERTEX_MM
    first = still(motion.poses[0], motion.trans[0], motion.betas, motion.left_hand)
    image = Gltf(person_glb(human_model, first, posedirs='morph').content)
    assert off_mm(image.vertices_at(None), vertices[0]) < VERTEX_MM
    assert len(image.blob) < 2 * len(Gltf(person_glb(human_model, first).content).blob)
    assert not made.note


def test_an_image_has_a_pose_and_no_animation(case: tuple[HumanModel, Motion]) -> None:
    human_model, motion = case
    first = still(motion.poses[0], motion.trans[0], motion.betas, motion.left_hand, VIEW)
    made = person_glb(human_model, first)
    glb = Gltf(made.content)
    vertices, joints = truth(human_model, first)
    assert 'animations' not in glb.json
    assert off_mm(glb.vertices_at(None), vertices[0]) < VERTEX_MM + glb.extras['posedirs']['mm_max']
    check_joints(glb, human_model, joints[0], None)
    assert ('mm off' in made.note) == (human_model.name in ('smpl', 'mano'))


@pytest.mark.parametrize('name', ['open_body', 'open_hand', 'left open_hand'])
def test_the_surface_looks_outward(name: str) -> None:
    """Mirrored hands too: the volume inside has its sign, and normals are those of the faces."""
    human_model = get_human_model(name.split()[-1])
    glb = Gltf(person_glb(human_model, wave(human_model, [0], MODELS[name])).content)
    points = glb.vertices_at(None)
    a, b, c = (points[glb.faces()[:, i]] for i in range(3))
    assert np.einsum('fi,fi->f', np.cross(a, b), c).sum() > 0
    rest = glb.accessor(glb.json['meshes'][0]['primitives'][0]['attributes']['POSITION'])
    normals = glb.accessor(glb.json['meshes'][0]['primitives'][0]['attributes']['NORMAL'])
    a, b, c = (rest[glb.faces()[:, i]] for i in range(3))
    face_normals = np.cross(b - a, c - a)
    assert (np.einsum('fi,fi->f', face_normals, normals[glb.faces()[:, 0]]) > 0).mean() > 0.95


def test_gaps_are_held_and_listed() -> None:
    human_model = get_human_model('open_hand')
    motion = wave(human_model, FRAMES)
    glb = Gltf(person_glb(human_model, motion).content)
    assert glb.extras['gaps'] == [[9, 11], [14, 14]] and glb.extras['frames'] == [3, 15]
    np.testing.assert_allclose(glb.key_times(), np.array([3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15]) / FPS, rtol=1e-6)
    before = glb.vertices_at(8 / FPS)
    for frame in (9, 10.5, 11):
        np.testing.assert_allclose(glb.vertices_at(frame / FPS), before, atol=1e-6)
    assert np.abs(glb.vertices_at(11.5 / FPS) - before).max() > 1e-3
    np.testing.assert_allclose(glb.vertices_at(0), glb.vertices_at(3 / FPS), atol=1e-6)


def test_frames_have_their_own_times() -> None:
    """Of a video whose frames are not evenly spaced; a hold ends within its gap."""
    human_model = get_human_model('open_hand')
    motion = wave(human_model, [0, 1, 2, 5])
    motion.times = np.array([0., 0.04, 0.2, 0.5])
    glb = Gltf(person_glb(human_model, motion).content)
    np.testing.assert_allclose(glb.key_times(), [0, 0.04, 0.2, 0.4, 0.5], rtol=1e-6)
    vertices, _ = truth(human_model, motion)
    assert off_mm(glb.vertices_at(0.2), vertices[2]) < VERTEX_MM


def test_rotations_take_the_short_way() -> None:
    """Axis-angle poses jump at half a turn; between two key frames nothing turns by more than they do."""
    human_model = get_human_model('open_body')
    motion = wave(human_model, range(30))
    motion.poses[:, :3] = 0
    motion.poses[:, 1] = np.linspace(2.6, 3.7, 30)
    motion.poses[motion.poses[:, 1] > np.pi, 1] -= 2 * np.pi
    glb = Gltf(person_glb(human_model, motion).content)
    root = glb.json['skins'][0]['joints'][0]
    animation = glb.json['animations'][0]
    sampler = next(animation['samplers'][c['sampler']] for c in animation['channels']
                   if c['target'] == {'node': root, 'path': 'rotation'})
    steps = np.diff(glb.accessor(sampler['output']), axis=0)
    assert np.linalg.norm(steps, axis=1).max() < 0.05


def test_a_person_who_faces_the_camera_faces_along_z() -> None:
    human_model = get_human_model('open_body')
    glb = Gltf(person_glb(human_model, still(np.r_[np.pi, np.zeros(71)], np.array([0, 0, 4.]), np.zeros(10))).content)
    joints = glb.joints_at(None)
    assert joints['Head'][1] > joints['Pelvis'][1] + 0.4 > joints['L_Ankle'][1] + 0.8
    assert joints['L_Toe'][2] > joints['L_Ankle'][2] + 0.05
    assert joints['Pelvis'][2] == pytest.approx(-4, abs=0.3)
    assert joints['L_Shoulder'][0] > joints['R_Shoulder'][0] + 0.2  # her left is on the right of the image


def test_the_camera_sees_the_pixels_of_the_image() -> None:
    """Its field of view with glTF's projection gives pixels, up to the principal point, which glTF has not."""
    points = np.array([[0.1, 0.2, 2.], [-0.3, -0.1, 4], [0, 0.4, 3]])
    glb = Gltf(mesh_glb(points, np.array([[0, 1, 2]]), VIEW).content)
    camera = glb.json['cameras'][0]
    lens = camera['perspective']
    x, y, z = glb.vertices_at(None).T
    scale = 1 / np.tan(lens['yfov'] / 2)
    height, width = VIEW.size
    pixels = np.stack([(1 + scale / lens['aspectRatio'] * x / -z) * width / 2, (1 - scale * y / -z) * height / 2], 1)
    np.testing.assert_allclose(pixels, cam2pixel(points, VIEW.focal, VIEW.princpt)[:, :2], atol=1e-4)
    assert camera['extras'] == {'focal': [300., 320.], 'princpt': [160., 120.], 'width': 320, 'height': 240}
    node = glb.json['nodes'][glb.node('camera')]
    assert not {'rotation', 'translation', 'matrix'} & set(node)


def test_a_plain_mesh() -> None:
    human_model = get_human_model('open_hand')
    vertices = truth(human_model, wave(human_model, [0]))[0][0]
    glb = Gltf(mesh_glb(vertices, human_model.face, name='lixel').content)
    assert off_mm(glb.vertices_at(None), vertices) < 1e-3
    np.testing.assert_array_equal(glb.faces(), human_model.face)
    assert 'skins' not in glb.json and 'cameras' not in glb.json


def test_files_say_what_may_be_done_with_them(stand_in_bodies: Path) -> None:
    for name, words in (('smpl', 'not to be passed on'), ('open_body', 'Apache License 2.0')):
        human_model = model_of(name, stand_in_bodies)
        made = person_glb(human_model, wave(human_model, [0]))
        assert words in Gltf(made.content).json['asset']['copyright']


def test_the_lines_of_the_guide_read_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    human_model = get_human_model('open_hand')
    (tmp_path / 'person_0.glb').write_bytes(person_glb(human_model, wave(human_model, range(4))).content)
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    exec(next(text for text in guide_blocks() if 'person_0.glb' in text), found)
    assert tuple(found['names']) == joint_names(human_model)
    np.testing.assert_allclose(found['times'], np.arange(4) / FPS, rtol=1e-6)


def motions() -> dict[str, Glb]:
    """The kinds of files there are."""
    body, hand = get_human_model('open_body'), get_human_model('open_hand')
    mesh = truth(body, wave(body, [0]))[0][0]
    return {'image': person_glb(body, wave(body, [0])), 'other person': person_glb(body, wave(body, [0], seed=1)),
            'video': person_glb(body, wave(body, [*range(20), *range(25, 60)])),
            'hand': person_glb(hand, wave(hand, range(5))), 'left hand': person_glb(hand, wave(hand, range(5), True)),
            'lixel mesh': mesh_glb(mesh, body.face, VIEW)}


def validator() -> list[str] | None:
    """The command of gltf-validator, where node has it (NODE_PATH names its folder)."""
    script = ("const v = require('gltf-validator'), fs = require('fs');"
              "v.validateBytes(new Uint8Array(fs.readFileSync(process.argv[1])))"
              ".then(r => console.log(JSON.stringify(r.issues)))")
    node = shutil.which('node')
    if not node or subprocess.run([node, '-e', "require('gltf-validator')"], capture_output=True).returncode:
        return None
    return [node, '-e', script]


def test_the_validator_finds_nothing(tmp_path: Path, stand_in_bodies: Path) -> None:
    command = validator()
    if command is None:
        pytest.skip('npm install gltf-validator, and NODE_PATH=<its node_modules>')
    files = motions()
    for name in ('smpl', 'mano'):
        human_model = model_of(name, stand_in_bodies)
        files[f'{name}, morphs'] = person_glb(human_model, wave(human_model, range(4)), posedirs='morph')
    for name, made in files.items():
        (tmp_path / 'a.glb').write_bytes(made.content)
        done = subprocess.run([*command, str(tmp_path / 'a.glb')], capture_output=True, text=True, check=True)
        issues = json.loads(done.stdout)
        assert (issues['numErrors'], issues['numWarnings']) == (0, 0), (name, issues['messages'][:3])


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    human_model = get_human_model('open_hand')
    motion = wave(human_model, range(3))
    with pytest.raises(UserError, match='poses of 72 values'):
        person_glb(get_human_model('open_body'), motion)
    with pytest.raises(UserError, match='betas of a figure are 10'):
        person_glb(human_model, still(motion.poses[0], motion.trans[0], np.zeros(9)))
    with pytest.raises(UserError, match='trans that are not finite'):
        still(motion.poses[0], np.array([0, np.nan, 0]), np.zeros(10))
    with pytest.raises(UserError, match='order of their times'):
        Motion(motion.poses, motion.trans, motion.betas, motion.times[::-1], motion.frames)
    with pytest.raises(UserError, match='trans have the shape'):
        Motion(motion.poses, motion.trans[:2], motion.betas, motion.times, motion.frames)
    for focal, princpt, size in (([0., 5], [1., 1], (9, 9)), ([5., 5], [np.nan, 1], (9, 9)), ([5.], [1., 1], (9, 9))):
        with pytest.raises(UserError, match='camera'):
            View(np.array(focal), np.array(princpt), size)
    monkeypatch.setattr(glb_builder, 'gltf_library', missing)
    with pytest.raises(UserError, match='pip install pygltflib'):
        person_glb(human_model, motion)


def missing() -> None:
    raise UserError('writing glTF files needs the package "pygltflib": pip install pygltflib')
