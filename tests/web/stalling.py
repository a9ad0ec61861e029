"""A TCP proxy whose line can swallow bytes in either direction and stay open, as a stalled tunnel does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

Direction = Literal["up", "down"]
"""From the client to the server, or back."""


class StallingProxy:
    """Passes connections on to `port`. What comes in a direction of `swallowed` is read and lost."""

    def __init__(self) -> None:
        self.port = 0
        self.swallowed: set[Direction] = set()
        self.opened = 0
        """How many connections there were so far."""
        self._doomed: set[tuple[int, Direction]] = set()
        """Connections that have lost bytes in a direction: what comes later would make no sense to their reader."""
        self._lines: set[asyncio.Task[None]] = set()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        number = self.opened
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.close()
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(number, "up", reader, server_writer))
                group.create_task(self._pass(number, "down", server_reader, writer))
        finally:
            server_writer.transport.abort()

    async def _pass(
        self, number: int, direction: Direction, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while data := await reader.read(1 << 16):
                if direction in self.swallowed:
                    self._doomed.add((number, direction))
                if (number, direction) not in self._doomed:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        # A tunnel that swallows bytes doesn't pass on either that one end has left.
        if direction not in self.swallowed and (number, direction) not in self._doomed:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        try:
            await self._connect(reader, writer)
        except asyncio.CancelledError:
            pass  # asyncio would log it as an error of the callback
        finally:
            self._lines.discard(task)
            writer.transport.abort()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Listen at the address that it gives, until the end."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        try:
            yield f"http://{host}:{port}"
        finally:
            server.close()
            lines = list(self._lines)
            for connection in lines:
                connection.cancel()
            await asyncio.gather(*lines, return_exceptions=True)
