"""Reading videos with broken frames and odd headers; writing overlay videos of odd sizes and onto full disks."""
import resource

import cv2
import numpy as np
import pytest

from common.demo.inputs.video import Video
from common.demo.outputs.record import JointReader, Record
from common.demo.outputs.video_files import OverlayVideos
from common.demo.people.prediction import Camera
from common.demo.people.predictor import NetworkInfo
from common.errors import UserError


def overlays(folder, size, frames, image):
    """Write overlay videos of an image with nobody on it, and read them: a list of frames each."""
    camera = Camera(np.ones(2), np.zeros(2), 'given')
    info = NetworkInfo('', 'param', 'open_body', 'neutral')
    record = Record('', size, info, JointReader((), np.zeros((0, 3))), np.zeros((0, 3), int), camera)
    with OverlayVideos(folder, record, 25) as videos:
        for _ in range(frames):
            videos.add(image, [], [])
    return [read_back(folder / f'rendered_mesh_{kind}.mp4') for kind in ('lixel', 'param')]


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


def test_full_disk_is_noticed(tmp_path):
    """OpenCV does not say that it could not write."""
    noise = np.random.default_rng(0).integers(0, 255, (96, 128, 3), np.uint8)
    whole = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, whole[1]))
    try:
        with pytest.raises(UserError) as told:
            overlays(tmp_path, (96, 128), 30, noise)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, whole)
    assert str(told.value) == 'rendered_mesh_lixel.mp4: 0 of its 30 frames could be written; is the disk full?'
    assert [len(frames) for frames in overlays(tmp_path, (96, 128), 30, noise)] == [30, 30]


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
