"""BVH files, read by the rules of the format alone."""
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from common.export.bvh import person_bvh
from common.export.figure import joint_names
from common.human_model import get_human_model
from tests.export_tools import FROM_CAMERA, MODELS, model_of, truth, wave

FRAMES = [*range(3, 9), 12, 13]


class Bvh:
    """names, parents, offsets (K, 3), channels of each joint, values (T, channels), frame_time."""

    def __init__(self, text: str) -> None:
        skeleton, motion = text.split('MOTION\n')
        self.names: list[str] = []
        self.parents: list[int] = []
        self.offsets: list[np.ndarray] = []
        self.channels: list[list[str]] = []
        stack: list[int] = []
        for line in skeleton.splitlines()[1:]:
            words = line.split()
            if words[0] in ('ROOT', 'JOINT'):
                self.parents.append(stack[-1] if stack else -1)
                self.names.append(words[1])
            elif words[0] == 'End':
                stack.append(-1)
            elif words[0] == '{' and (not stack or stack[-1] >= 0):
                stack.append(len(self.names) - 1)
            elif words[0] == '}':
                stack.pop()
            elif words[0] == 'OFFSET' and stack[-1] >= 0:
                self.offsets.append(np.array(words[1:], float))
            elif words[0] == 'CHANNELS':
                assert int(words[1]) == len(words) - 2
                self.channels.append(words[2:])
        assert not stack
        lines = motion.splitlines()
        self.frame_time = float(lines[1].removeprefix('Frame Time: '))
        self.values = np.array([line.split() for line in lines[2:]], float)
        assert len(self.values) == int(lines[0].removeprefix('Frames: '))

    def joints(self, frame: int) -> dict[str, np.ndarray]:
        """{name: (3,) place} of all joints in one frame."""
        values = iter(self.values[frame])
        turns: list[Rotation] = []
        places: list[np.ndarray] = []
        for parent, offset, channels in zip(self.parents, self.offsets, self.channels, strict=True):
            numbers = {channel: next(values) for channel in channels}
            place = offset + [numbers.get(f'{axis}position', 0) for axis in 'XYZ']
            order = ''.join(channel[0] for channel in channels if channel.endswith('rotation'))
            turn = Rotation.from_euler(order, [numbers[f'{axis}rotation'] for axis in order], degrees=True)
            if parent >= 0:
                place = places[parent] + turns[parent].apply(place)
                turn = turns[parent] * turn
            places.append(place)
            turns.append(turn)
        return dict(zip(self.names, places, strict=True))


@pytest.mark.parametrize('case', MODELS)
def test_every_frame_has_the_joints_of_the_body_model(case: str, stand_in_bodies: Path) -> None:
    human_model = model_of(case, stand_in_bodies)
    motion = wave(human_model, FRAMES, MODELS[case])
    bvh = Bvh(person_bvh(human_model, motion))
    _, joints = truth(human_model, motion)
    assert bvh.frame_time == pytest.approx(1 / 25) and len(bvh.values) == 11
    assert set(bvh.names) == set(joint_names(human_model))
    for row, frame in enumerate(FRAMES):
        found = bvh.joints(frame - FRAMES[0])
        places = np.stack([found[name] for name in joint_names(human_model)])
        np.testing.assert_allclose(places * FROM_CAMERA, joints[row], atol=1e-5)


def test_gaps_hold_still_and_angles_do_not_jump() -> None:
    human_model = get_human_model('open_body')
    motion = wave(human_model, [0, 1, 4, 5])
    values = Bvh(person_bvh(human_model, motion)).values
    np.testing.assert_array_equal(values[1], values[2])
    np.testing.assert_array_equal(values[1], values[3])
    assert (values[4] != values[3]).any()
    motion = wave(human_model, range(40))
    motion.poses[:] = 0
    motion.poses[:, 1] = np.linspace(2, 4, 40)  # through half a turn
    values = Bvh(person_bvh(human_model, motion)).values
    assert np.abs(np.diff(values[:, 3:], axis=0)).max() < 10


def test_a_person_who_lies_down(stand_in_bodies: Path) -> None:
    """A quarter turn about x, where the other two angles are not unique."""
    human_model = get_human_model('open_body')
    motion = wave(human_model, [0])
    motion.poses[0, :3] = Rotation.from_euler('x', 90, degrees=True).as_rotvec()
    bvh = Bvh(person_bvh(human_model, motion))
    _, joints = truth(human_model, motion)
    found = bvh.joints(0)
    places = np.stack([found[name] for name in joint_names(human_model)])
    np.testing.assert_allclose(places * FROM_CAMERA, joints[0], atol=1e-5)
