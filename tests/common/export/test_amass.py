"""The AMASS layout: names and shapes as readers of AMASS expect them, upright, the same meshes as in camera space."""
import json
from pathlib import Path

import numpy as np
import pytest

from common.export.amass import UNITS, Z_UP, amass_arrays
from common.export.motion import Motion
from common.export.saved import read_people
from common.files.arrays import write_npz
from tests.export_tools import FPS, MODELS, model_of, truth, wave

FRAMES = [3, 4, 5, 9, 10]
HELD = [3, 4, 5, 5, 5, 5, 9, 10]  # the frame that is shown at each number from 3 to 10


def read_amass(path: Path) -> dict[str, np.ndarray]:
    """What programs for AMASS take from a file, by the names of its tutorial (and of its SMPL-X files: frame_rate)."""
    with np.load(path, allow_pickle=False) as data:
        assert float(data['mocap_framerate']) == float(data['mocap_frame_rate']) == FPS
        assert str(data['gender']) in ('neutral', 'male', 'female')
        poses = data['poses']
        count = len(poses)
        assert data['trans'].shape == (count, 3) and data['betas'].shape == (16,) and data['dmpls'].shape == (count, 8)
        return {'root_orient': poses[:, :3], 'pose_body': poses[:, 3:66], 'pose_hand': poses[:, 66:],
                'trans': data['trans'], 'betas': data['betas']}


@pytest.mark.parametrize('case', ['open_body', 'smpl'])
def test_bodies_stand_upright(case: str, stand_in_bodies: Path, tmp_path: Path) -> None:
    human_model = model_of(case, stand_in_bodies)
    motion = wave(human_model, FRAMES)
    motion.poses[:, 66:] = 0  # SMPL's own hand joints, which SMPL+H does not have
    write_npz(tmp_path / 'person_0.npz', amass_arrays(motion, human_model, FPS))
    read = read_amass(tmp_path / 'person_0.npz')
    assert read['pose_hand'].shape == (8, 90) and not read['pose_hand'].any() and not read['betas'][10:].any()
    poses = np.concatenate([read['root_orient'], read['pose_body'], np.zeros((8, 6))], axis=1)
    turned = Motion(poses, read['trans'], read['betas'][:10], np.arange(8.), np.arange(8))
    expected, _ = truth(human_model, motion)
    shown = [FRAMES.index(frame) for frame in HELD]
    vertices, _ = truth(human_model, turned)
    np.testing.assert_allclose(vertices, (expected @ Z_UP.T)[shown], atol=1e-4)
    head = vertices[0, human_model.v_template[:, 1].argmax()]
    assert head[2] > vertices[0, :, 2].mean() + 0.3  # z is up


@pytest.mark.parametrize('case', MODELS)
def test_reading_it_again_gives_the_motion(case: str, stand_in_bodies: Path, tmp_path: Path) -> None:
    human_model = model_of(case, stand_in_bodies)
    motion = wave(human_model, FRAMES, MODELS[case])
    path = tmp_path / 'person_0.npz'
    write_npz(path, amass_arrays(motion, human_model, FPS))
    person, = read_people(path)
    for name in ('poses', 'trans', 'betas', 'times', 'frames', 'left_hand'):
        np.testing.assert_array_equal(getattr(person.motion, name), getattr(motion, name), err_msg=name)
    assert (person.body_model, person.gender) == (human_model.name, human_model.gender)
    with np.load(path) as data:
        assert data['poses'].shape == (8, 48 if human_model.is_hand else 156)
        said = json.loads(str(data['units']))
        arrays = {name for name in data if data[name].dtype.kind == 'f' or data[name].ndim}
    assert said == UNITS and arrays - {'mocap_framerate', 'mocap_frame_rate'} <= set(said)


def test_left_hands_are_mirrored_after_the_turn(stand_in_bodies: Path) -> None:
    human_model = model_of('left open_hand', stand_in_bodies)
    motion = wave(human_model, FRAMES, left_hand=True)
    arrays = amass_arrays(motion, human_model, FPS)
    turned = Motion(arrays['poses'], arrays['trans'], motion.betas, np.arange(8.), np.arange(8), left_hand=True)
    expected = truth(human_model, motion)[0] @ Z_UP.T
    np.testing.assert_allclose(truth(human_model, turned)[0][[0, 1, 2, 6, 7]], expected, atol=1e-5)


def test_files_of_earlier_versions_are_read(tmp_path: Path, stand_in_bodies: Path) -> None:
    """They had the body model's own poses in camera space."""
    human_model = model_of('open_body', stand_in_bodies)
    motion = wave(human_model, FRAMES)
    write_npz(tmp_path / 'a.npz', {
        'poses': motion.poses, 'trans': motion.trans, 'betas': motion.betas, 'fps': np.array(25.),
        'frames': motion.frames, 'gender': np.array('neutral'), 'body_model': np.array('open_body')})
    person, = read_people(tmp_path / 'a.npz')
    np.testing.assert_array_equal(person.motion.poses, motion.poses)
    np.testing.assert_array_equal(person.motion.trans, motion.trans)
