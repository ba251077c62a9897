"""The local web server of the demo, on the standard library: a page, its scripts, and what they ask for.

    GET  /, /app.js, ...                   the page: a fixed list of files, nothing else of the disk
    GET  /about                            what the network is for -> JSON
    POST /image?name=...&boxes=x,y,w,h;x,y,w,h&focal=...&tab=...     an image file in the body -> JSON
    POST /video?...&every_frame=yes        a video file, the same -> lines of JSON: progress, then {answer} or {error}
    POST /frame?name=...                   a video file -> its first frame as a JPEG
    POST /find?name=...                    an image file -> {boxes}: of the people found
    GET  /results/<id>/<file>              a file of the last result of one of the browser's tabs

It answers only what comes under its own name (`Guard`). Bodies and waiting requests are limited.
"""
import contextlib
import json
import os
import re
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

from common.demo.web.guard import LOCAL, Guard, content_policy
from common.demo.web.work import Upload, Work
from common.errors import UserError

STATIC = Path(__file__).with_name('static')
PAGES = {'/': 'index.html'} | {f'/{name}': name for name in (
    'style.css', 'app.js', 'server.js', 'boxes.js', 'results.js', 'viewer.js', 'three/three.module.min.js',
    'three/OrbitControls.js', 'three/loaders/GLTFLoader.js', 'three/utils/BufferGeometryUtils.js')}
TYPES = {'.html': 'text/html; charset=utf-8', '.css': 'text/css', '.js': 'text/javascript', '.jpg': 'image/jpeg',
         '.json': 'application/json', '.obj': 'model/obj', '.glb': 'model/gltf-binary', '.zip': 'application/zip',
         '.mp4': 'video/mp4', '.webm': 'video/webm'}
OTHER = 'application/octet-stream'
MAX_BYTES = {'/image': 25_000_000, '/find': 25_000_000, '/video': 100_000_000, '/frame': 100_000_000}
DISCARDED_BYTES = 200_000_000  # of a refused upload that are read; who sends more is cut off
MAX_WAITING = 8  # requests that may wait for the network at a time
SECONDS = 30  # after which a client that sends or takes nothing is dropped


class Server(ThreadingHTTPServer):
    """Serves `Work`; no thread of it outlives `server_close`.

    A thread that outlives the interpreter may abort the program at its very end.

    Args:
        work: answers the page.
        port: 0 for any free one.
        host: the address to listen on.
    Raises:
        OSError, OverflowError: it cannot listen there.
    """
    daemon_threads = False  # server_close() waits for them

    def __init__(self, work: Work, port: int, host: str = LOCAL) -> None:
        self.work = work
        self.waiting = threading.BoundedSemaphore(MAX_WAITING)
        self.files = {path: (STATIC / name).read_bytes() for path, name in PAGES.items()}
        self.policy = content_policy(self.files['/'])
        self.connections: set[Any] = set()
        self.closing = threading.Event()
        super().__init__((host, port), Handler)
        self.guard = Guard(host, self.server_port)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember an open connection."""
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection."""
        self.connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """End the connections that browsers keep open and the videos, wait for all threads, and delete all results."""
        self.closing.set()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        super().server_close()
        self.work.results.clear()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what goes wrong, but for clients that go away in the middle."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def make_server(work: Work, port: int, host: str = LOCAL) -> Server:
    """A server to be run by `serve_forever`. UserError if it cannot listen there."""
    try:
        return Server(work, port, host)
    except (OSError, OverflowError) as error:
        if host == LOCAL:
            raise UserError(f'--port {port}: cannot listen there ({error}); try another number') from error
        raise UserError(f'--host {host} --port {port}: cannot listen there ({error}); give an IPv4 address of this '
                        'computer, and a free port') from error


class Handler(BaseHTTPRequestHandler):
    """One connection."""
    server: Server
    protocol_version = 'HTTP/1.1'
    timeout = SECONDS
    server_version = 'demo'
    sys_version = ''

    def do_GET(self) -> None:
        """A file of the page, or of a result."""
        if self._foreign():
            return
        path = urlsplit(self.path).path
        page = self.server.files.get(path)
        found = re.fullmatch(r'/results/([\w-]+)/([\w.]+)', path)
        file: BinaryIO | None = None
        if path == '/about':
            self._json(self.server.work.about())
            return
        if page is not None:
            file = BytesIO(page)
        elif found:
            file = self.server.work.results.open(found[1], found[2])
        if file is None:
            self._error(HTTPStatus.NOT_FOUND, 'there is nothing under this address')
            return
        with file:
            self._send(file, TYPES.get(Path(PAGES.get(path, path)).suffix, OTHER))

    def do_POST(self) -> None:
        """An image or a video, and what the page wants of it."""
        if self._foreign():
            return
        path = urlsplit(self.path).path
        length = self.headers.get('Content-Length', '')
        if path not in MAX_BYTES:
            self._error(HTTPStatus.NOT_FOUND, 'there is nothing under this address')
        elif not re.fullmatch(r'\d{1,12}', length):
            self._error(HTTPStatus.LENGTH_REQUIRED, 'the length of the image is missing')
        elif int(length) > MAX_BYTES[path]:
            what = 'an image' if path in ('/image', '/find') else 'a video'
            self._error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f'{what} may have {MAX_BYTES[path] // 10**6} MB at most')
            self._discard(int(length))
        elif not self.server.waiting.acquire(blocking=False):
            self._error(HTTPStatus.SERVICE_UNAVAILABLE, 'too many requests at once, try again in a moment')
            self._discard(int(length))
        else:
            try:
                self._work(path, self.rfile.read(int(length)))
            finally:
                self.server.waiting.release()

    def _discard(self, length: int) -> None:
        """Read a body that was refused, up to a bound: a browser cut off in the middle of sending would report a broken
        connection in place of our answer."""
        left = min(length, DISCARDED_BYTES)
        while left > 0 and (part := self.rfile.read(min(left, 1 << 16))):
            left -= len(part)

    def _work(self, path: str, data: bytes) -> None:
        work = self.server.work
        upload = self._upload()
        try:
            if path == '/image':
                self._json(work.image(data, upload))
            elif path == '/find':
                self._json({'boxes': work.find(data, upload)})
            elif path == '/frame':
                self._send(BytesIO(work.first_frame(data, upload)), TYPES['.jpg'])
            else:
                self._stream(data, upload)
        except UserError as error:
            self._error(HTTPStatus.BAD_REQUEST, str(error), keep=True)

    def _upload(self) -> Upload:
        query = parse_qs(urlsplit(self.path).query)
        given = {name: query.get(name, [''])[0] for name in ('name', 'boxes', 'focal', 'tab', 'every_frame')}
        name = Path(given['name'].replace('\\', '/')).name[:200] or 'image'
        boxes = [box.split(',') for box in given['boxes'].split(';') if box]
        return Upload(name, boxes, given['focal'], given['tab'][:40], bool(given['every_frame']))

    def _stream(self, data: bytes, upload: Upload) -> None:
        """Answer line by line while a video is computed. A page that goes away ends the computation: the next line
        cannot be sent."""
        self.close_connection = True
        self._head(HTTPStatus.OK, {'Content-Type': 'application/x-ndjson'})

        def report(line: dict[str, Any]) -> None:
            if self.server.closing.is_set():
                raise ConnectionAbortedError
            self.wfile.write(json.dumps(line).encode() + b'\n')

        try:
            report({'answer': self.server.work.video(data, upload, report)})
        except UserError as error:
            report({'error': str(error)})

    def _foreign(self) -> bool:
        """Refuse requests that were not made to this server by its own page or by a program. True if so."""
        if self.server.guard.admits(self.headers.get('Host'), self.headers.get('Origin')):
            return False
        self._error(HTTPStatus.FORBIDDEN, 'this server answers its own page only')
        return True

    def _error(self, status: HTTPStatus, text: str, keep: bool = False) -> None:
        """An error message as JSON; the connection ends unless the request was read whole (`keep`)."""
        self.close_connection = self.close_connection or not keep
        self._json({'error': text}, status)

    def _json(self, content: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(BytesIO(json.dumps(content).encode()), TYPES['.json'], status)

    def _send(self, file: BinaryIO, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        """A file, or the part of it that the browser asks for: of videos, to jump in them."""
        size = file.seek(0, os.SEEK_END)
        headers = {'Content-Type': kind, 'Accept-Ranges': 'bytes'}
        part = re.fullmatch(r'bytes=(\d{1,15})-(\d{0,15})', self.headers.get('Range', ''))
        start = 0
        end = size
        if part and status == HTTPStatus.OK and int(part[1]) < size:
            status = HTTPStatus.PARTIAL_CONTENT
            start = int(part[1])
            end = min(int(part[2] or size - 1) + 1, size)
            headers['Content-Range'] = f'bytes {start}-{end - 1}/{size}'
        file.seek(start)
        self._head(status, headers | {'Content-Length': str(max(end - start, 0))})
        while block := file.read(min(1 << 20, max(end - file.tell(), 0))):
            self.wfile.write(block)

    def _head(self, status: HTTPStatus, headers: dict[str, str]) -> None:
        self.send_response(status)
        headers |= {'Cache-Control': 'no-store', 'Content-Security-Policy': self.server.policy,
                    'X-Content-Type-Options': 'nosniff'}
        if self.close_connection:
            headers['Connection'] = 'close'
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, form: str, *values: object) -> None:
        """Nothing is logged."""
