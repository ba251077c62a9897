"""The converters: what 3DPW's writes, put through the body models, is what the official files described."""
import importlib
import json
import pickle

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from common.errors import UserError
from common.files.images import write_image
from common.human_model import get_human_model
from tests import raw_releases as release
from tool.files import json_list
from tool.files.write import write_json

pw3d = importlib.import_module('tool.3DPW.convert')


FRAMES, INVALID = 6, 2
UNSEEN, BEHIND = 4, 5  # frames in which person 1 has no 2-D keypoints, and stands behind the camera
K_3DPW = np.array([[290., 0, 90], [0, 295., 120], [0, 0, 1]])


def sequence_3dpw(rng):
    cameras = np.tile(np.eye(4), (FRAMES, 1, 1))
    half_turn = Rotation.from_rotvec([np.pi, 0, 0])  # from y up to y down
    turns = Rotation.from_rotvec(rng.normal(size=(FRAMES, 3)) * .2)
    cameras[:, :3, :3] = (half_turn * turns).as_matrix()
    cameras[0, :3, :3] = half_turn.as_matrix()  # exactly 180 degrees
    cameras[:, :3, 3] = [0, 0, 5] + rng.normal(size=(FRAMES, 3)) * .2
    cameras[INVALID] = np.nan
    trans = rng.normal(size=(2, FRAMES, 3)) * .3
    trans[1, BEHIND, 2] += 20  # the camera looks along -z of this world
    seen = np.ones((2, FRAMES, 3, 18))
    seen[1, UNSEEN] = 0
    valid = np.arange(FRAMES) != INVALID
    return dict(
        sequence='walk_00', genders=['m', 'f'], betas=[rng.normal(size=300), rng.normal(size=10)],
        poses=[rng.normal(size=(FRAMES, 72)) * .3 for _ in range(2)], trans=list(trans), cam_poses=cameras,
        cam_intrinsics=K_3DPW, campose_valid=[valid.astype(np.int64), valid], poses2d=list(seen),
        img_frame_ids=np.arange(FRAMES), texture_maps=[])


@pytest.fixture(scope='module')
def converted_3dpw(tmp_path_factory, model_dir):
    raw, data_dir = tmp_path_factory.mktemp('3DPW'), tmp_path_factory.mktemp('data')
    out = data_dir / 'PW3D/data'
    sequence = sequence_3dpw(np.random.default_rng(0))
    release.write_python2_pickle(raw / 'sequenceFiles/validation/walk_00.pkl', sequence)
    release.write_hidden_twins(raw)
    pw3d.main([str(raw), '--split', 'validation', '--out', str(out), '--human_model_dir', str(model_dir)])
    return sequence, release.load_json(out / '3DPW_validation.json'), data_dir


def test_3dpw_annotates_every_visible_person_of_valid_frames(converted_3dpw):
    _, content, _ = converted_3dpw
    frame_of = {image['id']: image['frame_idx'] for image in content['images']}
    people = [(frame_of[a['image_id']], a['person_id']) for a in content['annotations']]
    assert people == [(0, 0), (0, 1), (1, 0), (1, 1), (3, 0), (3, 1), (4, 0), (5, 0)]
    assert [a['id'] for a in content['annotations']] == list(range(8))
    image = content['images'][2]
    assert (image['file_name'], image['sequence']) == ('image_00003.jpg', 'walk_00')
    assert (image['width'], image['height']) == (180, 240)
    assert image['cam_param'] == dict(focal=[290., 295.], princpt=[90., 120.])


def test_3dpw_fits_stand_in_camera_space(converted_3dpw, model_dir):
    sequence, content, _ = converted_3dpw
    frame_of = {image['id']: image['frame_idx'] for image in content['images']}
    for annotation in content['annotations']:
        person, frame = annotation['person_id'], frame_of[annotation['image_id']]
        gender = ('male', 'female')[person]
        assert annotation['smpl_param']['gender'] == gender
        body = get_human_model('smpl', model_dir, gender)
        world, world_joints = release.run_model(body, sequence['poses'][person][frame], sequence['betas'][person][:10],
                                        sequence['trans'][person][frame])
        camera = sequence['cam_poses'][frame]
        vertices, joints = release.run_fit(body, annotation['smpl_param'])
        expected = world @ camera[:3, :3].T + camera[:3, 3]
        assert np.abs(vertices - expected).max() < 1e-4
        assert np.abs(joints - (world_joints @ camera[:3, :3].T + camera[:3, 3])).max() < 1e-4
        assert np.abs(annotation['joint_cam'] - body.joint_regressor.numpy() @ expected).max() < 1e-4
        box = release.pixel_box(expected, [290, 295], [90, 120], 180, 240)
        assert np.allclose(annotation['bbox'], box, atol=.02)


def test_3dpw_loader_reads_it(converted_3dpw, model_dir):
    _, content, data_dir = converted_3dpw
    dataset = release.load_converted('PW3D', 'validation', data_dir, model_dir)
    assert len(dataset) == 8
    for i, annotation in enumerate(content['annotations']):
        _, targets, _ = dataset[i]
        body = get_human_model('smpl', model_dir, annotation['smpl_param']['gender'])
        joints = body.joint_regressor.numpy() @ targets['fit_mesh_coord_cam']
        assert np.abs(joints - annotation['joint_cam']).max() < 1e-4


def test_3dpw_takes_the_size_of_the_images_that_are_there(tmp_path, model_dir):
    release.write_python2_pickle(tmp_path / 'sequenceFiles/test/a.pkl', sequence_3dpw(np.random.default_rng(1)))
    (tmp_path / 'imageFiles/walk_00').mkdir(parents=True)
    cv2.imwrite(str(tmp_path / 'imageFiles/walk_00/image_00000.jpg'), np.zeros((250, 200, 3), np.uint8))
    pw3d.main([str(tmp_path), '--split', 'test', '--out', str(tmp_path), '--human_model_dir', str(model_dir)])
    image = release.load_json(tmp_path / '3DPW_test.json')['images'][0]
    assert (image['width'], image['height']) == (200, 250)


class Exploit:
    def __reduce__(self):
        return eval, ('1 + 1',)


@pytest.mark.parametrize('content, message', [
    (pickle.dumps(Exploit(), 2), 'eval'), (b'not a pickle', 'broken'), (pickle.dumps({'poses': []}, 2), 'lacks')])
def test_3dpw_refuses_other_files(tmp_path, content, message):
    path = tmp_path / 'sequenceFiles/test/bad.pkl'
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        pw3d.main([str(tmp_path), '--split', 'test', '--out', str(tmp_path / 'out')])
    assert 'bad.pkl' in str(error.value)
    assert not (tmp_path / 'out').exists()


def test_lists_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(json_list, 'CHUNK', 7)
    values = [[1.25, -2e-3, [3]], {'a': [4, 5]}, 123456.75, [], 'six , ]', 7]
    for i, text in enumerate((json.dumps(values), json.dumps(values, indent=3) + '\n')):
        (tmp_path / f'{i}.json').write_text(text)
        assert list(json_list.iter_json_list(tmp_path / f'{i}.json', 'a test')) == values
    (tmp_path / 'cut.json').write_text(json.dumps(values)[:-1])
    with pytest.raises(UserError, match='cut off'):
        list(json_list.iter_json_list(tmp_path / 'cut.json', 'a test'))


def test_files_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / 'made' / 'a.json'
    write_json(path, {'a': 1})
    with pytest.raises(ValueError):
        write_json(path, {'a': float('nan')})
    assert release.load_json(path) == {'a': 1} and list(path.parent.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    image = np.zeros((2, 2, 3), np.uint8)
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match='cannot write .*file/a.json .*: choose another place'):
        write_json(tmp_path / 'file' / 'a.json', {})
    with pytest.raises(UserError, match='cannot write .*file/a.png'):
        write_image(tmp_path / 'file' / 'a.png', image)
    with pytest.raises(UserError, match='cannot write .*a.nothing: the name must end with .png or .jpg'):
        write_image(tmp_path / 'a.nothing', image)


@pytest.mark.parametrize('name', ['3DPW', 'FreiHAND', 'SURREAL'])
def test_help(name, capsys):
    with pytest.raises(SystemExit) as end:
        importlib.import_module(f'tool.{name}.convert').main(['--help'])
    assert end.value.code == 0 and '--human_model_dir' in capsys.readouterr().out


def test_one_damaged_sequence_is_left_out_and_listed(tmp_path, model_dir, capsys):
    folder = tmp_path / 'sequenceFiles' / 'test'
    folder.mkdir(parents=True)
    for name in ('a', 'b'):
        release.write_python2_pickle(folder / f'{name}.pkl', sequence_3dpw(np.random.default_rng(1)))
    data = (folder / 'b.pkl').read_bytes()
    (folder / 'b.pkl').write_bytes(data[:len(data) // 2])
    words = [str(tmp_path), '--split', 'test', '--out', str(tmp_path / 'out'), '--human_model_dir', str(model_dir)]
    with pytest.raises(UserError, match='1 of 2 sequences cannot be converted, the last: .*b.pkl is broken'):
        pw3d.main(words)
    pw3d.main([*words, '--max_damaged', '0.5'])
    printed = capsys.readouterr().out
    assert '1 of 2 sequences are left out:\n  ' in printed and 'b.pkl is broken' in printed
    assert release.load_json(tmp_path / 'out/3DPW_test.json')['annotations']


def no_numbers(sequence, key, person, values):
    sequence[key][person] = values


SEQUENCE_FAULTS = {
    'betas that are not finite': lambda sequence: no_numbers(sequence, 'betas', 1, np.full(10, np.nan)),
    'huge betas': lambda sequence: no_numbers(sequence, 'betas', 0, np.full(300, 1e30)),
    'too few betas': lambda sequence: no_numbers(sequence, 'betas', 1, np.zeros(4)),
    'flat keypoints': lambda sequence: no_numbers(sequence, 'poses2d', 1, np.zeros((FRAMES, 54))),
    'one person in the lists': lambda sequence: sequence['trans'].pop(),
    'no focal length': lambda sequence: sequence.update(cam_intrinsics=np.diag([0., 0, 1])),
    'intrinsics that are not finite': lambda sequence: sequence.update(cam_intrinsics=np.full((3, 3), np.nan)),
    'a flat camera': lambda sequence: sequence.update(cam_poses=np.zeros((FRAMES, 12))),
}


@pytest.mark.parametrize('fault', SEQUENCE_FAULTS)
def test_a_sequence_of_impossible_values_is_left_out(tmp_path, model_dir, capsys, fault):
    folder = tmp_path / 'sequenceFiles' / 'test'
    folder.mkdir(parents=True)
    for name in ('a', 'b'):
        sequence = sequence_3dpw(np.random.default_rng(1))
        sequence['sequence'] = name
        if name == 'a':
            SEQUENCE_FAULTS[fault](sequence)
        release.write_python2_pickle(folder / f'{name}.pkl', sequence)
    pw3d.main([str(tmp_path), '--split', 'test', '--out', str(tmp_path / 'out'), '--human_model_dir', str(model_dir),
               '--max_damaged', '0.5'])
    assert '1 of 2 sequences are left out' in capsys.readouterr().out
    images = release.load_json(tmp_path / 'out/3DPW_test.json')['images']
    assert {image['sequence'] for image in images} == {'b'}


def test_frames_of_impossible_values_are_left_out(tmp_path, model_dir):
    sequence = sequence_3dpw(np.random.default_rng(1))
    sequence['poses'][0][1] = 1e30
    sequence['trans'][1][3, 2] = np.nan
    sequence['cam_poses'][4, :3, :3] *= 2
    release.write_python2_pickle(tmp_path / 'sequenceFiles/test/a.pkl', sequence)
    pw3d.main([str(tmp_path), '--split', 'test', '--out', str(tmp_path), '--human_model_dir', str(model_dir)])
    content = release.load_json(tmp_path / '3DPW_test.json')
    frame_of = {image['id']: image['frame_idx'] for image in content['images']}
    people = [(frame_of[person['image_id']], person['person_id']) for person in content['annotations']]
    assert people == [(0, 0), (0, 1), (1, 1), (3, 0), (5, 0)]


def test_a_damaged_first_image_of_a_sequence_is_passed_over(tmp_path, model_dir):
    release.write_python2_pickle(tmp_path / 'sequenceFiles/test/a.pkl', sequence_3dpw(np.random.default_rng(1)))
    folder = tmp_path / 'imageFiles/walk_00'
    folder.mkdir(parents=True)
    (folder / 'image_00000.jpg').write_bytes(b'')
    words = [str(tmp_path), '--split', 'test', '--out', str(tmp_path), '--human_model_dir', str(model_dir)]
    with pytest.raises(UserError, match='1 of 1 sequences cannot be .*none of the images there can be read'):
        pw3d.main(words)
    cv2.imwrite(str(folder / 'image_00001.jpg'), np.zeros((250, 200, 3), np.uint8))
    pw3d.main(words)
    image = release.load_json(tmp_path / '3DPW_test.json')['images'][0]
    assert (image['width'], image['height']) == (200, 250)
