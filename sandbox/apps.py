"""Where the user opens the apps that agents serve: a separate origin for each, different from our page's.

An app is `http://<its name>.localhost:<port>/`. Browsers resolve every name below `localhost` to this machine and treat
each as a separate origin, so an app can reach neither our page nor another app's storage or cookies. Its name is
sixteen random hex digits; without the name it can't be reached. Agents can't come here: sandboxes have no network, and
the egress proxy refuses addresses of this machine.

Only heads are parsed here. Bodies pass through unchanged, bounded in size and time, and nothing is logged.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from iact.core.errors import ModuleLost
from iact.sandbox.socket_folder import CheckedSocket

Lookup = Callable[[str], CheckedSocket | None]
"""Opens the socket of the app with a given name; None if there is no such app."""

_HEAD: Final = 32 * 1024
_LARGEST: Final = 64 << 20
_QUIET: Final = 60.0
"""Seconds without a byte after which a connection is closed."""
_CONNECTIONS: Final = 64
_HOST: Final = re.compile(rb"([0-9a-f]{16})\.localhost:(\d+)")
_ADDED: Final = (
    b"Content-Security-Policy: default-src 'self' 'unsafe-inline' data:; form-action 'self'; base-uri 'none'; "
    b"frame-ancestors 'none'; object-src 'none'",
    b"Cache-Control: no-store",
    b"Referrer-Policy: no-referrer",
    b"X-Content-Type-Options: nosniff",
    b"Cross-Origin-Resource-Policy: same-origin",
    b"Cross-Origin-Opener-Policy: same-origin",
    b"Connection: close",
)
_DROPPED_ASKED: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"upgrade", b"te", b"expect"}
)
_DROPPED_ANSWERED: Final = frozenset(
    {line.partition(b":")[0].lower() for line in _ADDED}
    | {
        b"keep-alive",
        b"upgrade",
        b"strict-transport-security",
        b"access-control-allow-origin",
        b"clear-site-data",
    }
)


class AppOrigin:
    """Listens on the loopback address once it is open; `lookup` finds the apps."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
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
        name = app_of(headers, self.port)
        try:
            found = self._lookup(name) if name else None
        except ModuleLost:
            found = None
        if found is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        try:
            path = found.target.removeprefix("unix://")
            app_reader, app_writer = await asyncio.open_unix_connection(path, limit=_HEAD)
        finally:
            found.close()
        try:
            app_writer.write(joined(first, headers, _DROPPED_ASKED, (b"Connection: close",)))
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(_pass_on(reader, app_writer))
                async with asyncio.timeout(_QUIET):
                    status, answered = split(await app_reader.readuntil(b"\r\n\r\n"))
                writer.write(joined(status, answered, _DROPPED_ANSWERED, _ADDED))
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


def app_of(headers: list[bytes], port: int) -> str | None:
    """The name of the app that a request is for, from its only Host header, which must have our port."""
    hosts = [
        value.strip()
        for name, _, value in (line.partition(b":") for line in headers)
        if name.lower() == b"host"
    ]
    match = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
    return match[1].decode() if match and int(match[2]) == port else None


def joined(first: bytes, headers: list[bytes], dropped: frozenset[bytes], added: tuple[bytes, ...]) -> bytes:
    """Join a head again, without the `dropped` headers and with the `added` ones."""
    kept = [line for line in headers if line.partition(b":")[0].strip().lower() not in dropped]
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
