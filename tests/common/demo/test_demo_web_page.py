"""The demo's web page in a headless Chromium, with the mouse, with the keyboard alone, and on a phone."""
import io
import json
import sys
import threading
import zipfile

import cv2
import numpy as np
import pytest

from common.demo.web.finder import Finder
from common.errors import UserError
from tests.demo_tools import write_image, write_video
from tests.gltf_reader import Gltf
from tests.page_server import page_server
from tests.web_driver import Browser, browser_missing

pytestmark = pytest.mark.skipif(bool(browser_missing()), reason=f'no browser: {browser_missing()} not installed')


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    with page_server(tmp_path_factory.mktemp('web')) as running:
        yield running


@pytest.fixture(scope='module')
def one_browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp('downloads')) as running:
        yield running


@pytest.fixture
def browser(one_browser, server):
    """The page, just opened."""
    one_browser.resize(1280, 900)
    one_browser.open(f'http://127.0.0.1:{server.server_port}/')
    state(one_browser, 'idle')
    one_browser.complaints()
    return one_browser


@pytest.fixture(scope='module')
def photo(tmp_path_factory):
    return write_image(tmp_path_factory.mktemp('in') / 'my photo.jpg', 360, 480)


def state(browser, *wanted):
    browser.wait(lambda: browser.script('return document.body.dataset.state') in wanted)


def choose(browser, path):
    browser.type('#file', str(path))
    browser.wait(lambda: browser.text('status').startswith(f'{path.name}: '))


def compute(browser):
    browser.click('#run')
    state(browser, 'done')


def download(browser, name):
    """Click on a link, and wait for the file."""
    path = browser.downloads / (f'my photo_{name}' if name != 'all.zip' else 'my photo.zip')
    path.unlink(missing_ok=True)
    browser.click(f'#downloads a[href$="{name}"]')
    browser.wait(lambda: path.exists() and path.stat().st_size)
    return path.read_bytes()


def boxes(browser):
    """The numbers of all boxes."""
    values = browser.script('return [...document.querySelectorAll("#boxes input")].map((field) => field.valueAsNumber)')
    return np.array(values).reshape(-1, 4)


def middle(browser, selector):
    left, top, width, height = browser.place(selector)
    return [left + width / 2, top + height / 2]


def drawn(browser):
    """The 3-D view as colours (H, W, 3), and where something is drawn on its white ground."""
    png = np.frombuffer(browser.screenshot('#view'), np.uint8)
    image = cv2.imdecode(png, cv2.IMREAD_COLOR).astype(int)[5:-5, 5:-5]
    return image, image.min(-1) < 235


def test_with_the_mouse(browser, photo):
    """Boxes are drawn, moved and resized; the mesh is lit from wherever it is seen; files are downloaded."""
    choose(browser, photo)
    assert browser.script('return document.getElementById("run").disabled') is True
    left, top, width, _ = browser.place('#photo')
    unit = width / 480  # pixels of the window per pixel of the image

    def at(x, y):
        return [left + x * unit, top + y * unit]

    browser.drag(at(100, 50), at(220, 320))
    np.testing.assert_allclose(boxes(browser), [[100, 50, 120, 270]], atol=2)
    start = middle(browser, '.grip')
    browser.drag(start, [start[0] + 30 * unit, start[1] + 10 * unit])
    np.testing.assert_allclose(boxes(browser), [[130, 60, 120, 270]], atol=4)
    browser.drag(at(130, 60), at(110, 40))
    np.testing.assert_allclose(boxes(browser), [[110, 40, 140, 290]], atol=6)
    browser.drag(at(300, 50), at(302, 52))  # a click is no box
    box = boxes(browser)
    assert box.shape == (1, 4)

    compute(browser)
    assert browser.text('status').startswith('1 person, focal length')
    assert browser.script('const i = document.getElementById("overlay"); return [i.naturalWidth, i.naturalHeight]'
                          ) == [480, 360]
    front, there = drawn(browser)
    assert there.mean() > 0.002 and front[there].mean() > 100
    place = middle(browser, '#view')
    for _ in range(2):  # from its side, and from behind
        browser.drag(place, [place[0] + 105, place[1] + 20])
        view, there = drawn(browser)
        assert np.abs(view - front).max() > 60 and view[there].mean() > 100

    record = json.loads(download(browser, 'result.json'))
    assert record['source'] == 'my photo.jpg'
    np.testing.assert_allclose([record['people'][0]['bbox']], box, atol=0.1)
    assert download(browser, 'mesh_param_0.obj').decode().count('\nv ') == 6890
    with zipfile.ZipFile(io.BytesIO(download(browser, 'all.zip'))) as archive:
        assert 'my photo/result.json' in archive.namelist()
    browser.click('#kinds input[value=lixel]')
    browser.wait(lambda: browser.script('return document.getElementById("overlay").src').endswith('lixel.jpg'))
    assert not browser.complaints()


def test_with_the_keyboard_alone(browser, photo):
    """From the image to the download; no control is out of reach."""
    def tab_to(selector, most=40):
        for _ in range(most):
            if browser.script('return document.activeElement.matches(arguments[0])', selector):
                return
            browser.press('Tab')
        raise AssertionError(f'{selector} cannot be reached')

    tab_to('#file')
    choose(browser, photo)  # the dialog of the system is no part of the page
    tab_to('#add')
    browser.press('Enter')
    before = boxes(browser)[0]
    assert browser.script('return document.activeElement.className') == 'grip'
    browser.press('Right', 'Right', 'Down', 'Shift Left')
    np.testing.assert_allclose(boxes(browser)[0] - before, [9.6, 4.8, -4.8, 0], atol=0.2)
    tab_to('#boxes input[aria-label="person 0: x in pixels"]')
    browser.press('Control a', 'Delete', 'Tab')  # no number: the old one comes back
    tab_to('#boxes input[aria-label="person 0: x in pixels"]')
    np.testing.assert_allclose(boxes(browser)[0] - before, [9.6, 4.8, -4.8, 0], atol=0.2)
    browser.press('Control a', *'100')
    assert boxes(browser)[0][0] == 100
    tab_to('#boxes li button')
    browser.press('Space')
    assert not len(boxes(browser))
    tab_to('#whole')
    browser.press('Enter')
    assert boxes(browser).tolist() == [[0, 0, 480, 360]]
    for field, text in enumerate(['100', '50', '120', '270']):
        tab_to(f'#boxes label:nth-of-type({field + 1}) input')
        browser.press('Control a', *text)
    tab_to('#focal')
    browser.press(*'800')
    tab_to('#run')
    browser.press('Enter')
    state(browser, 'done')
    assert browser.text('status').startswith('1 person, focal length 800')
    tab_to('#kinds input')
    tab_to('#view canvas')
    front, _ = drawn(browser)
    browser.press('Right', 'Right')
    assert np.abs(drawn(browser)[0] - front).max() > 60
    tab_to('#downloads a[href$="person_0.glb"]')
    path = browser.downloads / 'my photo_person_0.glb'
    path.unlink(missing_ok=True)
    browser.press('Enter')
    browser.wait(lambda: path.exists() and path.stat().st_size)
    assert Gltf(path.read_bytes()).extras['body_model'] == 'open_body'


def test_nothing_stale_is_shown(browser, photo, server, monkeypatch):
    """After a new box, an error and another image."""
    def results():
        return browser.script('const r = document.getElementById("results"); return [r.hidden, r.inert]')

    choose(browser, photo)
    browser.click('#whole')
    compute(browser)
    assert results() == [False, False]
    browser.click('#add')
    assert results() == [False, True] and browser.text('status').startswith('Changed')
    compute(browser)
    assert results() == [False, False] and browser.text('status').startswith('2 people')

    def broken(*_):
        raise UserError('box 1: too odd')

    monkeypatch.setattr(server.work, 'image', broken)
    browser.click('#run')
    state(browser, 'error')
    assert browser.text('status') == 'box 1: too odd' and results() == [False, True]
    browser.click('#add')
    state(browser, 'idle')
    choose(browser, photo)
    assert results()[0] is True and not len(boxes(browser))
    browser.type('#file', __file__)
    state(browser, 'error')
    assert 'not an image' in browser.text('status')
    assert browser.script('return document.getElementById("run").disabled') is True
    assert browser.script('return document.getElementById("tools").inert') is True


def test_results_that_are_gone_are_computed_again(browser, photo, server):
    choose(browser, photo)
    browser.click('#whole')
    compute(browser)
    server.work.results.clear()
    asked = []
    work = server.work.image
    try:
        server.work.image = lambda *given: asked.append(browser.text('status')) or work(*given)
        assert download(browser, 'result.json').startswith(b'{')
    finally:
        server.work.image = work
    assert asked == ['The server no longer has these results: computing them again ...']
    state(browser, 'done')


def test_without_pygltflib(browser, photo, monkeypatch):
    """The page shows the bare meshes, and says what is missing."""
    monkeypatch.setitem(sys.modules, 'pygltflib', None)
    choose(browser, photo)
    browser.click('#whole')
    compute(browser)
    assert 'pip install pygltflib' in browser.text('warnings') and '.glb' not in browser.text('downloads')
    view, there = drawn(browser)
    assert there.mean() > 0.002 and view[there].mean() > 100


def test_a_computation_that_is_stopped(browser, photo, server, monkeypatch):
    wait = threading.Event()
    work = server.work.image
    monkeypatch.setattr(server.work, 'image', lambda *given: wait.wait(60) and work(*given))
    choose(browser, photo)
    browser.click('#whole')
    browser.click('#run')
    state(browser, 'working')
    browser.click('#stop')
    state(browser, 'idle')
    wait.set()
    assert browser.text('status') == 'Stopped.'
    compute(browser)


def test_a_short_video(browser, tmp_path):
    """Its motion is played and can be looked at at any time."""
    pytest.importorskip('pygltflib')
    choose(browser, write_video(tmp_path / 'clip.avi', 12))
    assert browser.text('status').startswith('clip.avi: 64 x 48 pixels, first frame.')
    browser.click('#whole')
    browser.click('#every')
    compute(browser)
    assert browser.script('return document.getElementById("timeline").hidden') is False
    assert browser.script('return Number(document.getElementById("time").max)') == pytest.approx(11 / 25, abs=1e-3)

    def seconds():
        return browser.script('return document.getElementById("time").valueAsNumber')

    browser.script('const time = document.getElementById("time"); time.value = 0.2;'
                   'time.dispatchEvent(new Event("input"))')
    assert browser.text('clock') == '0.20 s' and drawn(browser)[1].mean() > 0.002
    browser.click('#play')
    browser.wait(lambda: seconds() not in (0, 0.2))
    browser.click('#play')
    assert browser.text('play') == 'play'
    path = browser.downloads / 'clip_person_0.glb'
    browser.click('#downloads a[href$="person_0.glb"]')
    browser.wait(lambda: path.exists() and path.stat().st_size)
    assert len(Gltf(path.read_bytes()).key_times()) == 12


def test_people_are_found(browser, photo, server, monkeypatch):
    def make():
        return lambda image: [np.float32([100, 50, 120, 270]), np.float32([10, 20, 50, 60])]

    monkeypatch.setattr(server.work, 'finder', Finder(make, 'some_detector', 74))
    browser.open(f'http://127.0.0.1:{server.server_port}/')
    browser.wait(lambda: '74 MB' in browser.text('finder'))
    choose(browser, photo)
    browser.click('#find')
    browser.wait(lambda: len(boxes(browser)) == 2)
    assert boxes(browser).tolist() == [[100, 50, 120, 270], [10, 20, 50, 60]]
    browser.wait(lambda: not browser.text('finder'))

    def broken():
        raise UserError('no') from OSError('no network')

    monkeypatch.setattr(server.work, 'finder', Finder(broken, 'some_detector', 74))
    browser.click('#find')
    state(browser, 'error')
    assert 'cannot be downloaded' in browser.text('status') and len(boxes(browser)) == 2


def test_what_the_network_is_for_is_said(browser, server, monkeypatch):
    monkeypatch.setattr(server.work, 'about', lambda: {'hands': True, 'finder': None, 'warnings': ['drawn hands only']})
    browser.open(f'http://127.0.0.1:{server.server_port}/')
    browser.wait(lambda: browser.text('warnings') == 'drawn hands only')
    assert browser.text('whom') == 'hands'
    assert browser.script('return document.getElementById("find").hidden') is True


@pytest.mark.parametrize('width, height', [(1280, 800), (390, 844)])
def test_on_a_desk_and_on_a_phone(browser, photo, width, height):
    """The results are seen without scrolling, the overlay as wide as its column; swipes over the image scroll."""
    browser.resize(width, height)
    choose(browser, photo)
    browser.click('#whole')
    if width < 600:
        browser.resize(width, 500)
        left, top, wide, high = browser.place('#photo')
        unit = 480 / wide
        corner = [left + wide / 4, top + high / 4]
        browser.drag(corner, [corner[0], corner[1] - 200], 'touch')
        browser.wait(lambda: browser.script('return scrollY') > 50)
        assert boxes(browser).tolist() == [[0, 0, 480, 360]]
        browser.resize(width, height)
        browser.script('scrollTo(0, 0)')
        corner = middle(browser, '.corner')
        browser.drag(corner, [corner[0] + 30, corner[1] + 40], 'touch')
        assert browser.script('return scrollY') == 0
        np.testing.assert_allclose(boxes(browser), [[30 * unit, 40 * unit, 480 - 30 * unit, 360 - 40 * unit]], atol=4)
    compute(browser)
    browser.wait(lambda: browser.script('return document.getElementById("overlay").complete'))
    assert browser.script('return document.documentElement.scrollWidth <= innerWidth')
    _, top, wide, high = browser.place('#overlay')
    assert -1 <= top and top + high <= height
    assert wide == pytest.approx(browser.place('figure')[2], abs=1)
    _, top, wide, high = browser.place('#view')
    assert top < height - 100 and wide > 300
    if width < 600:
        browser.script('document.getElementById("view").scrollIntoView()')
        before = browser.script('return scrollY')
        place = middle(browser, '#view')
        browser.drag(place, [place[0], place[1] + 150], 'touch')
        browser.wait(lambda: browser.script('return scrollY') < before - 50)
