"""Who may ask the server: its own page under its own name; and what that page may load."""
import base64
import hashlib
import ipaddress
import re
import socket
from urllib.parse import urlsplit

LOCAL = '127.0.0.1'


class Guard:
    """Tells requests that were made to this server by its own page, or by a program, from those of other sites.

    A name of another site may resolve to this machine (DNS rebinding), an address in numbers cannot: with --host, those
    are fine, whatever network card they belong to.

    Args:
        host: the address that the server listens on.
        port: of it.
    """

    def __init__(self, host: str, port: int) -> None:
        self.port = port
        self.numbers = not ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
        self.names = {LOCAL, 'localhost', host}
        if self.numbers:
            self.names |= {socket.gethostname(), f'{socket.gethostname()}.local', socket.getfqdn()}

    def admits(self, host: str | None, origin: str | None) -> bool:
        """Whether a request is fine, by its `Host` and `Origin`. Browsers leave out the port that is HTTP's own."""
        if host is None or (origin is not None and urlsplit(origin).netloc != host):
            return False
        name, _, port = host.partition(':')
        if port != str(self.port) and (port or self.port != 80):
            return False
        return name in self.names or (self.numbers and _is_number(name))


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def content_policy(page: bytes) -> str:
    """The Content-Security-Policy of the page: nothing from elsewhere, and no script in it but its import map."""
    found = re.search(rb'<script type="importmap">(.*?)</script>', page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(found[1] if found else b'').digest()).decode()
    return f"default-src 'self'; img-src 'self' blob: data:; script-src 'self' 'sha256-{digest}'"
