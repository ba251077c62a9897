"""The time of each frame: what a video states of its rate is compared with the frames' own times."""
import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from common.demo.inputs.video import Video, is_video
from common.demo.outputs.video_writer import playable_format
from common.export.saved import read_people
from main.demo import main
from tests.demo_tools import blobs, write_snapshot, write_video, write_webm

JITTER = [0, 5, -7, 2, 7, -3, 0, -6, 4, 1, -2, 6, -5, 3, 0, 7, -7, 2, -1, 5, -4, 0, 6, 0]
RECORDING = [40 * frame + off for frame, off in enumerate(JITTER)]
WITH_PAUSES = [0, 40, 80, 500, 540, 580, 620, 900]


def read(path: Path) -> Video:
    video = Video(path)
    assert len(list(video)) > 0
    return video


def test_a_browsers_recording(tmp_path: Path) -> None:
    """FFmpeg makes 1000 frames per second of it."""
    path = write_webm(tmp_path / 'recording.webm', RECORDING)
    assert cv2.VideoCapture(str(path)).get(cv2.CAP_PROP_FPS) == 1000
    video = read(path)
    assert video.fps == pytest.approx(25, rel=0.01) and video.frames == 24 and not video.uneven
    assert video.notes == ['states 1000 frames per second, but has 25 by the times of its frames, which count']
    np.testing.assert_allclose(list(video.times.values()), np.array(RECORDING) / 1000, atol=1e-6)


def test_pauses(tmp_path: Path) -> None:
    video = read(write_webm(tmp_path / 'clip.webm', WITH_PAUSES))
    assert video.fps == pytest.approx(25) and video.uneven
    assert video.notes[-1].startswith('its frames are not evenly spaced in time; the results have the time of each')
    np.testing.assert_allclose(list(video.times.values()), np.array(WITH_PAUSES) / 1000, atol=1e-6)


def test_a_rate_that_is_right_stays(tmp_path: Path) -> None:
    video = read(write_video(tmp_path / 'clip.avi', 12))
    assert (video.fps, video.frames, video.notes) == (25, 12, [])
    np.testing.assert_allclose(list(video.times.values()), np.arange(12) / 25, atol=1e-6)


class Reader:
    """A video of small black frames with any times (ms) and stated rate; None: a frame that cannot be read."""

    def __init__(self, times: list[float | None], fps: float) -> None:
        self.times = times
        self.fps = fps
        self.at = -1

    def read(self) -> tuple[bool, np.ndarray]:
        self.at += 1
        return self.at < len(self.times) and self.times[self.at] is not None, np.zeros((4, 4, 3), np.uint8)

    def get(self, what: int) -> float | None:
        if what == cv2.CAP_PROP_POS_MSEC:
            return self.times[self.at]
        return {cv2.CAP_PROP_FRAME_COUNT: len(self.times), cv2.CAP_PROP_FPS: self.fps}[what]

    def release(self) -> None:
        pass


@pytest.mark.parametrize('times, stated, fps, uneven', [
    ([0, 33, 67, 100, 133], 29.97, 29.97, False),  # rounded to milliseconds
    ([0, 4, 8, 13, 17, 21, 25, 29, 33], 240, 240, False),
    ([0, 33, 67, 100, 133], 60, 30, False), ([0, 33, 67, 100, 133], 90000, 30, False),
    ([0, 10, 70, 80, 140, 150, 210], 28, 28, True),  # in pairs
    ([0, 40, None, None, 160, 200], 25, 25, False),
    ([0, 40, 40, 80, 120, 160], 1000, 25, False),  # two at once
    ([0, 0, 0, 0], 25, 25, False), ([0, float('nan'), 3, 4], 25, 25, False), ([80, 40, 0], 25, 25, False),
    ([0], 25, 25, False)])
def test_rates(monkeypatch: pytest.MonkeyPatch, times: list, stated: float, fps: float, uneven: bool) -> None:
    monkeypatch.setattr(cv2, 'VideoCapture', lambda path: Reader(times, stated))
    video = read(Path('x.mp4'))
    assert video.fps == pytest.approx(fps, rel=0.01) and video.uneven == uneven
    steps = np.diff(list(video.times.values()))
    assert list(video.times) == [number for number, time in enumerate(times) if time is not None]
    assert (steps > 0).all() and np.isfinite(steps).all()
    again = dict(video.times)
    assert len(list(video)) == len(again) and video.times == again and len(video.notes) <= 2


@pytest.mark.parametrize('name, codec', [('a.3gp', 'mp4v'), ('b.ts', 'MPG2'), ('c.MTS', 'MPG2'), ('d.m2ts', 'MPG2')])
def test_videos_of_cameras(tmp_path: Path, name: str, codec: str) -> None:
    path = tmp_path / name
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*codec), 25, (176, 144))
    for _ in range(6):
        writer.write(blobs(144, 176))
    writer.release()
    assert is_video(path)
    video = read(path)
    assert video.size == (144, 176) and video.fps == pytest.approx(25) and len(video.times) == 6


def test_times_in_the_results(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = write_webm(tmp_path / 'clip.webm', WITH_PAUSES)
    snapshot = write_snapshot(tmp_path / 'tiny.pth.tar')
    boxes = {str(frame): [5, 4, 20, 40] for frame in range(8) if frame != 4}
    (tmp_path / 'boxes.json').write_text(json.dumps(boxes))
    assert main(['--gpu', 'cpu', '--snapshot', str(snapshot), '--output', str(tmp_path / 'out'), '--input', str(path),
                 '--bbox_file', str(tmp_path / 'boxes.json'), '--smooth']) == 0
    said = capsys.readouterr().out
    assert 'clip.webm: its frames are not evenly spaced' in said and 'only' not in said
    folder = tmp_path / 'out' / 'clip'
    seconds = np.array(WITH_PAUSES) / 1000
    there = [0, 1, 2, 3, 5, 6, 7]
    record = json.loads((folder / 'result.json').read_text())
    assert record['fps'] == pytest.approx(25) and record['units']['times'].startswith('seconds')
    np.testing.assert_allclose(record['times'], seconds, atol=1e-6)
    with np.load(folder / 'result.npz') as data:
        np.testing.assert_allclose(data['times'], seconds[there], atol=1e-6)
    person = read_people(folder / 'person_0.npz')[0]
    np.testing.assert_allclose(person.motion.times, seconds[there], atol=1e-6)
    overlay = cv2.VideoCapture(str(folder / f'rendered_mesh_param{playable_format().suffix}'))
    assert overlay.get(cv2.CAP_PROP_FPS) == pytest.approx(25) and overlay.get(cv2.CAP_PROP_FRAME_COUNT) == 8
