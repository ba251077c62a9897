"""The local web server of the demo, on the standard library: a page, its scripts, and two things to ask for.

    GET  /, /app.js, ...                   the page: a fixed list of files, nothing else of the disk
    POST /predict?name=...&boxes=x,y,w,h;x,y,w,h&focal=...     an image file in the body -> JSON
    GET  /results/<id>/<file>              overlays, meshes and the record of one of the last results

It listens on 127.0.0.1 alone, and answers only what comes under that name: another site's page, or a name that
resolves to this machine, gets 403. Bodies and waiting requests are limited.
"""
import base64
import contextlib
import hashlib
import json
import re
import signal
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from common.demo.web.results import Results
from common.errors import UserError

STATIC = Path(__file__).with_name('static')
PAGES = {'/': 'index.html', '/style.css': 'style.css', '/app.js': 'app.js', '/boxes.js': 'boxes.js',
         '/viewer.js': 'viewer.js', '/three/three.module.min.js': 'three/three.module.min.js',
         '/three/OrbitControls.js': 'three/OrbitControls.js'}
TYPES = {'.html': 'text/html; charset=utf-8', '.css': 'text/css', '.js': 'text/javascript', '.jpg': 'image/jpeg',
         '.json': 'application/json', '.obj': 'model/obj', '.bin': 'application/octet-stream'}
MAX_BYTES = 25_000_000
DISCARDED_BYTES = 8 * MAX_BYTES  # of a refused image that are read; who sends more is cut off
MAX_WAITING = 8  # requests that may wait for the network at a time
SECONDS = 30  # after which a client that sends or takes nothing is dropped


def own_hosts(port: int) -> set[str]:
    """The names of this server in a browser's `Host`, which leaves out the port that is HTTP's own."""
    names = {'127.0.0.1', 'localhost'}
    with_port = {f'{name}:{port}' for name in names}
    return with_port | names if port == 80 else with_port


def content_policy(page: bytes) -> str:
    """The Content-Security-Policy of the page: nothing from elsewhere, and no script in it but its import map."""
    found = re.search(rb'<script type="importmap">(.*?)</script>', page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(found[1] if found else b'').digest()).decode()
    return f"default-src 'self'; img-src 'self' blob: data:; script-src 'self' 'sha256-{digest}'"


class Server(ThreadingHTTPServer):
    """Serves `Results` on 127.0.0.1; no thread of it outlives `server_close`.

    A thread that outlives the interpreter may abort the program at its very end.

    Args:
        results: answers the page.
        port: 0 for any free one.
    Raises:
        OSError, OverflowError: it cannot listen there.
    """
    daemon_threads = False  # server_close() waits for them

    def __init__(self, results: Results, port: int) -> None:
        self.results = results
        self.waiting = threading.BoundedSemaphore(MAX_WAITING)
        self.files = {path: (STATIC / name).read_bytes() for path, name in PAGES.items()}
        self.policy = content_policy(self.files['/'])
        self.connections: set[Any] = set()
        super().__init__(('127.0.0.1', port), Handler)
        self.hosts = own_hosts(self.server_port)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember an open connection."""
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection."""
        self.connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """End the connections that browsers keep open, and wait for their threads."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what goes wrong, but for clients that go away in the middle."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def make_server(results: Results, port: int) -> Server:
    """A server to be run by `serve_forever`. UserError if it cannot listen on that port."""
    try:
        return Server(results, port)
    except (OSError, OverflowError) as error:
        raise UserError(f'--port {port}: cannot listen there ({error}); try another number') from error


def serve(results: Results, port: int) -> int:
    """Serve until Ctrl-C or SIGTERM; returns the exit code."""
    with make_server(results, port) as server:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        print(f'open http://127.0.0.1:{server.server_port} in a browser; Ctrl-C ends', flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print('bye')
        finally:
            signal.signal(signal.SIGTERM, before)
    return 0


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
        content = self.server.files.get(path)
        found = re.fullmatch(r'/results/([\w-]+)/([\w.]+)', path)
        if content is None and found:
            content = self.server.results.file(found[1], found[2])
        if content is None:
            self._error(HTTPStatus.NOT_FOUND, 'there is nothing under this address')
        else:
            self._answer(HTTPStatus.OK, content, TYPES[Path(PAGES.get(path, path)).suffix])

    def do_POST(self) -> None:
        """An image and its boxes."""
        if self._foreign():
            return
        address = urlsplit(self.path)
        length = self.headers.get('Content-Length', '')
        if address.path != '/predict':
            self._error(HTTPStatus.NOT_FOUND, 'there is nothing under this address')
        elif not re.fullmatch(r'\d{1,12}', length):
            self._error(HTTPStatus.LENGTH_REQUIRED, 'the length of the image is missing')
        elif int(length) > MAX_BYTES:
            self._error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f'an image may have {MAX_BYTES // 10**6} MB at most')
            self._discard(int(length))
        elif not self.server.waiting.acquire(blocking=False):
            self._error(HTTPStatus.SERVICE_UNAVAILABLE, 'too many requests at once, try again in a moment')
            self._discard(int(length))
        else:
            try:
                self._predict(self.rfile.read(int(length)), parse_qs(address.query))
            finally:
                self.server.waiting.release()

    def _discard(self, length: int) -> None:
        """Read a body that was refused, up to a bound: a browser cut off in the middle of sending would report a broken
        connection in place of our answer."""
        left = min(length, DISCARDED_BYTES)
        while left > 0 and (part := self.rfile.read(min(left, 1 << 16))):
            left -= len(part)

    def _predict(self, data: bytes, query: dict[str, list[str]]) -> None:
        try:
            name = Path(query.get('name', ['image'])[0].replace('\\', '/')).name[:200] or 'image'
            boxes = [box.split(',') for box in query.get('boxes', [''])[0].split(';') if box]
            focal = _number(query['focal'][0]) if 'focal' in query else None
            answer = self.server.results.predict(data, name, boxes, focal)
        except UserError as error:
            self._error(HTTPStatus.BAD_REQUEST, str(error), keep=True)
        else:
            self._answer(HTTPStatus.OK, json.dumps(answer).encode(), TYPES['.json'])

    def _foreign(self) -> bool:
        """Refuse requests that were not made to this server by its own page or by a program. True if so."""
        origin = self.headers.get('Origin')
        to_us = self.headers.get('Host') in self.server.hosts
        if to_us and (origin is None or urlsplit(origin).netloc in self.server.hosts):
            return False
        self._error(HTTPStatus.FORBIDDEN, 'this server answers its own page only')
        return True

    def _error(self, status: HTTPStatus, text: str, keep: bool = False) -> None:
        """An error message as JSON; the connection ends unless the request was read whole (`keep`)."""
        self.close_connection = self.close_connection or not keep
        self._answer(status, json.dumps({'error': text}).encode(), TYPES['.json'])

    def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        headers = {'Content-Type': kind, 'Content-Length': str(len(content)), 'Cache-Control': 'no-store',
                   'Content-Security-Policy': self.server.policy, 'X-Content-Type-Options': 'nosniff'}
        if self.close_connection:
            headers['Connection'] = 'close'
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, form: str, *values: object) -> None:
        """Nothing is logged."""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UserError(f'the focal length is not a number: {text}') from error
