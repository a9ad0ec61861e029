"""Serves one WSGI app on a unix socket: `runner.py SOURCE SOCKET`. Prints `ready` when it listens.

Whatever the user types into the app is in this process only. So other processes may not inspect it, requests are not
logged, and the module discards everything that the app prints from then on.
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
"""The most bytes of a request's body."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    address_family = socket.AF_UNIX
    daemon_threads = True

    def server_bind(self) -> None:
        """Bind as usual, except that a unix socket has neither host nor port."""
        socketserver.TCPServer.server_bind(self)
        self.server_name = "app"
        self.server_port = 80
        self.setup_environ()

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """Supply a client address, which a unix socket lacks and the standard library requires."""
        return super().get_request()[0], ("core", 0)


class _Handler(WSGIRequestHandler):
    timeout = 30

    def address_string(self) -> str:
        return "core"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: an address may contain what the user typed."""

    def parse_request(self) -> bool:
        """Refuse requests that are too large before the app sees them."""
        if not super().parse_request():
            return False
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _LARGEST or "Transfer-Encoding" in self.headers:
            self.send_error(413)
            return False
        return True


def main() -> None:
    source, path = sys.argv[1:]
    # Otherwise, any process of the same user could read this one's memory through /proc.
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError("The process can't be closed to others.")

    app = runpy.run_path(source, run_name="app").get("app")
    if not callable(app):
        sys.exit("The source must define a WSGI application named app: def app(environ, start_response).")
    os.unlink(source)

    with _Server(path, _Handler) as server:  # type: ignore[arg-type]  # its stub knows TCP addresses only
        server.set_app(app)
        print("ready", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
