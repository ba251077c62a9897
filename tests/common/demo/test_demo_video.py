"""Videos in the demo: who is who, arrays on disk, and all files of a short clip."""
import json

import cv2
import numpy as np
import pytest
import torch

from common.demo.outputs.video_writer import playable_format
from common.demo.people.tracking import Tracker, overlaps
from common.demo.row_file import RowFile
from common.errors import UserError
from common.files.arrays import write_npz
from common.human_model import get_human_model
from main.demo import main
from tests.demo_tools import write_snapshot, write_video

RNG = np.random.default_rng(0)
VIDEO = playable_format().suffix


def test_overlaps():
    np.testing.assert_allclose(overlaps([[0, 0, 2, 2]], [[0, 0, 2, 2], [1, 0, 2, 2], [5, 5, 1, 1]]), [[1, 1 / 3, 0]])


def test_tracker_follows_people_in_any_order():
    tracker = Tracker(patience=3)
    left, right = np.array([0, 0, 10, 30.]), np.array([50, 0, 10, 30.])
    assert tracker(0, [left, right]) == [0, 1]
    assert tracker(1, [right + [1, 0, 0, 0], left + [1, 0, 0, 0]]) == [1, 0]
    assert tracker(2, []) == []
    assert tracker(3, [right, left + [200, 0, 0, 0]]) == [1, 2]
    assert tracker(4, [left]) == [0]
    assert tracker(9, [right]) == [3]  # out of sight for longer than the patience


def test_rows_on_disk(tmp_path):
    rows = RowFile(tmp_path / 'rows.tmp', (4, 3))
    assert rows.array().shape == (0, 4, 3)
    expected = RNG.normal(size=(5, 4, 3)).astype(np.float32)
    for row in expected:
        rows.append(row)
    rows.array('r+')[2] = expected[2] = 7
    np.testing.assert_array_equal(rows.array(), expected)
    write_npz(tmp_path / 'all.npz', {'names': np.array(['a', 'é']), 'rows': rows.array()})
    with np.load(tmp_path / 'all.npz', allow_pickle=False) as data:
        np.testing.assert_array_equal(data['rows'], expected)
        assert data['names'].tolist() == ['a', 'é']
    rows.close()
    assert not (tmp_path / 'rows.tmp').exists()


@pytest.fixture(scope='module')
def clip(tmp_path_factory):
    """The results of a clip of 12 frames: person 0 in all but frame 5, person 1 in the first three."""
    folder = tmp_path_factory.mktemp('video')
    snapshot = write_snapshot(folder / 'tiny.pth.tar')
    path = write_video(folder / 'clip.avi', 12)
    boxes = {str(i): [[5 + i, 4, 20, 40]] + [[30, 4, 20, 40]] * (i < 3) for i in range(12) if i != 5}
    (folder / 'boxes.json').write_text(json.dumps(boxes))
    assert main(['--gpu', 'cpu', '--snapshot', str(snapshot), '--output', str(folder / 'out'), '--input', str(path),
                 '--bbox_file', str(folder / 'boxes.json'), '--smooth', 'test_batch_size=5']) == 0
    return folder / 'out' / 'clip'


def test_video_files(clip):
    assert {p.name for p in clip.iterdir()} == {
        f'rendered_mesh_lixel{VIDEO}', f'rendered_mesh_param{VIDEO}', 'result.json', 'result.npz', 'person_0.npz',
        'person_1.npz', 'person_0.glb', 'person_1.glb'}
    for kind in ('lixel', 'param'):
        reader = cv2.VideoCapture(str(clip / f'rendered_mesh_{kind}{VIDEO}'))
        count = 0
        while reader.read()[0]:
            count += 1
        assert count == 12 and reader.get(cv2.CAP_PROP_FPS) == 25


def test_video_record(clip):
    record = json.loads((clip / 'result.json').read_text())
    assert record['fps'] == 25 and record['frames_without_people'] == [5] and record['smoothing'] is True
    assert [f['frame'] for f in record['frames']] == list(range(12))
    assert [[p['id'] for p in f['people']] for f in record['frames']] == [[0, 1]] * 3 + [[0]] * 2 + [[]] + [[0]] * 6
    with np.load(clip / 'result.npz', allow_pickle=False) as data:
        assert data['frame'].tolist() == [0, 0, 1, 1, 2, 2, 3, 4, 6, 7, 8, 9, 10, 11]
        assert data['person'].tolist() == [0, 1] * 3 + [0] * 8
        pose, betas, trans = (torch.from_numpy(data[k]).float() for k in ('pose', 'betas', 'trans'))
        vertices, _ = get_human_model('open_body')(pose, betas, trans)
        np.testing.assert_allclose(vertices.numpy(), data['param_vertices_cam'], atol=1e-4)
        np.testing.assert_allclose(data['bbox'][4], [7, 4, 20, 40])


def test_motion_file(clip):
    with np.load(clip / 'result.npz') as data, np.load(clip / 'person_0.npz', allow_pickle=False) as motion:
        mine = data['person'] == 0
        assert motion['pose'].shape == (11, 72) and motion['trans_camera'].shape == (11, 3)
        assert motion['fps'] == 25 and motion['gender'] == 'neutral'
        np.testing.assert_array_equal(motion['pose'], data['pose'][mine])
        assert motion['frames'].tolist() == data['frame'][mine].tolist()
        betas = torch.from_numpy(motion['betas'][:10]).expand(11, -1)
        body = get_human_model('open_body')
        vertices, _ = body(torch.from_numpy(motion['pose']), betas, torch.from_numpy(motion['trans_camera']).float())
        root = (body.joint_regressor[0] @ vertices).numpy()
        np.testing.assert_allclose(root, data['param_joints_cam'][mine, 0], atol=1e-4)


def test_broken_video_says_how_much_was_read(tmp_path, capsys):
    whole = write_video(tmp_path / 'clip.avi', 12).read_bytes()
    (tmp_path / 'clip.avi').write_bytes(whole[:len(whole) // 2])
    snapshot = write_snapshot(tmp_path / 'tiny.pth.tar')
    assert main(['--gpu', 'cpu', '--snapshot', str(snapshot), '--output', str(tmp_path / 'out'), '--input',
                 str(tmp_path / 'clip.avi'), '--bbox', 'full', '--stage', 'lixel']) == 0
    count = len(json.loads((tmp_path / 'out' / 'clip' / 'result.json').read_text())['frames'])
    assert 0 < count < 12
    assert f'clip.avi: only {count} of the 12 frames' in capsys.readouterr().out


def test_nobody_in_a_video(tmp_path):
    path = write_video(tmp_path / 'clip.avi', 2)
    snapshot = write_snapshot(tmp_path / 'tiny.pth.tar')
    (tmp_path / 'boxes.json').write_text('{}')
    with pytest.raises(UserError, match='no person in any frame'):
        main(['--gpu', 'cpu', '--snapshot', str(snapshot), '--output', str(tmp_path / 'out'), '--input', str(path),
              '--bbox_file', str(tmp_path / 'boxes.json')])
    assert not list((tmp_path / 'out').iterdir())
