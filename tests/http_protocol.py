"""HTTP/1.1 for a server in a test. It notices at once when a client disconnects, and can break off anywhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from iact.core.ports import JSON


class Server(Protocol):
    """The server of the connections. `connections`: how many there have been. `open`: those that are open."""

    connections: int
    open: set[Connection]
    problems: list[str]

    async def handle(self, connection: Connection, head: Head, content: bytes) -> None:
        """Answer one request."""
        ...


class Head(NamedTuple):
    """A request line and its headers, names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]

    @classmethod
    def parse(cls, raw: bytes) -> Head:
        first, *lines = raw.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        return cls(
            method, path.split("?", 1)[0], {name.strip().lower(): value.strip() for name, value in pairs}
        )


class Connection(asyncio.Protocol):
    """One keep-alive connection: bytes in, one request at a time to the server, bytes out.

    A protocol rather than a stream, because it notices at once when the client disconnects.
    """

    def __init__(self, server: Server, group: asyncio.TaskGroup) -> None:
        self._server = server
        self._group = group
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    # --- from the event loop --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections += 1
        self._server.open.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.open.discard(self)
        if self._task is not None:
            self._task.cancel()

    def _next(self) -> None:
        if self._task is not None:
            return
        raw, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        head = Head.parse(raw)
        size = int(head.headers.get("content-length", "0"))
        if len(rest) < size:
            return
        self._buffer = rest[size:]
        self._task = self._group.create_task(self._handle(head, rest[:size]))

    async def _handle(self, head: Head, content: bytes) -> None:
        try:
            await self._server.handle(self, head, content)
        except Exception as error:
            self._server.problems.append(f"the endpoint failed at a request: {error!r}")
            self.abort()
        self._task = None
        self._next()

    # --- answers ----------------------------------------------------------------------------------

    def answer(self, status: int, body: JSON, headers: Mapping[str, str] = {}) -> None:
        """A whole response: text as plain text, anything else as JSON."""
        kind = "text/plain" if isinstance(body, str) else "application/json"
        self.answer_raw(status, (body if isinstance(body, str) else json.dumps(body)).encode(), kind, headers)

    def answer_raw(self, status: int, body: bytes, kind: str, headers: Mapping[str, str]) -> None:
        self._head(status, {"content-type": kind, "content-length": str(len(body)), **headers})
        self._write(body)

    def start_stream(self, kind: str) -> None:
        self._head(200, {"content-type": kind, "transfer-encoding": "chunked", "cache-control": "no-cache"})

    def send_event(self, data: str) -> None:
        self.send_chunk(f"data: {data}\n\n".encode())

    def send_chunk(self, data: bytes) -> None:
        self._write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end_stream(self) -> None:
        self._write(b"0\r\n\r\n")

    async def hang(self) -> None:
        """Wait without answering, until the client disconnects or the endpoint stops."""
        await asyncio.Event().wait()

    def cut(self) -> None:
        """Break off: written bytes are sent, but the body never ends."""
        self._task = None  # the endpoint closed the connection, not the client
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._write(f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode())

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
