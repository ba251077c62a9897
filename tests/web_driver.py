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

KEYS = {'Tab': '\ue004', 'Enter': '\ue007', 'Space': ' ', 'Shift': '\ue008', 'Control': '\ue009', 'Left': '\ue012',
        'Up': '\ue013', 'Right': '\ue014', 'Down': '\ue015', 'Delete': '\ue017'}
ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'  # the key of an element's id, by the standard


def browser_missing() -> str:
    """The programs that are not installed, or an empty text."""
    return ' and '.join(name for name in ('chromium', 'chromedriver') if not shutil.which(name))


class Browser:
    """A headless Chromium that saves downloads into a folder. A context manager."""

    def __init__(self, downloads: Path) -> None:
        self.downloads = downloads
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

    def drag(self, start: list[float], end: list[float], pointer: str = 'mouse') -> None:
        """Press the mouse, or a finger ('touch'), at `start`, (x, y) in the window, and release it at `end`."""
        def move(part: float) -> dict[str, Any]:
            x, y = (round(a + part * (b - a)) for a, b in zip(start, end, strict=True))
            return {'type': 'pointerMove', 'duration': 20, 'x': x, 'y': y}

        steps = [move(0), {'type': 'pointerDown', 'button': 0}, *(move(i / 8) for i in range(1, 9)),
                 {'type': 'pointerUp', 'button': 0}]
        source = {'type': 'pointer', 'id': pointer, 'parameters': {'pointerType': pointer}, 'actions': steps}
        self.call('POST', '/actions', {'actions': [source]})

    def press(self, *keys: str) -> None:
        """Press keys one after the other; two of them joined by a blank: the first is held."""
        steps = []
        for key in keys:
            parts = [KEYS.get(part, part) for part in key.split(' ')]
            steps += [{'type': 'keyDown', 'value': part} for part in parts]
            steps += [{'type': 'keyUp', 'value': part} for part in reversed(parts)]
        self.call('POST', '/actions', {'actions': [{'type': 'key', 'id': 'keyboard', 'actions': steps}]})

    def resize(self, width: int, height: int) -> None:
        """Give the page a size in pixels; below 600, that of a phone with a touch screen."""
        size = {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': width < 600}
        self.devtools('Emulation.setDeviceMetricsOverride', **size)
        self.devtools('Emulation.setTouchEmulationEnabled', enabled=width < 600)

    def devtools(self, command: str, **parameters: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self.call('POST', '/goog/cdp/execute', {'cmd': command, 'params': parameters})

    def text(self, element: str) -> str:
        """What stands in the element with an id."""
        return self.script(f'return document.getElementById("{element}").textContent')

    def place(self, selector: str) -> list[float]:
        """Left, top, width and height of an element in the window."""
        return self.script('const r = document.querySelector(arguments[0]).getBoundingClientRect();'
                           'return [r.left, r.top, r.width, r.height]', selector)

    def complaints(self) -> list[str]:
        """The warnings and errors in the page's console."""
        entries = self.call('POST', '/se/log', {'type': 'browser'})
        return [entry['message'] for entry in entries if entry['level'] in ('WARNING', 'SEVERE')]
