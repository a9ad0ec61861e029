"""Listens between a third-party client and the product, and forwards all messages: python -m docs.sessions.tap LOG COMMAND…

Transcripts consist only of these messages. Neither side notices the listener. As a program, it runs COMMAND behind its
own standard input and output, and writes a line of JSON for each message to LOG. `tapped` does the same for HTTP.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Final, Literal, NamedTuple, TypeAlias

import httpx

from iact.core.ports import JSON

Arrow: TypeAlias = Literal["→", "←"]
"""The direction: from the client to the product, or back."""


class Message(NamedTuple):
    """A message of either side. `about`: its method or address, if it has one. `data`: the rest."""

    arrow: Arrow
    about: str
    data: JSON


_HOP: Final = {"host", "content-length", "connection", "accept-encoding", "transfer-encoding"}
"""Headers that are only valid for one connection (hop-by-hop)."""


@dataclass(slots=True)
class Tap:
    """The address for the client, and the messages. `known`: the product's own addresses that the client was given."""

    url: str = ""
    heard: list[Message] = field(default_factory=list)


@contextmanager
def tapped(url: str) -> Iterator[Tap]:
    """Run a listener in front of a server of faces."""
    tap = Tap()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._pass_on(b"")

        def do_POST(self) -> None:
            self._pass_on(self.rfile.read(int(self.headers["Content-Length"])))

        def _pass_on(self, body: bytes) -> None:
            tap.heard.append(Message("→", f"{self.command} {self.path}", json.loads(body) if body else None))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            with httpx.Client(base_url=url, timeout=300) as server:
                answer = server.request(self.command, self.path, content=body, headers=headers)
            # Clients that come through here see this address instead of the product's.
            given = answer.content.replace(url.encode(), tap.url.encode())
            tap.heard += _answers(answer, given.decode())
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers.get("content-type", ""))
            self.send_header("Content-Length", str(len(given)))
            self.end_headers()
            self.wfile.write(given)

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        tap.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield tap
        finally:
            server.shutdown()
            thread.join()


def _answers(answer: httpx.Response, text: str) -> Iterator[Message]:
    """An answer, or each event in it."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        yield Message("←", str(answer.status_code), json.loads(text) if text else None)
        return
    for line in text.splitlines():
        if line.startswith("data: {"):
            yield Message("←", "", json.loads(line.removeprefix("data: ")))


def read(log: Path) -> list[Message]:
    """Read the log of a JSON-RPC client. `about` of an answer is the method that it answers."""
    found: list[Message] = []
    asked: dict[tuple[str, JSON], str] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        arrow, message = json.loads(line)
        identity = message.get("id")
        if "method" in message:
            asked[arrow, identity] = message["method"]
            found.append(Message(arrow, message["method"], message.get("params")))
        else:
            method = asked["←" if arrow == "→" else "→", identity]
            found.append(Message(arrow, f"{method}, answered", message.get("result", message.get("error"))))
    return found


def _copy(source: IO[bytes], target: IO[bytes], log: IO[str], arrow: Arrow) -> None:
    """Forward lines until the end. Each is logged before it is forwarded."""
    for line in source:
        log.write(f"{json.dumps([arrow, json.loads(line)], ensure_ascii=False)}\n")
        target.write(line)
        target.flush()
    if arrow == "→":
        target.close()


def main() -> int:
    """Run a command behind the listener."""
    with (
        Path(sys.argv[1]).open("w", encoding="utf-8", buffering=1) as log,
        subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        asking = threading.Thread(target=_copy, args=(sys.stdin.buffer, process.stdin, log, "→"), daemon=True)
        asking.start()
        _copy(process.stdout, sys.stdout.buffer, log, "←")
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
