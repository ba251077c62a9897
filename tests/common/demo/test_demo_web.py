"""The server of the demo's web page: its answers and refusals."""
import json
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

import cv2
import numpy as np
import pytest

from common.demo.web import server as web
from common.demo.web import work
from common.demo.web.guard import Guard
from common.demo.web.serve import greeting
from main.config import ROOT
from tests.demo_tools import write_snapshot
from tests.page_server import jpeg


def test_image_to_files(ask):
    status, content, _ = ask('POST', '/image', jpeg(), name='a/b\\photo.jpg', boxes='10,10,40,90;30,5,50,100',
                             focal='800')
    assert status == 200
    answer = json.loads(content)
    assert answer['record']['source'] == 'photo.jpg' and answer['record']['camera']['focal'] == [800, 800]
    assert [p['bbox'] for p in answer['record']['people']] == [[10, 10, 40, 90], [30, 5, 50, 100]]
    files = {name: ask('GET', answer['folder'] + name)[1] for name in answer['files']}
    assert {'rendered_mesh_lixel.jpg', 'rendered_mesh_param.jpg', 'result.json', 'mesh_param_1.obj'} < set(files)
    assert cv2.imdecode(np.frombuffer(files['rendered_mesh_lixel.jpg'], np.uint8), 1).shape == (120, 90, 3)
    vertices = np.frombuffer(files['mesh_lixel_1.bin'], '<f4').reshape(-1, 3)
    obj = [line.split()[1:] for line in files['mesh_lixel_1.obj'].decode().splitlines() if line.startswith('v ')]
    np.testing.assert_allclose(np.array(obj, float) * [1, -1, -1], vertices, atol=1e-6)
    assert np.frombuffer(files['faces.bin'], '<u4').max() == len(vertices) - 1
    assert json.loads(files['result.json']) == answer['record']


@pytest.mark.parametrize('path', ['/', '/app.js', '/boxes.js', '/results.js', '/server.js',
                                  '/viewer.js', '/style.css', '/three/three.module.min.js',
                                  '/three/OrbitControls.js', '/three/loaders/GLTFLoader.js',
                                  '/three/utils/BufferGeometryUtils.js'])
def test_page_needs_nothing_from_elsewhere(ask, path):
    status, content, headers = ask('GET', path)
    assert status == 200 and len(content) > 300
    assert "default-src 'self'" in headers['Content-Security-Policy']
    if not path.startswith('/three/'):
        assert b'http:' not in content and b'https:' not in content


@pytest.mark.parametrize('path', [
    '/../server.py', '/%2e%2e/server.py', '//etc/passwd', '/three/', '/three/LICENSE', '/index.html',
    '/results/x/y.json', '/results/../../etc/passwd', '/app.js/', '/image'])
def test_nothing_else_is_served(ask, path):
    assert ask('GET', path)[0] == 404


@pytest.mark.parametrize('headers', [{'Host': 'evil.example'}, {'Origin': 'https://evil.example'}, {'Origin': 'null'}])
@pytest.mark.parametrize('method, path', [('GET', '/'), ('POST', '/image')])
def test_other_sites_are_refused(ask, headers, method, path):
    assert ask(method, path, b'x' if method == 'POST' else None, headers)[0] == 403


@pytest.mark.parametrize('port, host, status', [
    (80, 'localhost', 200), (80, '127.0.0.1', 200), (80, '127.0.0.1:80', 200), (80, '127.0.0.1:8765', 403),
    (8765, 'localhost', 403), (8765, 'localhost:8765', 200)])
def test_hosts_as_browsers_write_them(ask, server, monkeypatch, port, host, status):
    """They leave out port 80, HTTP's own."""
    monkeypatch.setattr(server, 'guard', Guard('127.0.0.1', port))
    assert ask('GET', '/', None, {'Host': host, 'Origin': f'http://{host}'})[0] == status


@pytest.mark.parametrize('body, query, told', [
    (b'just text', {'boxes': '1,1,40,40'}, 'not an image'), (jpeg(), {}, 'draw a box'),
    (jpeg()[:300], {'boxes': '1,1,40,40'}, 'cut off'), (jpeg(), {'boxes': '1,1,0,40'}, 'no area'),
    (jpeg(), {'boxes': '1,1,40'}, 'four numbers'), (jpeg(), {'boxes': '500,1,40,40'}, 'outside'),
    (jpeg(), {'boxes': ';'.join(['1,1,40,40'] * 21)}, '20 boxes'),
    (jpeg(), {'boxes': '1,1,40,40', 'focal': 'x'}, 'not a number'),
    (jpeg(), {'boxes': '1,1,40,40', 'focal': '-3'}, 'positive')])
def test_mistakes_are_told(ask, body, query, told):
    status, content, _ = ask('POST', '/image', body, **query)
    assert status == 400
    assert told in json.loads(content)['error']


def test_limits(ask, monkeypatch):
    monkeypatch.setattr(work, 'MAX_PIXELS', 10_000)
    status, content, _ = ask('POST', '/image', jpeg(), boxes='1,1,40,40')
    assert status == 400 and '90 x 120 pixels are too many' in json.loads(content)['error']
    for path, size, told in (('/image', 26_000_000, 'an image may have 25 MB'),
                             ('/video', 101_000_000, 'a video may have 100 MB')):
        status, content, _ = ask('POST', path, None, {'Content-Length': str(size)}, boxes='1,1,40,40')
        assert status == 413 and told in json.loads(content)['error']
    assert ask('POST', '/image', None, {'Content-Length': '-1'})[0] == 411
    assert ask('POST', '/elsewhere', b'x')[0] == 404


def test_refused_uploads_hear_why(ask, server, monkeypatch):
    """Also when the body does not fit into the buffers of the connection."""
    body = bytes(20_000_000)
    monkeypatch.setattr(server, 'waiting', threading.BoundedSemaphore(1))
    with server.waiting:
        status, content, _ = ask('POST', '/image', body, boxes='1,1,40,40')
    assert status == 503 and 'too many requests' in json.loads(content)['error']
    monkeypatch.setitem(web.MAX_BYTES, '/image', 1_000_000)
    status, content, _ = ask('POST', '/image', body, boxes='1,1,40,40')
    assert status == 413 and '1 MB at most' in json.loads(content)['error']


def test_too_many_waiting(ask, server):
    taken = [server.waiting.acquire(blocking=False) for _ in range(web.MAX_WAITING)]
    try:
        assert all(taken)
        assert ask('POST', '/image', jpeg(), boxes='1,1,40,80')[0] == 503
    finally:
        for _ in taken:
            server.waiting.release()
    assert ask('POST', '/image', jpeg(), boxes='1,1,40,80')[0] == 200


def test_listens_on_this_machine_only(server):
    assert server.server_address[0] == '127.0.0.1'


@pytest.mark.parametrize('host, origin, admitted', [
    ('192.168.1.10:8765', 'http://192.168.1.10:8765', True), ('localhost:8765', None, True),
    (f'{socket.gethostname()}:8765', f'http://{socket.gethostname()}:8765', True),
    ('evil.example:8765', 'http://evil.example:8765', False), ('192.168.1.10', None, False),
    ('192.168.1.10:8765', 'http://evil.example', False), (None, None, False)])
def test_who_may_ask_a_server_for_other_computers(host, origin, admitted):
    """With --host: addresses in numbers and the computer's own name, which no other site can take."""
    assert Guard('0.0.0.0', 8765).admits(host, origin) == admitted
    assert not Guard('127.0.0.1', 8765).admits('192.168.1.10:8765', None)


def test_how_to_reach_the_page_is_said(monkeypatch):
    monkeypatch.delenv('SSH_CONNECTION', raising=False)
    tunnel = f'ssh -L 8765:127.0.0.1:8765 user@{socket.gethostname()}'
    assert greeting(8765, None, False) == ['open http://127.0.0.1:8765 in a browser; Ctrl-C ends']
    address, warning, safer = greeting(8765, '0.0.0.0', True)
    assert address.startswith(f'open http://{socket.gethostname()}:8765 ')
    assert warning.startswith('warning: everybody') and 'no password' in warning and tunnel in safer
    monkeypatch.setenv('SSH_CONNECTION', '1')
    assert tunnel in greeting(8765, None, False)[1]


@pytest.mark.timeout(180)
def test_command_serves_until_it_is_told_to_end(tmp_path):
    write_snapshot(tmp_path / 'tiny.pth.tar')
    command = [sys.executable, str(ROOT / 'main' / 'demo.py'), '--serve', '--port', '0', '--gpu', 'cpu', '--snapshot',
               str(tmp_path / 'tiny.pth.tar')]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().split()[1]
            with urllib.request.urlopen(address, timeout=60) as page:
                assert b'<canvas' in page.read()
            process.send_signal(signal.SIGTERM)  # SIGINT may be ignored in a test run started in the background
            assert process.wait(60) == 0
        finally:
            process.kill()
