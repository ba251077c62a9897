"""--turntable and --side_by_side: which videos they add or change, for images and for videos."""
import itertools
from pathlib import Path

import cv2
import numpy as np
import pytest

from common.demo.inputs.video import Video
from common.demo.outputs import turntable
from common.demo.outputs.video_writer import playable_format
from main.demo import main
from tests.demo_tools import write_image, write_snapshot, write_video

VIDEO = playable_format().suffix


@pytest.fixture(scope='module')
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_snapshot(tmp_path_factory.mktemp('snapshot') / 'tiny.pth.tar')


@pytest.fixture
def few_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turntable, 'FRAMES', 4)


def videos_of(snapshot: Path, path: Path, *options: str) -> dict[str, list[np.ndarray]]:
    """Run the demo; the frames of each video that it writes, by the name without its ending."""
    out = path.parent / 'out'
    paths = ['--snapshot', str(snapshot), '--output', str(out), '--input', str(path)]
    assert main(['--gpu', 'cpu', *paths, *options]) == 0
    folder = out / path.stem
    found = {}
    for file in folder.rglob(f'*{VIDEO}'):
        name = str(file.relative_to(folder)).removesuffix(VIDEO)
        found[name] = [image for _, image in Video(file)]
    return found


@pytest.mark.usefixtures('few_frames')
def test_turntables_of_an_image(snapshot: Path, tmp_path: Path) -> None:
    image = write_image(tmp_path / 'photo.jpg')
    found = videos_of(snapshot, image, '--bbox', '20', '30', '60', '120', '--turntable')
    assert sorted(found) == ['turntable_lixel', 'turntable_param']
    for frames in found.values():
        assert len(frames) == 4 and frames[0].shape == (480, 360, 3)
    # the lixel mesh of a random network is a line
    for one, other in itertools.combinations(found['turntable_param'], 2):
        assert np.abs(one.astype(int) - other).max() > 60


@pytest.mark.usefixtures('few_frames')
def test_turntables_of_several_people(snapshot: Path, tmp_path: Path) -> None:
    image = write_image(tmp_path / 'photo.jpg')
    boxes = ['--bbox', '20', '30', '60', '120', '--bbox', '70', '20', '80', '180']
    found = videos_of(snapshot, image, *boxes, '--turntable', '--stage', 'lixel')
    assert sorted(found) == ['person_0/turntable_lixel', 'person_1/turntable_lixel']


@pytest.mark.usefixtures('few_frames')
def test_turntables_and_frames_of_a_video(snapshot: Path, tmp_path: Path) -> None:
    clip = write_video(tmp_path / 'clip.avi', 3)
    boxes = ['--bbox', '5', '4', '20', '40', '--bbox', '30', '4', '20', '40']
    found = videos_of(snapshot, clip, *boxes, '--turntable', '--side_by_side', '--every_frame')
    lengths = {name: len(frames) for name, frames in found.items()}
    assert lengths == {'person_0_turntable_lixel': 4, 'person_0_turntable_param': 4, 'person_1_turntable_lixel': 4,
                       'person_1_turntable_param': 4, 'rendered_mesh_lixel': 3, 'rendered_mesh_param': 3}
    reader = cv2.VideoCapture(str(clip))
    for frame in found['rendered_mesh_param']:
        before = cv2.cvtColor(reader.read()[1], cv2.COLOR_BGR2RGB)
        assert frame.shape == (48, 128, 3)
        off = np.abs(frame.astype(int) - np.concatenate([before, before], axis=1))
        assert off[:, :64].max() < 50 < off[:, 64:].max()
