"""Offers the sandbox's egress socket as an ordinary HTTP proxy inside the container.

The sandbox mounts a unix socket with its proxy at the other end, and names this address in the usual environment
variables, because programs expect proxies at TCP addresses. All decisions are made at the other end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOCKET: Final = Path("/run/egress/egress.sock")
HOST: Final = "127.0.0.1"
PORT: Final = 3128
_CHUNK: Final = 64 * 1024


@dataclass(slots=True)
class Waiting:
    """How long connections have waited for an answer from the other end, which may have to ask a person first.

    A call's clock stops meanwhile, here as in the core. Only the module's own work counts.
    """

    _open: int = 0
    """How many wait now."""
    _since: float = 0
    """Since when at least one does."""
    _before: float = 0
    """Seconds for which at least one waited before that."""

    def seconds(self) -> float:
        """How long, so far, at least one connection was waiting."""
        if not self._open:
            return self._before
        return self._before + time.monotonic() - self._since

    @contextlib.contextmanager
    def connection(self) -> Iterator[None]:
        """Count a connection as waiting until it is answered or ends."""
        if not self._open:
            self._since = time.monotonic()
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._before += time.monotonic() - self._since


WAITING: Final = Waiting()
"""The waiting connections of this process."""


async def offer(socket: Path = SOCKET, port: int = PORT) -> asyncio.Server | None:
    """Listen on the loopback address and forward everything to `socket`. Return None if there is no such socket.

    Raises:
        OSError: the port is taken.
    """
    try:
        if not stat.S_ISSOCK(os.stat(socket).st_mode):
            return None
    except FileNotFoundError:
        return None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _pass_on(reader, writer, socket)

    return await asyncio.start_server(serve, HOST, port, limit=_CHUNK)


async def wait_for_way(host: str, port: int, within: float, socket: Path = SOCKET) -> bool:
    """Whether `host` can be reached. Waits while the other end asks a person, longer than most programs would."""
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        async with asyncio.timeout(within):
            reader, writer = await asyncio.open_unix_connection(socket, limit=_CHUNK)
            try:
                writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("ascii"))
                with WAITING.connection():
                    answer = await reader.readline()
                return answer.split(b" ")[1:2] == [b"200"]
            finally:
                writer.close()
    except (OSError, UnicodeError):  # there is no network access, or it took too long
        return False


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, socket: Path) -> None:
    """Forward a connection in both directions. It counts as waiting until the other end answers."""
    try:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_unix_connection(socket, limit=_CHUNK)
            try:
                with contextlib.ExitStack() as waits:
                    waits.enter_context(WAITING.connection())
                    async with asyncio.TaskGroup() as group:
                        group.create_task(_one_way(reader, far_writer))
                        group.create_task(_one_way(far_reader, writer, waits.close))
            finally:
                far_writer.close()
    finally:
        writer.close()


async def _one_way(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Callable[[], None] = lambda: None
) -> None:
    """Forward data until it ends; a broken connection counts as an end. `heard`: called whenever data arrives."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            heard()
            writer.write(data)
            await writer.drain()
        writer.write_eof()
