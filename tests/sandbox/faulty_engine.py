"""A door to the real engine that goes wrong at one request, or from one request on, in each way that engines do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

Fault: TypeAlias = Literal["fails", "hangs", "loses", "swallows"]
"""`fails`: an error instead of doing it. `hangs`: neither done nor answered. `loses`: done, and the connection ends
without the answer. `swallows`: done, and never answered."""

FAULTS: Final[tuple[Fault, ...]] = ("fails", "hangs", "loses", "swallows")

_ENGINE: Final = "/var/run/docker.sock"
_FAILURE: Final = b'{"message":"driver failed"}\n'
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass
class FaultyEngine:
    """The door at `path`. Nothing goes wrong while `fault` is None."""

    path: Path
    fault: Fault | None = None
    at: int = 0
    """The number of the request that goes wrong, counted from 1 since `begin`."""
    lasting: bool = False
    """Whether all requests after that go wrong, too."""
    asked: list[str] = field(default_factory=list)
    """Method and path of each request since `begin`."""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def begin(self, fault: Fault | None = None, at: int = 0, *, lasting: bool = False) -> None:
        """Count anew, and go wrong at request `at`."""
        self.fault = fault
        self.at = at
        self.lasting = lasting
        self.asked = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Listen, until the end of the block."""
        server = await asyncio.start_unix_server(self._serve, self.path)
        try:
            yield
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            self.path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far_reader, far_writer = await asyncio.open_unix_connection(_ENGINE)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._request(reader, writer, far_reader, far_writer):
                    pass
        finally:
            writer.close()
            far_writer.close()
            self._tasks.discard(task)

    async def _request(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> bool:
        """Pass one request on, or not. Whether another one may come on this connection."""
        request = await _message(reader)
        fault = self._next(request)
        match fault:
            case "fails":
                head = f"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: {len(_FAILURE)}\r\n\r\n"
                writer.write(head.encode() + _FAILURE)
                await writer.drain()
                return True
            case "hangs":
                await reader.read()
                return False

        far_writer.write(request)
        await far_writer.drain()
        answer = await far_reader.readuntil(b"\r\n\r\n")
        match fault:
            case "loses":
                return False
            case "swallows":
                await reader.read()
                return False

        writer.write(answer)
        return await self._pass_body(answer, reader, writer, far_reader, far_writer)

    async def _pass_body(
        self,
        answer: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> bool:
        length = _LENGTH.search(answer)
        if length is not None:
            writer.write(await far_reader.readexactly(int(length[1])))
            await writer.drain()
            return True
        if b"chunked" in answer.lower():
            while True:
                size = await far_reader.readuntil(b"\r\n")
                writer.write(size + await far_reader.readexactly(int(size, 16) + 2))
                await writer.drain()
                if int(size, 16) == 0:
                    return True
        if answer.startswith(b"HTTP/1.1 101"):
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, far_writer))
                both.create_task(_copy(far_reader, writer))
            return False
        return b" 204 " in answer or b" 304 " in answer

    def _next(self, request: bytes) -> Fault | None:
        method, path, _ = request.split(b" ", 2)
        self.asked.append(f"{method.decode()} {re.sub('[0-9a-f]{12,}', 'ID', path.decode())}")
        number = len(self.asked)
        due = number >= self.at if self.lasting else number == self.at
        return self.fault if due else None


async def _message(reader: asyncio.StreamReader) -> bytes:
    """One whole request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return head + (await reader.readexactly(int(length[1])) if length is not None else b"")


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()
