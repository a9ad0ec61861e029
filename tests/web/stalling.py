"""A TCP proxy whose line can swallow bytes in either direction and stay open, as a stalled tunnel does."""

from __future__ import annotations

import asyncio
from collections import Counter
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
        self.passed: Counter[Direction] = Counter()
        """The bytes that went in each direction."""
        self._swallows_from: dict[Direction, int] = {}
        self._doomed: set[tuple[int, Direction]] = set()
        """Connections that have lost bytes in a direction: what comes later would make no sense to their reader."""
        self._lines: set[asyncio.Task[None]] = set()

    def stall_at(self, point: int, *directions: Direction) -> None:
        """Swallow what comes in these directions, from byte `point` of each on."""
        self._swallows_from = dict.fromkeys(directions, point)

    def recover(self) -> None:
        """Pass everything on again. Connections that have lost bytes stay as they are."""
        self._swallows_from = {}
        self.swallowed = set()

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
                kept = self._kept(data, direction)
                if (number, direction) not in self._doomed:
                    writer.write(kept)
                    await writer.drain()
                if len(kept) < len(data):
                    self._doomed.add((number, direction))
        except OSError:
            pass
        # A tunnel that swallows bytes doesn't pass on either that one end has left.
        if direction not in self.swallowed and (number, direction) not in self._doomed:
            writer.close()

    def _kept(self, data: bytes, direction: Direction) -> bytes:
        """As much of what comes as is passed on. Where the line stalls within it, it stalls from then on."""
        point = self._swallows_from.get(direction)
        if direction in self.swallowed:
            return b""

        passed = self.passed[direction]
        self.passed[direction] += len(data)
        if point is None or passed + len(data) <= point:
            return data
        self.swallowed.add(direction)
        return data[: max(0, point - passed)]

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
