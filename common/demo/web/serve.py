"""`python main/demo.py --serve`: run the page's server, and say how to reach it."""
import os
import signal
import socket

from common.demo.web.guard import LOCAL
from common.demo.web.server import make_server
from common.demo.web.work import Work


def serve(work: Work, port: int, host: str | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM; returns the exit code.

    Args:
        work: answers the page.
        port: 0 for any free one.
        host: the address to listen on; None: this computer alone.
    """
    with make_server(work, port, host or LOCAL) as server:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        for line in greeting(server.server_port, host, server.guard.numbers):
            print(line, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print('bye')
        finally:
            signal.signal(signal.SIGTERM, before)
    return 0


def greeting(port: int, host: str | None, reachable: bool) -> list[str]:
    """What is said at the start: the address, and how to reach a server from elsewhere.

    Args:
        port: that the server listens on.
        host: the address given, or None.
        reachable: other computers can reach it.
    """
    name = host or LOCAL
    if reachable and name == '0.0.0.0':
        name = socket.gethostname()
    lines = [f'open http://{name}:{port} in a browser; Ctrl-C ends']
    tunnel = f'ssh -L {port}:{LOCAL}:{port} user@{socket.gethostname()}'
    if reachable:
        lines.append(f'warning: everybody who can reach port {port} of this computer can use the page; nothing is '
                     'encrypted, and there is no password')
        lines.append(f'safer: leave out --host, run {tunnel} on your own computer, and open '
                     f'http://{LOCAL}:{port} there')
    elif 'SSH_CONNECTION' in os.environ:
        lines.append(f'from your own computer: {tunnel}, then open http://{LOCAL}:{port} there')
    return lines
