"""The demo's web page: the server's answers and refusals, and the page itself in a headless Chromium."""
import concurrent.futures
import http.client
import json
import signal
import subprocess
import sys
import threading
import urllib.request
from urllib.parse import urlencode

import cv2
import numpy as np
import pytest

from common.demo.people.placer import Placer
from common.demo.pipeline import Pipeline
from common.demo.web import results
from common.demo.web import server as web
from common.demo.web.results import RESULTS_KEPT, Results
from main.config import ROOT, cfg
from main.predictor import joint_reader, load_predictor
from tests.demo_tools import blobs, write_image, write_snapshot
from tests.web_driver import Browser, browser_missing


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp('web')
    cfg.load('nano')
    predictor = load_predictor(cfg, write_snapshot(folder / 'tiny.pth.tar'))
    joints = joint_reader(predictor.human_model, 'all', cfg.data_dir)
    with web.make_server(Results(Pipeline(predictor, Placer(cfg.bbox_3d_size), joints)), 0) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def ask(server):
    """Sends one request; returns (status, body, headers)."""
    def send(method, path, body=None, headers=None, **query):
        connection = http.client.HTTPConnection('127.0.0.1', server.server_port, timeout=300)
        connection.request(method, path + ('?' + urlencode(query) if query else ''), body, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content, answer.headers

    return send


def jpeg(height=120, width=90):
    return cv2.imencode('.jpg', blobs(height, width)[..., ::-1])[1].tobytes()


def test_image_to_files(ask):
    status, content, _ = ask('POST', '/predict', jpeg(), name='a/b\\photo.jpg', boxes='10,10,40,90;30,5,50,100',
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


@pytest.mark.parametrize('path', ['/', '/app.js', '/boxes.js', '/viewer.js', '/style.css', '/three/three.module.min.js',
                                  '/three/OrbitControls.js'])
def test_page_needs_nothing_from_elsewhere(ask, path):
    status, content, headers = ask('GET', path)
    assert status == 200 and len(content) > 300
    assert "default-src 'self'" in headers['Content-Security-Policy']
    if not path.startswith('/three/'):
        assert b'http:' not in content and b'https:' not in content


@pytest.mark.parametrize('path', [
    '/../server.py', '/%2e%2e/server.py', '//etc/passwd', '/three/', '/three/LICENSE', '/index.html',
    '/results/x/y.json', '/results/../../etc/passwd', '/app.js/', '/predict'])
def test_nothing_else_is_served(ask, path):
    assert ask('GET', path)[0] == 404


@pytest.mark.parametrize('headers', [{'Host': 'evil.example'}, {'Origin': 'https://evil.example'}, {'Origin': 'null'}])
@pytest.mark.parametrize('method, path', [('GET', '/'), ('POST', '/predict')])
def test_other_sites_are_refused(ask, headers, method, path):
    assert ask(method, path, b'x' if method == 'POST' else None, headers)[0] == 403


@pytest.mark.parametrize('port, host, status', [
    (80, 'localhost', 200), (80, '127.0.0.1', 200), (80, '127.0.0.1:80', 200), (80, '127.0.0.1:8765', 403),
    (8765, 'localhost', 403), (8765, 'localhost:8765', 200)])
def test_hosts_as_browsers_write_them(ask, server, monkeypatch, port, host, status):
    """They leave out port 80, HTTP's own."""
    monkeypatch.setattr(server, 'hosts', web.own_hosts(port))
    assert ask('GET', '/', None, {'Host': host, 'Origin': f'http://{host}'})[0] == status


@pytest.mark.parametrize('body, query, told', [
    (b'just text', {'boxes': '1,1,40,40'}, 'not an image'), (jpeg(), {}, 'draw a box'),
    (jpeg()[:300], {'boxes': '1,1,40,40'}, 'cut off'), (jpeg(), {'boxes': '1,1,0,40'}, 'no area'),
    (jpeg(), {'boxes': '1,1,40'}, 'four numbers'), (jpeg(), {'boxes': '500,1,40,40'}, 'outside'),
    (jpeg(), {'boxes': ';'.join(['1,1,40,40'] * 21)}, '20 boxes'),
    (jpeg(), {'boxes': '1,1,40,40', 'focal': 'x'}, 'not a number'),
    (jpeg(), {'boxes': '1,1,40,40', 'focal': '-3'}, 'positive')])
def test_mistakes_are_told(ask, body, query, told):
    status, content, _ = ask('POST', '/predict', body, **query)
    assert status == 400
    assert told in json.loads(content)['error']


def test_limits(ask, monkeypatch):
    monkeypatch.setattr(results, 'MAX_PIXELS', 10_000)
    status, content, _ = ask('POST', '/predict', jpeg(), boxes='1,1,40,40')
    assert status == 400 and '90 x 120 pixels are too many' in json.loads(content)['error']
    assert ask('POST', '/predict', None, {'Content-Length': '26000000'}, boxes='1,1,40,40')[0] == 413
    assert ask('POST', '/predict', None, {'Content-Length': '-1'})[0] == 411
    assert ask('POST', '/elsewhere', b'x')[0] == 404


def test_refused_uploads_hear_why(ask, server, monkeypatch):
    """Also when the body does not fit into the buffers of the connection."""
    body = bytes(20_000_000)
    monkeypatch.setattr(server, 'waiting', threading.BoundedSemaphore(1))
    with server.waiting:
        status, content, _ = ask('POST', '/predict', body, boxes='1,1,40,40')
    assert status == 503 and 'too many requests' in json.loads(content)['error']
    monkeypatch.setattr(web, 'MAX_BYTES', 1_000_000)
    status, content, _ = ask('POST', '/predict', body, boxes='1,1,40,40')
    assert status == 413 and '1 MB at most' in json.loads(content)['error']


def test_requests_at_once_and_in_a_row(ask, server):
    """Each gets its own answer; old results make room for new ones."""
    def one(i):
        status, content, _ = ask('POST', '/predict', jpeg(), name=f'{i}.jpg', boxes=f'{i},1,40,80')
        answer = json.loads(content)
        assert status == 200 and answer['record']['people'][0]['bbox'][0] == i
        return answer['folder']

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        folders = list(pool.map(one, range(RESULTS_KEPT + 2)))
    assert len(set(folders)) == RESULTS_KEPT + 2
    found = [ask('GET', folder + 'result.json')[0] for folder in folders]
    assert found.count(200) == RESULTS_KEPT and found.count(404) == 2


def test_too_many_waiting(ask, server):
    taken = [server.waiting.acquire(blocking=False) for _ in range(web.MAX_WAITING)]
    try:
        assert all(taken)
        assert ask('POST', '/predict', jpeg(), boxes='1,1,40,80')[0] == 503
    finally:
        for _ in taken:
            server.waiting.release()
    assert ask('POST', '/predict', jpeg(), boxes='1,1,40,80')[0] == 200


def test_listens_on_this_machine_only(server):
    assert server.server_address[0] == '127.0.0.1'


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


def place_of(browser, element):
    return browser.script(f'const r = document.getElementById("{element}").getBoundingClientRect();'
                          'return [r.left, r.top, r.width, r.height]')


def text_of(browser, element):
    return browser.script(f'return document.getElementById("{element}").textContent')


@pytest.mark.skipif(bool(browser_missing()), reason=f'no browser for the page: {browser_missing()} not installed')
def test_page_in_a_browser(server, tmp_path):
    """Draw a box with the mouse, compute, see the mesh in 3-D, turn it, download files, choose the other mesh."""
    image = write_image(tmp_path / 'my photo.jpg', 360, 480)
    with Browser(tmp_path) as browser:
        browser.open(f'http://127.0.0.1:{server.server_port}/')
        browser.wait(lambda: browser.script('return document.body.dataset.state') == 'idle')
        browser.type('#file', str(image))
        browser.wait(lambda: text_of(browser, 'status').startswith('my photo'))
        assert browser.script('return document.getElementById("run").disabled') is True

        left, top, width, _ = place_of(browser, 'photo')
        unit = width / 480  # pixels of the window per pixel of the image
        browser.drag([left + 100 * unit, top + 50 * unit], [left + 220 * unit, top + 320 * unit])
        assert 'person 0' in text_of(browser, 'boxes')
        browser.click('#run')
        browser.wait(lambda: browser.script('return document.body.dataset.state') in ('done', 'error'))
        assert text_of(browser, 'status').startswith('1 people')
        assert browser.script('const i = document.getElementById("overlay"); return [i.naturalWidth, i.naturalHeight]'
                              ) == [480, 360]

        def view():
            png = np.frombuffer(browser.screenshot('#view'), np.uint8)
            return cv2.imdecode(png, cv2.IMREAD_COLOR).astype(int)

        front = view()
        assert (front[5:-5, 5:-5].min(-1) < 235).mean() > 0.002  # something is drawn on the white ground
        left, top, width, height = place_of(browser, 'view')
        middle = [left + width / 2, top + height / 2]
        browser.drag(middle, [middle[0] + 120, middle[1] + 40])
        assert np.abs(view() - front).max() > 60  # turned

        for name in ('mesh_param_0.obj', 'result.json'):
            browser.click(f'#downloads a[href$="{name}"]')
            saved = tmp_path / f'my photo_{name}'
            browser.wait(lambda saved=saved: saved.exists() and saved.stat().st_size)
        record = json.loads((tmp_path / 'my photo_result.json').read_text())
        assert record['source'] == 'my photo.jpg'
        np.testing.assert_allclose(record['people'][0]['bbox'], [100, 50, 120, 270], atol=2)
        assert (tmp_path / 'my photo_mesh_param_0.obj').read_text().count('\nv ') == 6890

        browser.click('#kinds input[value=lixel]')
        browser.wait(lambda: browser.script('return document.getElementById("overlay").src').endswith('lixel.jpg'))
        assert not browser.complaints()
