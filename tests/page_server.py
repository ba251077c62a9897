"""The demo's web page with a very small random network, for tests."""
import contextlib
import http.client
import threading
from collections.abc import Iterator
from http.client import HTTPMessage
from pathlib import Path
from urllib.parse import urlencode

import cv2

from common.demo.people.placer import Placer
from common.demo.pipeline import Pipeline
from common.demo.web.server import Server, make_server
from common.demo.web.work import Work
from main.config import cfg
from main.predictor import joint_reader, load_predictor
from tests.demo_tools import blobs, write_snapshot


@contextlib.contextmanager
def page_server(folder: Path) -> Iterator[Server]:
    """A running server; folder: for the snapshot."""
    cfg.load('nano')
    predictor = load_predictor(cfg, write_snapshot(folder / 'tiny.pth.tar'))
    joints = joint_reader(predictor.human_model, 'all', cfg.data_dir)
    with make_server(Work(Pipeline(predictor, Placer(cfg.bbox_3d_size), joints)), 0) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def send(server: Server, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None,
         **query: str) -> tuple[int, bytes, HTTPMessage]:
    """Send one request to a server; returns status, body and headers of the answer."""
    connection = http.client.HTTPConnection('127.0.0.1', server.server_port, timeout=300)
    if query:
        path = f'{path}?{urlencode(query)}'
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content, answer.headers


def jpeg(height: int = 120, width: int = 90) -> bytes:
    """The content of an image file."""
    return cv2.imencode('.jpg', blobs(height, width)[..., ::-1])[1].tobytes()
