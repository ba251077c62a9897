"""A real client: three.js in a browser without a window shows the files as our own rasteriser draws the body model."""
import base64
import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import numpy as np
import pytest

from common.export.gltf import mesh_glb, person_glb
from common.export.motion import Motion
from common.human_model import get_human_model
from common.human_model.body_model import HumanModel
from common.utils.render import rasterise
from tests.export_tools import FPS, VIEW, truth, wave

pytest.importorskip('pygltflib')
ROOT = Path(__file__).resolve().parents[3]
BROWSER = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
SAME = 0.95  # least intersection over union
SECONDS = 240


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder; what the page sends comes into `answers`."""
    answers: queue.Queue = queue.Queue()

    def do_POST(self) -> None:
        self.answers.put(json.loads(self.rfile.read(int(self.headers['Content-Length']))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).with_name('three_client.html'), tmp_path)
    shutil.copytree(ROOT / 'common' / 'demo' / 'web' / 'static' / 'three', tmp_path / 'three')
    return tmp_path


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(('127.0.0.1', 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f'http://127.0.0.1:{server.server_port}'
    server.shutdown()
    thread.join()
    server.server_close()


def images_of(address: str, profile: Path) -> list[list[np.ndarray]]:
    """What the browser draws: an image (H, W, 4) for every job and time."""
    command = [str(BROWSER), '--headless=new', '--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader',
               f'--user-data-dir={profile}', f'{address}/three_client.html']
    browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        answer = Handler.answers.get(timeout=SECONDS)
    finally:
        browser.terminate()
        browser.wait(30)
    assert 'error' not in answer, answer
    return [[png(url) for url in urls] for urls in answer['images']]


def png(url: str) -> np.ndarray:
    data = np.frombuffer(base64.b64decode(url.split(',')[1]), np.uint8)
    return cv2.imdecode(data, cv2.IMREAD_UNCHANGED)


def silhouette(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(H, W) where our rasteriser draws a mesh in camera space, seen from its front or its back."""
    colors = np.ones((len(vertices), 3), np.float32)
    return rasterise(vertices, faces, colors, VIEW.focal, VIEW.princpt, VIEW.size)[1] > 0.5


def figures() -> dict[str, tuple[HumanModel, Motion]]:
    """The kinds of figures: {name: (body model, motion)}."""
    body = get_human_model('open_body')
    hand = get_human_model('open_hand')
    return {'image': (body, wave(body, [0])), 'other person': (body, wave(body, [0], seed=1)),
            'video': (body, wave(body, [*range(20), *range(25, 60)])),
            'hand': (hand, wave(hand, range(10))), 'left hand': (hand, wave(hand, range(10), True))}


@pytest.mark.skipif(BROWSER is None, reason='needs Chromium (apt-get install chromium)')
def test_three_shows_what_we_draw(folder: Path, address: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    jobs = []
    expected = []
    for name, (human_model, motion) in figures().items():
        rows = sorted({0, len(motion.frames) // 3, len(motion.frames) - 1})
        (folder / f'{name}.glb').write_bytes(person_glb(human_model, motion).content)
        moving = len(motion.frames) > 1
        times = [float(motion.times[row]) if moving else None for row in rows]
        vertices, _ = truth(human_model, motion)
        shapes = [vertices[row] for row in rows]
        if motion.gaps:
            times.append((motion.gaps[0][0] + 1) / FPS)
            shapes.append(vertices[list(motion.frames).index(motion.gaps[0][0] - 1)])
        jobs.append({'file': f'{name}.glb', 'times': times})
        expected.append([silhouette(shape, human_model.face) for shape in shapes])
    human_model, motion = figures()['image']
    mesh = truth(human_model, motion)[0][0]
    (folder / 'lixel.glb').write_bytes(mesh_glb(mesh, human_model.face, VIEW).content)
    jobs.append({'file': 'lixel.glb', 'times': [None]})
    expected.append([silhouette(mesh, human_model.face)])
    (folder / 'jobs.json').write_text(json.dumps(jobs))
    seen = images_of(address, tmp_path_factory.mktemp('profile'))
    for job, images, masks in zip(jobs, seen, expected, strict=True):
        for time, image, mask in zip(job['times'], images, masks, strict=True):
            drawn = image[..., 3] > 127
            assert mask.sum() > 1000, job
            score = (drawn & mask).sum() / (drawn | mask).sum()
            print(f'{job["file"]} at {time}: IoU {score:.4f}')
            assert score >= SAME, (job, time, score)
            assert image[..., :3][drawn].mean() > 60  # lit: its front looks at the camera
