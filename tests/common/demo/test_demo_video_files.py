"""Reading videos with broken frames and odd headers; writing overlay videos of odd sizes and onto full disks."""
import resource
from pathlib import Path

import cv2
import numpy as np
import pytest

from common.demo.inputs.video import Video
from common.demo.outputs import video_writer
from common.demo.outputs.record import JointReader, Record
from common.demo.outputs.video_files import OverlayVideos
from common.demo.outputs.video_writer import VideoFormat, VideoWriter, playable_format
from common.demo.people.prediction import Camera
from common.demo.people.predictor import NetworkInfo
from common.errors import UserError
from tests.web_driver import Browser, browser_missing

VIDEO = playable_format().suffix


def overlays(folder, size, frames, image, side_by_side=False):
    """Write overlay videos of an image with nobody on it, and read them: a list of frames each."""
    camera = Camera(np.ones(2), np.zeros(2), 'given')
    info = NetworkInfo('', 'param', 'open_body', 'neutral')
    record = Record('', size, info, JointReader((), np.zeros((0, 3))), np.zeros((0, 3), int), camera)
    with OverlayVideos(folder, record, 25, side_by_side) as videos:
        for _ in range(frames):
            videos.add(image, [], [])
    return [read_back(folder / f'rendered_mesh_{kind}{VIDEO}') for kind in ('lixel', 'param')]


def read_back(path):
    return [image for _, image in Video(path)]


@pytest.mark.parametrize('height, width', [(47, 64), (48, 65), (47, 65), (48, 64)])
def test_overlay_videos_of_odd_sizes_are_whole(tmp_path, height, width):
    """The codec has even sizes only: the last row and column are there, and once more."""
    image = np.zeros((height, width, 3), np.uint8)
    image[-1], image[:, -1] = 255, 255
    for frames in overlays(tmp_path, (height, width), 3, image):
        assert len(frames) == 3 and frames[0].shape == (48, 64 + 2 * (width % 2), 3)
        assert frames[0][height - 1].mean() > 180 and frames[0][:, width - 1].mean() > 180


@pytest.mark.parametrize('part', [0.02, 0.5, 0.99])
def test_full_disk_is_noticed(tmp_path: Path, part: float) -> None:
    """OpenCV does not say that it could not write, and the file states all frames."""
    noise = np.random.default_rng(0).integers(0, 255, (12, 96, 128, 3), np.uint8)

    def write(name: str) -> Path:
        with VideoWriter(tmp_path, name, (96, 128), 25) as video:
            for image in noise:
                video.write(image)
        return video.path

    whole = write('whole')
    assert len(read_back(whole)) == 12
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(part * whole.stat().st_size), limit[1]))
    try:
        with pytest.raises(UserError, match=rf'^cut\{VIDEO}: \d+ of its 12 frames could be written; is the disk full'):
            write('cut')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_videos_are_played_by_browsers(tmp_path: Path) -> None:
    """Whatever the rate: all frames are there, and the rate is the same."""
    for fps in (0.5, 10, 23.976, 29.97, 240, 1000):
        with VideoWriter(tmp_path, f'at_{fps}', (48, 64), fps) as video:
            for grey in range(0, 250, 5):
                video.write(np.full((48, 64, 3), grey, np.uint8))
        reader = cv2.VideoCapture(str(video.path))
        assert reader.get(cv2.CAP_PROP_FRAME_COUNT) == 50
        assert reader.get(cv2.CAP_PROP_FPS) == pytest.approx(fps, rel=0.02)
        frames = read_back(video.path)
        np.testing.assert_allclose([frame.mean() for frame in frames], range(0, 250, 5), atol=4)


def test_the_format_is_chosen_by_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formats that cannot be opened, or in which other frames come back, are passed over."""
    none = VideoFormat('none', 'none', '.mp4')
    coarse = VideoFormat('raw 1 bit', 'MJPG', '.avi')
    good = VideoFormat('VP9', 'VP90', '.webm')
    plain = video_writer._works
    monkeypatch.setattr(video_writer, '_works', lambda kind, path: kind is not coarse and plain(kind, path))
    choose = playable_format.__wrapped__
    monkeypatch.setattr(video_writer, 'FORMATS', (none, coarse, good))
    assert choose() is good
    monkeypatch.setattr(video_writer, 'FORMATS', (none, coarse))
    with pytest.raises(UserError, match=r'none of the videos that browsers play \(none and raw 1 bit\)'):
        choose()


def test_side_by_side(tmp_path: Path) -> None:
    image = np.full((48, 65, 3), 90, np.uint8)
    image[:, :20] = 200
    for frames in overlays(tmp_path, (48, 65), 2, image, side_by_side=True):
        assert frames[0].shape == (48, 130, 3)
        assert np.abs(frames[0][:, :65].astype(int) - frames[0][:, 65:]).mean() < 4


def test_opening_a_video_says_nothing(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    """OpenCV has a line for every .webm."""
    playable_format.__wrapped__()
    overlays(tmp_path, (48, 64), 2, np.zeros((48, 64, 3), np.uint8))
    assert capfd.readouterr().err == ''


@pytest.mark.skipif(bool(browser_missing()), reason=f'{browser_missing()} not installed')
@pytest.mark.parametrize('size', [(48, 64), (121, 161)])
def test_a_browser_plays_the_videos(tmp_path: Path, size: tuple[int, int]) -> None:
    """Chromium shows the written file, knows how long it is, and gets ahead."""
    overlays(tmp_path, size, 50, np.zeros((*size, 3), np.uint8))
    with Browser(tmp_path) as browser:
        browser.open((tmp_path / f'rendered_mesh_param{VIDEO}').as_uri())
        browser.script('window.video = document.querySelector("video"); video.muted = true; video.loop = true')
        browser.wait(lambda: browser.script('return video.readyState') >= 2)
        even = [size[1] + size[1] % 2, size[0] + size[0] % 2]
        assert browser.script('return [video.videoWidth, video.videoHeight]') == even
        assert browser.script('return video.duration') == pytest.approx(2, abs=0.05)
        browser.script('video.play()')
        browser.wait(lambda: browser.script('return video.currentTime') > 0.2)
        assert browser.script('return video.error') is None
        browser.script('video.pause(); video.currentTime = 1.5')
        browser.wait(lambda: not browser.script('return video.seeking'))
        assert browser.script('return video.currentTime') == pytest.approx(1.5, abs=0.05)


class Reader:
    """A video of which some frames can be read; each frame's image is its number."""

    def __init__(self, good, stated, fps=25, times=None):
        self.good, self.count, self.at = set(good), stated, -1
        self.properties = {cv2.CAP_PROP_FRAME_COUNT: stated, cv2.CAP_PROP_FPS: fps}
        self.times = times or [40 * i for i in range(len(good))]

    def read(self):
        self.at += 1
        return self.at in self.good, np.full((4, 4, 3), self.at, np.uint8)

    def get(self, what):
        return self.times[self.at] if what == cv2.CAP_PROP_POS_MSEC else self.properties[what]

    def release(self):
        pass


@pytest.mark.parametrize('good, stated', [([0, 1, 2], 3), ([0, 1, 2], 1), ([0, 3, 4], 5), ([0, 1], 10 ** 9),
                                          ([0, *range(90, 95)], 95)])
def test_broken_frames_are_left_out(monkeypatch, good, stated):
    """The others keep their numbers, which boxes may be given for; the stated length may be wrong either way."""
    times = [40 * i for i in range(max(good) + 1)]
    monkeypatch.setattr(cv2, 'VideoCapture', lambda path: Reader(good, stated, times=times))
    frames = list(Video('x.mp4'))
    assert [number for number, _ in frames] == [image[0, 0, 0] for _, image in frames] == good


@pytest.mark.parametrize('stated, used', [(29.97, 29.97), (90000, 25), (0, 25), (float('nan'), 25), (-5, 25)])
def test_frame_rates_that_are_none(monkeypatch, stated, used):
    monkeypatch.setattr(cv2, 'VideoCapture', lambda path: Reader([0], 1, stated))
    assert Video('x.mp4').fps == used


@pytest.mark.parametrize('times, uneven', [([0, 40, 80, 120], False), ([0, 33, 67, 100], False),
                                           ([0, 40, 80, 500], True), ([0, 0, 0, 0], False)])
def test_uneven_frames_are_noticed(monkeypatch, times, uneven):
    monkeypatch.setattr(cv2, 'VideoCapture', lambda path: Reader(range(4), 4, times=times))
    clip = Video('x.mp4')
    assert len(list(clip)) == 4 and bool(clip.uneven) == uneven
