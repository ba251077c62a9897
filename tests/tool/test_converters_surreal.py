"""The SURREAL converter: its bodies stand where the clip's joints are, in plain and in mirrored images."""
import cv2
import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.spatial.transform import Rotation

from common.errors import UserError
from common.human_model import get_human_model
from common.utils.joint_set import SMPL
from tests import raw_releases as release
from tool.SURREAL import convert as surreal


def write_clip(folder, body, mirrored, rng, frames=4):
    """A clip whose camera is the published one (mirrored images) or its mirror image; joints in camera space."""
    place = np.array([6., -1., .3])
    heading = Rotation.from_euler('x', 90, degrees=True) * Rotation.from_euler('z', 40, degrees=True)
    pose, shape = rng.normal(size=(frames, 72)) * .25, rng.normal(size=10)
    joints = np.stack([release.run_model(body, p, shape, np.zeros(3))[1] for p in pose])
    joints = heading.apply(joints.reshape(-1, 3)).reshape(joints.shape) + [0, -.8, 0]
    to_camera = np.array([[0, 0, -1.], [0, 1, 0], [-1, 0, 0]])
    camera = (joints - place) @ to_camera.T * ([1, 1, 1] if mirrored else [-1, 1, 1])
    pixels = camera[..., :2] / camera[..., 2:] * 600 + [160, 120]
    folder.mkdir(parents=True, exist_ok=True)
    savemat(folder / 'clip_c0001_info.mat', dict(
        pose=pose.T, shape=np.tile(shape[:, None], (1, frames)), joints3D=joints.transpose(2, 1, 0),
        joints2D=pixels.transpose(2, 1, 0), camLoc=place[:, None], gender=np.ones((frames, 1), np.uint8)))
    write_video(folder / 'clip_c0001.mp4', frames)
    return camera


def write_video(path, frames, height=240, width=320):
    """Frame i is of the grey 40 i."""
    video = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*'mp4v'), 10, (width, height))
    for i in range(frames):
        video.write(np.full((height, width, 3), 40 * i, np.uint8))
    video.release()


@pytest.mark.parametrize('mirrored', [False, True])
def test_surreal_round_trip(tmp_path, model_dir, mirrored):
    body = get_human_model('smpl', model_dir, 'male')
    camera = write_clip(tmp_path / 'train/run0/walk', body, mirrored, np.random.default_rng(6))
    release.write_hidden_twins(tmp_path)
    surreal.main([str(tmp_path), '--split', 'train', '--every', '2', '--out', str(tmp_path / 'SURREAL/data'),
                  '--human_model_dir', str(model_dir)])
    content = release.load_json(tmp_path / 'SURREAL/data/SURREAL_train.json')
    assert [image['frame_idx'] for image in content['images']] == [0, 2]
    for image, annotation in zip(content['images'], content['annotations'], strict=True):
        vertices, joints = release.run_fit(body, annotation['smpl_param'])
        expected = camera[image['frame_idx']]
        # in a mirrored image the left hip is seen as a right one, and the body is only nearly symmetric
        expected = expected[SMPL.flip_order()[:24]] if mirrored else expected
        assert np.linalg.norm(joints - expected, axis=1).mean() < (.01 if mirrored else 1e-4)
        assert np.allclose(annotation['bbox'], release.pixel_box(vertices, 600, [160, 120], 320, 240), atol=.05)
        assert annotation['smpl_param']['gender'] == 'male'
        seen = cv2.imread(str(tmp_path / 'SURREAL/data/imageFiles' / image['sequence'] / image['file_name']))
        assert abs(seen.mean() - 40 * image['frame_idx']) < 4
    dataset = release.load_converted('SURREAL', 'train', tmp_path, model_dir)
    inputs, targets, meta_info = dataset.get_item(1, None)
    assert inputs['img'].max() > .2 and meta_info['is_valid_fit'] == 1 and meta_info['fit_mesh_trunc'].mean() > .9


def test_surreal_leaves_out_what_it_cannot_explain(tmp_path, model_dir):
    body = get_human_model('smpl', model_dir, 'female')  # the file says male
    write_clip(tmp_path / 'val/run0/walk', body, False, np.random.default_rng(7))
    arguments = [str(tmp_path), '--split', 'val', '--out', str(tmp_path / 'out'), '--human_model_dir', str(model_dir)]
    with pytest.raises(UserError, match='none of the 1 clips'):
        surreal.main(arguments)
    (tmp_path / 'val/run0/walk/clip_c0001_info.mat').write_bytes(b'nothing')
    with pytest.raises(UserError, match='clip_c0001_info.mat'):
        surreal.main(arguments)


@pytest.mark.parametrize('fault', ['no video', 'cut video', 'large video', 'cut file', 'nan', 'huge shape',
                                   'no frames'])
def test_one_damaged_clip_is_left_out_and_listed(tmp_path, model_dir, capsys, fault):
    body = get_human_model('smpl', model_dir, 'male')
    for name in ('walk', 'run'):
        write_clip(tmp_path / 'train' / name, body, False, np.random.default_rng(6))
    info = tmp_path / 'train/run/clip_c0001_info.mat'
    video = tmp_path / 'train/run/clip_c0001.mp4'
    if fault == 'no video':
        video.unlink()
    elif fault == 'cut video':
        video.write_bytes(video.read_bytes()[:200])
    elif fault == 'large video':
        write_video(video, 4, 480, 640)
    elif fault == 'cut file':
        info.write_bytes(info.read_bytes()[:500])
    else:
        content = {key: value for key, value in loadmat(info).items() if not key.startswith('_')}
        if fault == 'nan':
            content['pose'][0, 0] = np.nan
        elif fault == 'huge shape':
            content['shape'][:] = 1e30
        else:
            content |= {key: content[key][..., :0] for key in ('pose', 'joints3D', 'joints2D')}
        savemat(info, content)
    words = [str(tmp_path), '--split', 'train', '--every', '2', '--out', str(tmp_path / 'out'),
             '--human_model_dir', str(model_dir)]
    with pytest.raises(UserError, match='1 of 2 clips cannot be converted, the last: .*run/clip.*--max_damaged 0.5'):
        surreal.main(words)
    assert not (tmp_path / 'out/SURREAL_train.json').exists()
    with pytest.raises(UserError, match='--max_damaged 2.0: must be from 0 to 1'):
        surreal.main([*words, '--max_damaged', '2'])
    surreal.main([*words, '--max_damaged', '0.5'])
    printed = capsys.readouterr().out
    assert '1 of 2 clips are left out:\n  ' in printed and 'run/clip_c0001' in printed
    images = release.load_json(tmp_path / 'out/SURREAL_train.json')['images']
    assert {image['sequence'] for image in images} == {'train_walk_clip_c0001'}
