"""Chroma's own server, and a way to it that can be stopped."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def chroma(place: Path) -> Iterator[str]:
    """A server of Chroma's own."""
    port = free_port()
    command: list[str] = [
        str(Path(sys.executable).with_name("chroma")),
        "run",
        "--path",
        str(place),
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 90
            while not _listening(port):
                assert time.monotonic() < until
                assert server.poll() is None
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _listening(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def stoppable(address: str) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A way to the server at `address`, by which nothing comes through while the event is cleared."""
    target, flows = urlsplit(address), asyncio.Event()
    flows.set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(pass_on(reader, forth), pass_on(back, writer))

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flows
    finally:
        flows.set()
        server.close()
