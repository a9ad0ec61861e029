"""Serves one WSGI app on a unix socket: `runner.py SOURCE SOCKET`. Prints `ready` when it listens.

What is typed into the app lives in this process alone. So other processes may not look into it, nothing of a
request is logged, and what the app prints from then on goes nowhere (the module drops it).
"""

from __future__ import annotations

import ctypes
import os
import runpy
import socket
import socketserver
import sys
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

_PR_SET_DUMPABLE = 4
_LARGEST = 1 << 20
"""Bytes of a request's body."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    address_family = socket.AF_UNIX
    daemon_threads = True

    def server_bind(self) -> None:
        """As usual, but that a unix socket has neither host nor port."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "app", 80
        self.setup_environ()

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """Who asks has no address on a unix socket, and the standard library wants one."""
        return super().get_request()[0], ("core", 0)


class _Handler(WSGIRequestHandler):
    timeout = 30

    def address_string(self) -> str:
        return "core"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: an address may hold what was typed."""

    def parse_request(self) -> bool:
        """Refuse what is too large before the app sees it."""
        if not super().parse_request():
            return False
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _LARGEST or "Transfer-Encoding" in self.headers:
            self.send_error(413)
            return False
        return True


def main() -> None:
    source, path = sys.argv[1:]
    # Else any process of the same user may read this one's memory through /proc.
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError("The process can't be closed to others.")
    app = runpy.run_path(source, run_name="app").get("app")
    if not callable(app):
        raise TypeError(
            "The source must define a WSGI application named app: def app(environ, start_response)."
        )
    os.unlink(source)
    with _Server(path, _Handler) as server:  # type: ignore[arg-type]  # its stub knows TCP addresses only
        server.set_app(app)
        print("ready", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
