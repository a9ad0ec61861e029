"""Offers the sandbox's egress socket as an ordinary HTTP proxy inside the container.

The sandbox mounts a unix socket, behind which its proxy stands, and names this address in the usual
environment variables; programs know proxies at TCP addresses only. All decisions are made on the far side.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from pathlib import Path
from typing import Final

SOCKET: Final = Path("/run/egress/egress.sock")
HOST: Final = "127.0.0.1"
PORT: Final = 3128
_CHUNK: Final = 64 * 1024


async def offer(socket: Path = SOCKET, port: int = PORT) -> asyncio.Server | None:
    """Listen on the loopback address and pass everything on to `socket`; None if there is no such socket.

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
    """Whether `host` can be reached; the far side may have to ask a person first, for whom programs do not wait as long."""
    try:
        async with asyncio.timeout(within):
            reader, writer = await asyncio.open_unix_connection(socket, limit=_CHUNK)
            try:
                name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                writer.write(f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode("ascii"))
                return (await reader.readline()).split(b" ")[1:2] == [b"200"]
            finally:
                writer.close()
    except (OSError, UnicodeError):  # there is no way out, or it took too long
        return False


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, socket: Path) -> None:
    try:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_unix_connection(socket, limit=_CHUNK)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_one_way(reader, far_writer))
                    group.create_task(_one_way(far_reader, writer))
            finally:
                far_writer.close()
    finally:
        writer.close()


async def _one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes until it ends; a connection that breaks is an end too."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
