"""What the server of the web page makes and keeps: results of images and videos, and the boxes of people found."""
import concurrent.futures
import io
import json
import socket
import zipfile
from urllib.error import URLError

import cv2
import numpy as np
import pytest

from common.demo.web import clips
from common.demo.web.finder import Finder
from common.demo.web.results import TABS_KEPT
from common.errors import UserError
from tests.demo_tools import write_video
from tests.gltf_reader import Gltf
from tests.page_server import jpeg, page_server

BOX = '1,1,40,80'


@pytest.fixture(scope='module')
def clip(tmp_path_factory):
    return write_video(tmp_path_factory.mktemp('clip') / 'clip.avi', 6).read_bytes()


def test_figures_of_an_image(ask):
    """The vertices of the page's figures are those of its meshes."""
    pytest.importorskip('pygltflib')
    answer = json.loads(ask('POST', '/image', jpeg(), name='photo.jpg', boxes='10,10,40,90;30,5,50,100')[1])
    for number in (0, 1):
        for figure, kind in (('person', 'param'), ('lixel', 'lixel')):
            glb = Gltf(ask('GET', f'{answer["folder"]}{figure}_{number}.glb')[1])
            mesh = np.frombuffer(ask('GET', f'{answer["folder"]}mesh_{kind}_{number}.bin')[1], '<f4').reshape(-1, 3)
            np.testing.assert_allclose(glb.vertices_at(None) * [1, -1, -1], mesh, atol=1e-4)


def test_all_files_in_one(ask):
    answer = json.loads(ask('POST', '/image', jpeg(), name='../my photo.jpg', boxes=BOX)[1])
    status, content, _ = ask('GET', answer['folder'] + 'all.zip')
    assert status == 200
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        expected = {f'my photo/{name}' for name in answer['files'] if not name.endswith('.bin')}
        assert set(archive.namelist()) == expected and len(expected) > 5
        assert archive.read('my photo/result.json') == ask('GET', answer['folder'] + 'result.json')[1]
    for name in ('..jpg', '...'):
        answer = json.loads(ask('POST', '/image', jpeg(), name=name, boxes=BOX)[1])
        with zipfile.ZipFile(io.BytesIO(ask('GET', answer['folder'] + 'all.zip')[1])) as archive:
            assert all(file.startswith('image/') for file in archive.namelist())


def test_each_tab_keeps_its_last_result(ask):
    """Whatever the others do, unless there are too many of them; requests may come at once."""
    def one(tab, x=5):
        status, content, _ = ask('POST', '/image', jpeg(), boxes=f'{x},1,40,80', tab=tab)
        answer = json.loads(content)
        assert status == 200 and answer['record']['people'][0]['bbox'][0] == x
        return answer['folder']

    def there(folder):
        return ask('GET', folder + 'result.json')[0]

    first = one('a')
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        folders = list(pool.map(one, ['b'] * 10, range(10)))
    assert len(set(folders)) == 10 and sorted(map(there, folders)) == [200] + [404] * 9
    assert there(first) == 200
    second = one('a')
    assert (there(first), there(second)) == (404, 200)
    for tab in range(TABS_KEPT):
        one(str(tab))
    assert there(second) == 404


def test_a_video(ask, server, clip):
    """Progress for every frame, twice, then the demo's own files of a video; they go with the tab's next result."""
    pytest.importorskip('pygltflib')
    status, content, _ = ask('POST', '/video', clip, name='my clip.avi', boxes='5,4,20,40', tab='v', focal='700',
                             every_frame='yes')
    assert status == 200
    *progress, last = [json.loads(line) for line in content.splitlines()]
    assert progress[0] == {'step': 'waiting'}
    assert [(line['step'], line['frame'], line['frames']) for line in progress[1:]] == [
        (step, frame + 1, 6) for step in ('network', 'drawing') for frame in range(6)]
    answer = last['answer']
    assert (answer['people'], answer['record']['source']) == (1, 'my clip.avi')
    assert answer['record']['camera']['focal'] == [700, 700] and 'frames' not in answer['record']
    assert {'person_0.glb', 'result.npz', 'result.json', 'person_0.npz'} < set(answer['files'])
    glb = Gltf(ask('GET', answer['folder'] + 'person_0.glb')[1])
    assert len(glb.key_times()) == 6
    overlay = next(name for name in answer['files'] if name.startswith('rendered_mesh_param.'))
    whole = ask('GET', answer['folder'] + overlay)[1]
    status, part, headers = ask('GET', answer['folder'] + overlay, None, {'Range': 'bytes=10-19'})
    assert (status, part, headers['Content-Range']) == (206, whole[10:20], f'bytes 10-19/{len(whole)}')
    status, part, _ = ask('GET', answer['folder'] + overlay, None, {'Range': 'bytes=10-'})
    assert (status, part) == (206, whole[10:])
    folder = next(result.folder.name for _, result in server.work.results.kept.values() if result.folder)
    ask('POST', '/image', jpeg(), boxes=BOX, tab='v')
    with pytest.raises(FileNotFoundError):
        open(f'{folder}/clip/result.json')


def test_who_is_lost_in_a_video_is_told(ask, clip):
    """A random network loses everybody after the frame with the box."""
    content = ask('POST', '/video', clip, name='clip.avi', boxes='5,4,20,40', tab='v')[1]
    answer = json.loads(content.splitlines()[-1])['answer']
    assert answer['people'] == 1
    assert [note for note in answer['notes'] if note.startswith('person 0 was lost in 5 frames, the first is 1')]


def test_the_first_frame_of_a_video(ask, clip):
    status, content, headers = ask('POST', '/frame', clip, name='clip.avi')
    assert status == 200 and headers['Content-Type'] == 'image/jpeg'
    assert cv2.imdecode(np.frombuffer(content, np.uint8), 1).shape == (48, 64, 3)


def test_videos_that_cannot_be_used(ask, clip, monkeypatch):
    """In the words of the page: the name of the upload, and no option of the command line."""
    def told(path, body=clip, **query):
        content = ask('POST', path, body, name='my.avi', **query)[1]
        return json.loads(content.splitlines()[-1])['error']

    assert told('/frame', b'no video').startswith('my.avi: not a video')
    assert told('/video', b'no video', boxes=BOX).startswith('my.avi: not a video')
    assert told('/video', boxes='500,1,4,4') == 'person 0: 500 1 4 4 lies outside the image of 64 x 48 pixels'
    assert told('/video') == 'draw a box around each person first'
    monkeypatch.setattr(clips, 'MAX_FRAMES', 5)
    for path in ('/frame', '/video'):
        assert told(path, boxes='5,4,20,40').startswith('my.avi: the page takes videos of 5 frames at most')


@pytest.mark.parametrize('who', ['page', 'server'])
def test_who_goes_away_ends_the_computation(tmp_path, clip, who):
    """The page that asked for a video, or the server."""
    frames = []

    def video(data, upload, report):
        for frame in range(10**6):
            report({'frame': frame, 'fill': ' ' * 10000})
            frames.append(frame)

    with page_server(tmp_path) as server:
        server.work.video = video
        with socket.create_connection(('127.0.0.1', server.server_port), 60) as connection:
            head = [f'POST /video?boxes={BOX} HTTP/1.1', f'Host: localhost:{server.server_port}',
                    f'Content-Length: {len(clip)}', '', '']
            connection.sendall('\r\n'.join(head).encode() + clip)
            assert connection.recv(1)
            if who == 'server':
                server.closing.set()
                while connection.recv(1 << 20):
                    pass
    assert len(frames) < 10**6  # and the server has waited for its threads


def test_people_are_found(ask, server, monkeypatch):
    assert json.loads(ask('GET', '/about')[1]) == {'hands': False, 'finder': None, 'warnings': []}
    made = []

    def make():
        made.append(1)
        return lambda image: [np.float32([3, 4, image.shape[1] / 2, 60.04])]

    monkeypatch.setattr(server.work, 'finder', Finder(make, 'some_detector', 74.2))
    assert json.loads(ask('GET', '/about')[1])['finder'] == {'name': 'some_detector', 'megabytes': 74}
    for _ in range(2):
        status, content, _ = ask('POST', '/find', jpeg(), name='photo.jpg')
        assert status == 200 and json.loads(content) == {'boxes': [[3, 4, 45, 60]]}
    assert made == [1] and json.loads(ask('GET', '/about')[1])['finder']['megabytes'] == 0
    monkeypatch.setattr(server.work, 'finder', Finder(lambda: lambda image: [], 'some_detector', 0))
    assert 'nobody found' in json.loads(ask('POST', '/find', jpeg())[1])['error']


def test_doubts_about_the_network_are_told(ask, server, monkeypatch):
    monkeypatch.setattr(server.work.pipeline, 'warnings', ['drawn people only'])
    assert json.loads(ask('GET', '/about')[1])['warnings'] == ['drawn people only']
    assert 'drawn people only' in json.loads(ask('POST', '/image', jpeg(), boxes=BOX)[1])['record']['warnings']


def test_a_detector_that_cannot_be_had(ask, server, monkeypatch):
    def make():
        raise UserError('--detect: ...') from URLError('no network')

    monkeypatch.setattr(server.work, 'finder', Finder(make, 'some_detector', 74))
    status, content, _ = ask('POST', '/find', jpeg())
    assert status == 400
    told = 'the detector of people cannot be downloaded to this computer (no network): draw a box around each person'
    assert json.loads(content)['error'] == told
