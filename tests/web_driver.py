"""A real browser for tests: Debian's chromium, steered by chromedriver's protocol (W3C WebDriver, JSON over HTTP)."""
import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'  # the key of an element's id, by the standard


def browser_missing() -> str:
    """The programs that are not installed, or an empty text."""
    return ' and '.join(name for name in ('chromium', 'chromedriver') if not shutil.which(name))


class Browser:
    """A headless Chromium that saves downloads into a folder. A context manager."""

    def __init__(self, downloads: Path) -> None:
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            port = probe.getsockname()[1]
        self.root = f'http://127.0.0.1:{port}'
        self.process = subprocess.Popen(['chromedriver', f'--port={port}'], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.session = ''
        arguments = ['--headless=new', '--no-sandbox', '--disable-dev-shm-usage', '--window-size=1100,1400',
                     '--enable-unsafe-swiftshader', '--use-angle=swiftshader']
        options = {'args': arguments, 'prefs': {'download.default_directory': str(downloads)},
                   'binary': shutil.which('chromium')}
        wanted = {'browserName': 'chrome', 'goog:chromeOptions': options, 'goog:loggingPrefs': {'browser': 'ALL'}}
        self.wait(self._ready)
        session = self.call('POST', '/session', {'capabilities': {'alwaysMatch': wanted}})
        self.session = '/session/' + session['sessionId']

    def _ready(self) -> bool:
        try:
            return self.call('GET', '/status')['ready']
        except OSError:
            return False

    def __enter__(self) -> 'Browser':
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.call('DELETE', '')
        finally:
            self.process.terminate()
            self.process.wait()

    def call(self, method: str, path: str, body: dict | None = None) -> Any:
        """One command of the protocol; returns its value."""
        data = json.dumps(body or {}).encode() if method == 'POST' else None
        request = urllib.request.Request(self.root + self.session + path, data, {'Content-Type': 'application/json'},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error

    def wait(self, condition: Callable[[], Any], seconds: float = 120) -> Any:
        """The first true value of `condition()`."""
        end = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < end, f'still not true after {seconds} s'
            time.sleep(0.1)
        return value

    def open(self, url: str) -> None:
        """Show a page."""
        self.call('POST', '/url', {'url': url})

    def script(self, code: str, *arguments: Any) -> Any:
        """Run JavaScript; `return` gives a value back."""
        return self.call('POST', '/execute/sync', {'script': code, 'args': list(arguments)})

    def find(self, selector: str) -> str:
        """The path of an element's commands."""
        return '/element/' + self.call('POST', '/element', {'using': 'css selector', 'value': selector})[ELEMENT]

    def click(self, selector: str) -> None:
        """Click an element."""
        self.call('POST', self.find(selector) + '/click')

    def type(self, selector: str, text: str) -> None:
        """Type a text, or the path of a file, into an element."""
        self.call('POST', self.find(selector) + '/value', {'text': text})

    def screenshot(self, selector: str) -> bytes:
        """PNG bytes of an element."""
        return base64.b64decode(self.call('GET', self.find(selector) + '/screenshot'))

    def drag(self, start: list[float], end: list[float]) -> None:
        """Press the mouse at `start`, (x, y) in the window, and release it at `end`."""
        def move(point: list[float]) -> dict[str, Any]:
            return {'type': 'pointerMove', 'duration': 50, 'x': round(point[0]), 'y': round(point[1])}

        middle = [(a + b) / 2 for a, b in zip(start, end, strict=True)]
        steps = [move(start), {'type': 'pointerDown', 'button': 0}, move(middle), move(end),
                 {'type': 'pointerUp', 'button': 0}]
        self.call('POST', '/actions', {'actions': [{'type': 'pointer', 'id': 'mouse', 'actions': steps}]})

    def complaints(self) -> list[str]:
        """The warnings and errors in the page's console."""
        entries = self.call('POST', '/se/log', {'type': 'browser'})
        return [entry['message'] for entry in entries if entry['level'] in ('WARNING', 'SEVERE')]
