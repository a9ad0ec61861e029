"""Reaches a module's socket through `exec` in its container, where a socket can't be shared.

Some engines run containers in isolation that no unix socket passes: in a virtual machine (Docker Desktop, Kata), or
under a gVisor that was registered without sockets. There the core dials a socket of ours, and for each connection the
engine starts a small relay in the container (`relay`), whose standard streams carry the same bytes. No port is
published and the container has no network, as always.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import docker
from docker.models.containers import Container

from iact.core.errors import SandboxUnavailable
from iact.core.ports import JSON
from iact.sandbox import socket_folder
from iact.sandbox.docker.engine import DEFAULT, EngineFailure
from iact.sandbox.limits import SOCKET_FOLDER
from iact.sandbox.socket_folder import SOCKET
from iact.sandbox.threads import in_thread

_CHUNK: Final = 64 * 1024
_CONNECTIONS: Final = 8
"""Concurrent connections: the core needs one, and one for each health check."""
_HEADER: Final = 8
"""Bytes that the engine puts before each piece of output."""
_OUTPUT: Final = 1
"""The engine's number of the stream that carries standard output."""


class Stdio:
    """Listens in `folder`, as the module would, and connects to the socket in `container`, until it is closed."""

    def __init__(self, container: Container, folder: Path) -> None:
        self._folder = folder
        self._container = container
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Start to listen.

        Raises:
            OSError: the socket can't be created.
        """
        self._server = await socket_folder.listen(self._folder, SOCKET, self._serve)

    async def close(self) -> None:
        """Stop listening and end all connections."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        self._connections.add(this)
        try:
            if len(self._connections) <= _CONNECTIONS:
                with suppress(
                    OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, *EngineFailure
                ):
                    await self._join(reader, writer)
        except asyncio.CancelledError:
            pass  # from `close`, which waits for it
        finally:
            self._connections.discard(this)
            writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward bytes in both directions until either end has no more."""
        identity = await in_thread(_prepare, self._container)
        far_reader, far_writer = await _dial()
        try:
            await _begin(identity, far_reader, far_writer)
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(_in(reader, far_writer))
                await _out(far_reader, writer)
                sending.cancel()
        finally:
            far_writer.close()


async def input_of(container: Container) -> asyncio.StreamWriter:
    """Connect to the standard input of `container`, which need not run yet and was created with an open one.

    Raises:
        OSError, asyncio.IncompleteReadError: the engine doesn't connect us.
    """
    reader, writer = await _dial()
    try:
        await _upgrade(f"/containers/{container.id}/attach?stream=1&stdin=1", {}, reader, writer)
    except BaseException:
        writer.close()
        raise
    return writer


def possible() -> bool:
    """Whether we can speak to the engine the way it listens: on a unix socket, or on TCP without TLS."""
    scheme = urlsplit(os.environ.get("DOCKER_HOST", "") or f"unix://{DEFAULT}").scheme
    return scheme == "unix" or (scheme in ("tcp", "http") and not os.environ.get("DOCKER_TLS_VERIFY"))


def frames(header: bytes) -> tuple[int, int]:
    """Decode the engine's eight bytes before a piece of output: the stream and the length."""
    return header[0], int.from_bytes(header[4:8], "big")


@cache
def _command() -> Sequence[str]:
    source = Path(__file__).with_name("relay.py").read_text(encoding="utf-8")
    return ("python3", "-I", "-S", "-c", source, f"{SOCKET_FOLDER}/{SOCKET}")


def _prepare(container: Container) -> str:
    """Create a relay to the module's socket, without starting it. Return its id. Blocks."""
    client = container.client
    assert isinstance(client, docker.DockerClient)
    made = client.api.exec_create(container.id, list(_command()), stdin=True, stdout=True, stderr=False)
    return str(made["Id"])


async def _dial() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(os.environ.get("DOCKER_HOST", "") or f"unix://{DEFAULT}")
    if address.scheme == "unix":
        return await asyncio.open_unix_connection(address.path, limit=_CHUNK)
    if not possible():
        raise SandboxUnavailable(
            "The connection to the engine can't carry a module's data; use the engine's unix socket."
        )
    return await asyncio.open_connection(address.hostname, address.port or 2375, limit=_CHUNK)


async def _begin(identity: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ask the engine to start the relay and to make this connection its standard streams."""
    await _upgrade(f"/exec/{identity}/start", {"Detach": False, "Tty": False}, reader, writer)


async def _upgrade(
    path: str, request: JSON, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Ask the engine to make this connection the stream of `path`.

    This is done here because the client's own method may mistake the first bytes of the stream for part of the answer.
    """
    body = json.dumps(request).encode("ascii")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
        f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode("ascii") + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    if answer.split(maxsplit=2)[1] not in (b"101", b"200"):
        raise ConnectionRefusedError("the engine did not give us the stream")


async def _in(reader: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
    """Forward bytes to the relay. A broken connection ends only this direction; the other one decides the end."""
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            far.write(data)
            await far.drain()
        far.write_eof()


async def _out(far: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward the relay's output, which comes in pieces, each preceded by eight bytes of the engine's."""
    with suppress(OSError, asyncio.IncompleteReadError):
        while True:
            stream, left = frames(await far.readexactly(_HEADER))
            while left:
                data = await far.readexactly(min(left, _CHUNK))
                left -= len(data)
                if stream == _OUTPUT:
                    writer.write(data)
                    await writer.drain()
