"""The demo's command line from images to files, with a very small random network."""
import io
import json
import os
import re
import sys

import cv2
import numpy as np
import pytest
import torch
from tqdm import tqdm

from common.demo import image_run
from common.errors import UserError
from common.human_model import get_human_model
from common.utils.transforms import cam2pixel
from main.demo import main
from tests.demo_tools import write_image, write_snapshot

SIX = {f'{kind}_{mesh}.{end}' for mesh in ('lixel', 'param') for kind, end in (
    ('output_mesh', 'jpg'), ('rendered_mesh', 'jpg'), ('output_mesh', 'obj'))}
ALL = SIX | {'overview.jpg', 'result.json', 'result.npz', 'person_0.glb', 'lixel_0.glb'}


@pytest.fixture(scope='module')
def snapshot(tmp_path_factory):
    return write_snapshot(tmp_path_factory.mktemp('snapshot') / 'tiny.pth.tar')


@pytest.fixture
def demo(snapshot, tmp_path):
    """Runs the demo on tmp_path/photo.jpg (240 high, 180 wide) unless another --input is given."""
    write_image(tmp_path / 'photo.jpg')

    def run_demo(*options):
        given = [str(option) for option in options]
        if '--input' not in given:
            given = ['--input', str(tmp_path / 'photo.jpg'), *given]
        return main(['--gpu', 'cpu', '--snapshot', str(snapshot), '--output', str(tmp_path / 'out'), *given])

    return run_demo


def test_one_person(demo, tmp_path):
    assert demo('--bbox', 20, 30, 60, 120) == 0
    folder = tmp_path / 'out' / 'photo'
    assert {p.name for p in folder.iterdir()} == ALL and len(SIX) == 6
    for name in SIX:
        if name.endswith('.jpg'):
            assert cv2.imread(str(folder / name)).shape == (240, 180, 3)
    record = json.loads((folder / 'result.json').read_text())
    assert record['width'] == 180 and record['height'] == 240
    assert record['camera']['focal'] == [360, 360] and record['camera']['princpt'] == [90, 120]
    assert record['model']['body_model'] == 'open_body' and record['model']['gender'] == 'neutral'
    person, = record['people']
    assert person['bbox'] == [20, 30, 60, 120]
    assert list(person['lixel_joints_img']) == record['joint_names'] and len(record['joint_names']) == 29
    for key in person:
        assert key in record['units'] or key in ('id', 'depth_source')


@pytest.mark.parametrize('options, said', [([], 'y up'), (['--axes', 'camera'], 'y down')])
def test_frames_of_the_files_are_in_header_and_units(demo, tmp_path, options, said):
    demo('--bbox', 20, 30, 60, 120, *options)
    folder = tmp_path / 'out' / 'photo'
    units = json.loads((folder / 'result.json').read_text())['units']
    for kind in ('lixel', 'param'):
        header = (folder / f'output_mesh_{kind}.obj').read_text().splitlines()[0]
        assert header == '# ' + units['*.obj'] and said in header
    assert units['*.glb'].encode() in (folder / 'person_0.glb').read_bytes()


def test_parameters_reproduce_the_vertices(demo, tmp_path):
    demo('--bbox', 20, 30, 60, 120, '--bbox', 70, 20, 80, 180)
    folder = tmp_path / 'out' / 'photo'
    with np.load(folder / 'result.npz', allow_pickle=False) as data:
        result = dict(data)
    body = get_human_model('open_body')
    pose, betas, trans = (torch.from_numpy(result[k]).float() for k in ('pose', 'betas', 'trans'))
    vertices, _ = body(pose, betas, trans)
    np.testing.assert_allclose(vertices.numpy(), result['param_vertices_cam'], atol=1e-4)
    record = json.loads((folder / 'result.json').read_text())
    for number, person in enumerate(record['people']):
        vertices, _ = body(*(torch.tensor([person[k]]) for k in ('pose', 'betas', 'trans')))
        np.testing.assert_allclose(vertices[0].numpy(), result['param_vertices_cam'][number], atol=1e-4)
        joints = np.array(list(person['param_joints_cam'].values()))
        np.testing.assert_allclose(joints, body.joint_regressor.numpy() @ vertices[0].numpy(), atol=1e-4)
        lines = (folder / f'person_{number}' / 'output_mesh_param.obj').read_text().splitlines()
        obj = np.array([line.split()[1:] for line in lines if line.startswith('v ')], float)
        np.testing.assert_allclose(obj * [1, -1, -1], result['param_vertices_cam'][number], atol=1e-5)
    meta = json.loads(str(result['meta']))
    assert set(meta['units']) >= set(result) - {'meta', 'joint_names'}


def test_lixel_pixels_do_not_depend_on_the_camera(demo, tmp_path):
    pixels, camera = [], []
    for extra in ([], ['--focal', 500], ['--focal', 5000, 4000], ['--root_depth', 5], ['--root_depth', 12],
                  ['--princpt', 30, 40], ['--focal', 900, '--root_depth', 4]):
        demo('--bbox', 20, 30, 60, 120, *extra)
        result = np.load(tmp_path / 'out' / 'photo' / 'result.npz')
        pixels.append(cam2pixel(result['lixel_vertices_cam'][0], result['focal'], result['princpt'])[:, :2])
        np.testing.assert_allclose(pixels[-1], result['lixel_vertices_img'][0, :, :2], atol=0.1)
        camera.append((result['focal'].tolist(), float(result['root_depth'][0])))
    np.testing.assert_allclose(pixels[1:], np.broadcast_to(pixels[0], np.shape(pixels[1:])), atol=0.1)
    assert camera[1][0] == [500, 500] and camera[2][0] == [5000, 4000] and camera[6] == ([900, 900], 4)
    assert camera[3] == ([360, 360], 5) and camera[4] == ([360, 360], 12)  # a depth changes no focal length


def test_several_people_have_folders_of_their_own(demo, tmp_path):
    demo('--bbox', 20, 30, 60, 120, '--bbox', 70, 20, 80, 180)
    folder = tmp_path / 'out' / 'photo'
    assert {p.name for p in folder.iterdir()} == {
        'person_0', 'person_1', 'rendered_mesh_lixel.jpg', 'rendered_mesh_param.jpg', 'overview.jpg', 'result.json',
        'result.npz', 'person_0.glb', 'person_1.glb', 'lixel_0.glb', 'lixel_1.glb'}
    for number in (0, 1):
        assert {p.name for p in (folder / f'person_{number}').iterdir()} == SIX
    assert [p['id'] for p in json.loads((folder / 'result.json').read_text())['people']] == [0, 1]


def test_lixel_stage_writes_no_parameters(demo, tmp_path):
    demo('--bbox', 20, 30, 60, 120, '--stage', 'lixel')
    folder = tmp_path / 'out' / 'photo'
    assert {p.name for p in folder.iterdir()} == {name for name in ALL if 'param' not in name} - {'person_0.glb'}
    record = json.loads((folder / 'result.json').read_text())
    assert record['people'][0]['depth_source'] == 'box area' and 'pose' not in record['people'][0]
    assert record['units']['*.glb'].encode() in (folder / 'lixel_0.glb').read_bytes()


def test_left_hand(tmp_path):
    """778 vertices, 21 joints; the parameters give the mirrored mesh."""
    snapshot = write_snapshot(tmp_path / 'hand.pth.tar', 'body_model=open_hand')
    write_image(tmp_path / 'photo.jpg')
    assert main(['--gpu', 'cpu', '--snapshot', str(snapshot), '--output', str(tmp_path / 'out'), '--left', '--input',
                 str(tmp_path / 'photo.jpg'), '--bbox', '20', '30', '60', '80']) == 0
    folder = tmp_path / 'out' / 'photo'
    assert {p.name for p in folder.iterdir()} == ALL
    record = json.loads((folder / 'result.json').read_text())
    assert record['model']['left_hand'] and len(record['joint_names']) == 21
    assert 'x negated' in record['units']['trans'] and 'mean hand' in record['units']['pose']
    with np.load(folder / 'result.npz') as data:
        pose, betas, trans = (torch.from_numpy(data[k]).float() for k in ('pose', 'betas', 'trans'))
        vertices, _ = get_human_model('open_hand')(pose, betas, trans)
        assert vertices.shape == (1, 778, 3)
        np.testing.assert_allclose(vertices.numpy() * [-1, 1, 1], data['param_vertices_cam'], atol=1e-4)


@pytest.mark.parametrize('name, first, count', [('all', 'Pelvis', 29), ('smpl', 'Pelvis', 24), ('coco', 'Nose', 17),
                                                ('h36m', 'Pelvis', 17)])
def test_joint_sets(demo, tmp_path, name, first, count):
    demo('--bbox', 20, 30, 60, 120, '--joint_set', name)
    record = json.loads((tmp_path / 'out' / 'photo' / 'result.json').read_text())
    assert record['joint_names'][0] == first and len(record['joint_names']) == count
    assert len(record['people'][0]['param_joints_cam']) == count


def test_folder_of_images_with_a_box_file(demo, tmp_path):
    (tmp_path / 'in').mkdir()
    boxes = {}
    for i in range(3):
        write_image(tmp_path / 'in' / f'{i}.png', seed=i)
        boxes[f'{i}.png'] = [[20, 30, 60, 120]] * (i + 1)
    write_image(tmp_path / 'in' / '0.jpg', seed=9)
    boxes['0.jpg'] = ['full']
    (tmp_path / 'in' / 'broken.jpg').write_text('no image')
    (tmp_path / 'boxes.json').write_text(json.dumps(boxes))
    with pytest.raises(UserError, match='1 of 5 images could not be used.*broken.jpg'):
        demo('--input', tmp_path / 'in', '--bbox_file', tmp_path / 'boxes.json', 'test_batch_size=2')
    folders = {p.name: json.loads((p / 'result.json').read_text()) for p in (tmp_path / 'out').iterdir()}
    assert {name: (record['source'].rsplit('/')[-1], len(record['people'])) for name, record in folders.items()} == {
        '0': ('0.jpg', 1), '0_2': ('0.png', 1), '1': ('1.png', 2), '2': ('2.png', 3)}


def test_folder_with_a_box_without_pixels(demo, tmp_path):
    """The other images of the same batch are still made."""
    (tmp_path / 'in').mkdir()
    for i in range(3):
        write_image(tmp_path / 'in' / f'{i}.png', seed=i)
    boxes = {'0.png': [20, 30, 60, 120], '1.png': [20, 30, 0.5, 0.5], '2.png': [20, 30, 60, 120]}
    (tmp_path / 'boxes.json').write_text(json.dumps(boxes))
    with pytest.raises(UserError, match='1 of 3 images could not be used: 1.png.*too little'):
        demo('--input', tmp_path / 'in', '--bbox_file', tmp_path / 'boxes.json')
    assert {p.name for p in (tmp_path / 'out').iterdir()} == {'0', '2'}


@pytest.mark.skipif(sys.platform != 'linux', reason='other systems have no such names')
def test_name_that_is_no_text(demo, tmp_path):
    """Names of files on Linux are bytes, which need not be UTF-8."""
    path = tmp_path / os.fsdecode(b'caf\xe9.jpg')
    write_image(tmp_path / 'photo.jpg').rename(path)
    for _ in range(2):
        assert demo('--input', path, '--bbox', 'full', '--stage', 'lixel') == 0
    folder, = (tmp_path / 'out').iterdir()
    assert folder.name == path.stem
    assert json.loads((folder / 'result.json').read_text(encoding='utf-8'))['source'] == str(path)


@pytest.mark.parametrize('delay', [0, 1000])
def test_messages_have_lines_of_their_own(demo, tmp_path, monkeypatch, delay):
    """Also where a progress bar stands, or has not appeared yet."""
    write_image(tmp_path / 'wide.png', 40, 200)
    screen = io.StringIO()
    for name in ('stdout', 'stderr'):
        monkeypatch.setattr(sys, name, screen)
    monkeypatch.setattr(image_run, 'tqdm', lambda **options: tqdm(**options | {'delay': delay}))
    demo('--input', tmp_path / 'wide.png', '--bbox', 'full', '--stage', 'lixel')
    assert ('0/1' in screen.getvalue()) == (delay == 0)
    lines = re.split('[\r\n]', screen.getvalue())
    assert [sum(line.startswith(start) for line in lines) for start in ('wide.png: the whole', '1 image, ')] == [1, 1]


def test_settings_behind_the_boxes(demo, tmp_path):
    """argparse hands everything after --bbox to it: settings among it are told apart."""
    demo('--bbox', 20, 30, 60, 120, 'test_batch_size=1', '--bbox', 'full')
    assert len(json.loads((tmp_path / 'out' / 'photo' / 'result.json').read_text())['people']) == 2


@pytest.mark.parametrize('height, width', [(40, 40), (30, 3000), (2000, 1500)])
def test_sizes_of_images(demo, tmp_path, height, width):
    write_image(tmp_path / 'size.png', height, width)
    demo('--input', tmp_path / 'size.png', '--bbox', 'full', '--stage', 'lixel')
    assert cv2.imread(str(tmp_path / 'out' / 'size' / 'rendered_mesh_lixel.jpg')).shape == (height, width, 3)


@pytest.mark.parametrize('options, told', [
    ('', 'where are the people'), ('--bbox 1 2 3', 'four numbers'), ('--bbox 500 2 3 4', 'outside'),
    ('--bbox 1 2 0 4', 'no area'), ('--bbox 60 70 170 220', 'xyxy'), ('--bbox full --detect', 'give one of them'),
    ('--bbox full --root_depth 0.3', 'at least 1.1 m'), ('--bbox full --root_depth 3 4', '2 numbers for 1 people'),
    ('--bbox full --focal 0', 'positive'), ('--bbox full --focal 1e308', 'positive'),
    ('--bbox full --smooth', 'for videos'), ('--bbox full --focal 1 2 3', 'takes one number'),
    ('--bbox full --left', 'is for hands'), ('--bbox_file nothing.json', 'cannot be read')])
def test_mistakes_write_nothing(demo, tmp_path, options, told):
    with pytest.raises(UserError, match=told) as caught:
        demo(*options.split())
    assert '\n' not in str(caught.value)
    assert not (tmp_path / 'out').exists() or not list((tmp_path / 'out').iterdir())


@pytest.mark.parametrize('content', [b'<html>sorry</html>', b'', b'PK\x03\x04'])
def test_no_snapshot(tmp_path, content):
    (tmp_path / 'x.pth.tar').write_bytes(content)
    write_image(tmp_path / 'photo.jpg')
    with pytest.raises(UserError, match='not a checkpoint'):
        main(['--gpu', 'cpu', '--input', str(tmp_path / 'photo.jpg'), '--bbox', 'full', '--snapshot',
              str(tmp_path / 'x.pth.tar')])
