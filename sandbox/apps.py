"""Where the user opens the apps that agents serve: a page of ours, and in it the app, in a frame of another origin.

`http://NAME.localhost:PORT/` is ours (`sandbox.app_page`): it says whose app it is, and shows it in a frame.
`http://app.NAME.localhost:PORT/` is the app. Browsers resolve every name below `localhost` to this machine and treat
each as an origin of its own, so an app reaches neither our pages nor another app's storage or cookies. NAME is sixteen
random hex digits; without it, nothing can be reached. Agents can't come here: sandboxes have no network, and the egress
proxy refuses addresses of this machine.

A user can share with the agent what the app offers, at our page (`sandbox.app_shares`). Nothing else of it reaches agents.

The app never is a window's own page: there, a script could send what was typed anywhere by opening an address. In the
frame it opens nothing but itself, since our page's policy names the only origin that the frame may show.

Only heads are parsed here. Bodies pass through unchanged, bounded in size and time, and nothing is logged.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from iact.core.errors import ModuleLost
from iact.sandbox import app_page
from iact.sandbox.app_shares import AppShares, Take
from iact.sandbox.socket_folder import CheckedSocket

Lookup = Callable[[str], CheckedSocket | None]
"""Opens the socket of the app with a given name; None if there is no such app."""

_HEAD: Final = 32 * 1024
_LARGEST: Final = 64 << 20
_QUIET: Final = 60.0
"""Seconds without a byte after which a connection is closed."""
_CONNECTIONS: Final = 64
_HOST: Final = re.compile(rb"(app\.)?([0-9a-f]{16})\.localhost:(\d{1,5})")
_TARGET: Final = re.compile(rb"GET (/[!-~]*) HTTP/1\.[01]")
_SHARES: Final = re.compile(rb"(GET|POST) %b HTTP/1\.[01]" % re.escape(app_page.SHARE.encode()))
_LENGTH_OF_FORM: Final = re.compile(rb"[1-9]\d{0,3}")
"""Our form has some hundred bytes."""

_NOT_FOUND: Final = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

_FRAMES: Final = frozenset({b"iframe", b"frame"})
_WORKERS: Final = frozenset({b"serviceworker", b"sharedworker", b"worker"})
"""What a browser says that it wants a script for if pages of the app could later come from that script."""

_DROPPED_ASKED: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"upgrade", b"te", b"expect"}
)
_KEPT_ANSWERED: Final = frozenset(
    {
        b"accept-ranges",
        b"content-disposition",
        b"content-encoding",
        b"content-language",
        b"content-length",
        b"content-range",
        b"content-type",
        b"date",
        b"etag",
        b"last-modified",
        b"location",
        b"set-cookie",
        b"transfer-encoding",
        b"vary",
    }
)
"""The headers of an app that a browser gets. Others make it report, connect or go elsewhere."""


@dataclass(frozen=True, slots=True)
class Addressed:
    """Whom a request is for."""

    name: str
    """The app's name."""
    framed: bool
    """Whether it is for the app in the frame, or else for our page around it."""


class AppOrigin:
    """Listens on the loopback address once it is open.

    `lookup` finds the apps; `take` takes what users share at them.
    """

    def __init__(self, lookup: Lookup, take: Take) -> None:
        self._lookup = lookup
        self._shares = AppShares(take)
        self._server: asyncio.Server | None = None
        self._open = 0

    @property
    def port(self) -> int:
        """The port in use; known once it is open."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def open(self) -> None:
        """Start to listen, unless already listening.

        Raises:
            OSError: no port is available.
        """
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_HEAD)

    async def close(self) -> None:
        """Stop listening."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                if self._open <= _CONNECTIONS:
                    await self._answer(reader, writer)
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one request and its answer; then the connection ends."""
        async with asyncio.timeout(_QUIET):
            first, headers = split(await reader.readuntil(b"\r\n\r\n"))

        asked = addressed(headers, self.port)
        found = self._found(asked.name) if asked is not None else None
        if asked is None or found is None:
            writer.write(_NOT_FOUND)
            await writer.drain()
            return

        if asked.framed and may_reach(headers):
            await self._pass_to(found, first, headers, reader, writer, asked.name)
            return

        try:
            shares = None if asked.framed else _SHARES.fullmatch(first)
            if shares is None:
                answer = self._page(asked, first)
            elif shares[1] == b"GET":
                answer = await self._shares.ask(asked.name, found)
            elif is_from_our_page(headers, asked.name, self.port):
                answer = await self._shares.agree(asked.name, found, await _form(headers, reader))
            else:
                answer = _NOT_FOUND
        finally:
            found.close()
        writer.write(answer)
        await writer.drain()

    def _found(self, name: str) -> CheckedSocket | None:
        try:
            return self._lookup(name)
        except ModuleLost:
            return None

    def _page(self, asked: Addressed, first: bytes) -> bytes:
        """Our page around an app, or the way to it for a window that asks for the app itself."""
        match = _TARGET.fullmatch(first)
        if match is None:
            return _NOT_FOUND

        target = match[1].decode("ascii")
        if asked.framed:
            return app_page.moved(asked.name, self.port, target)
        return app_page.page(asked.name, self.port, target)

    async def _pass_to(
        self,
        found: CheckedSocket,
        first: bytes,
        headers: list[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        name: str,
    ) -> None:
        try:
            path = found.target.removeprefix("unix://")
            app_reader, app_writer = await asyncio.open_unix_connection(path, limit=_HEAD)
        finally:
            found.close()
        try:
            app_writer.write(asked_of_app(first, headers))
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(_pass_on(reader, app_writer))
                async with asyncio.timeout(_QUIET):
                    status, answered = split(await app_reader.readuntil(b"\r\n\r\n"))
                writer.write(answered_by_app(status, answered, app_page.headers_of_app(name, self.port)))
                await _pass_on(app_reader, writer)
                sending.cancel()
        except* (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the app ended, or the user went away: the connection ends as well
        finally:
            app_writer.close()


def split(head: bytes) -> tuple[bytes, list[bytes]]:
    """Split the head of a request or an answer into its first line and its headers."""
    first, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    return first, headers


def _named(line: bytes) -> bytes:
    return line.partition(b":")[0].strip().lower()


def _values(headers: Sequence[bytes], name: bytes) -> list[bytes]:
    return [line.partition(b":")[2].strip().lower() for line in headers if _named(line) == name]


def addressed(headers: Sequence[bytes], port: int) -> Addressed | None:
    """Whom a request is for, by its only Host header, which must have our port."""
    hosts = _values(headers, b"host")
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if match is None or int(match[3]) != port:
        return None
    return Addressed(match[2].decode(), framed=match[1] is not None)


def may_reach(headers: Sequence[bytes]) -> bool:
    """Whether a browser asks for something within our frame: for the frame's page, or for what a page in it loads.

    A window's own page is not (it could open any address), nor is a script that could answer for the app without our
    headers. A browser that says nothing is one that doesn't say when it opens a window.
    """
    wanted = _values(headers, b"sec-fetch-dest")
    if len(wanted) != 1 or wanted[0] in _WORKERS or b"service-worker" in map(_named, headers):
        return False
    navigates = _values(headers, b"sec-fetch-mode") in ([], [b"navigate"])
    return wanted[0] in _FRAMES if navigates else wanted[0] != b"document"


def is_from_our_page(headers: Sequence[bytes], name: str, port: int) -> bool:
    """Whether our page around the app sent a request, by what a browser says of it."""
    ours = app_page.page_origin(name, port).encode()
    return _values(headers, b"origin") == [ours] and _values(headers, b"sec-fetch-site") in (
        [],
        [b"same-origin"],
    )


async def _form(headers: Sequence[bytes], reader: asyncio.StreamReader) -> bytes:
    """The fields that a page of ours sends."""
    lengths = _values(headers, b"content-length")
    if len(lengths) != 1 or not _LENGTH_OF_FORM.fullmatch(lengths[0]):
        return b""
    async with asyncio.timeout(_QUIET):
        return await reader.readexactly(int(lengths[0]))


def asked_of_app(first: bytes, headers: Sequence[bytes]) -> bytes:
    """The head of a request as the app gets it."""
    kept = [line for line in headers if _named(line) not in _DROPPED_ASKED]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


def answered_by_app(first: bytes, headers: Sequence[bytes], added: Sequence[bytes]) -> bytes:
    """The head of an app's answer as the browser gets it, with our headers."""
    kept = [line for line in headers if _named(line) in _KEPT_ANSWERED]
    return b"\r\n".join([first, *kept, *added, b"", b""])


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward bytes until they end, become too many, or stop coming for too long."""
    passed = 0
    while passed < _LARGEST:
        async with asyncio.timeout(_QUIET):
            data = await reader.read(65536)
        if not data:
            return
        passed += len(data)
        writer.write(data)
        await writer.drain()
