"""A small internet for tests: names, and one server of ours behind every address that a name leads to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from iact.sandbox.egress import EgressBounds, EgressLine, Outside

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

PUBLIC = "93.184.216.34"


@dataclass(slots=True)
class Internet:
    """`names`: addresses by name. `dialled`: what the proxy connected to; `lines`: what it reported."""

    names: Mapping[str, Sequence[str]]
    bounds: EgressBounds
    port: int = 0
    dialled: list[tuple[str, int]] = field(default_factory=list)
    lines: list[EgressLine] = field(default_factory=list)

    @property
    def outside(self) -> Outside:
        return Outside(self.lines.append, self.bounds, self.resolve, self.dial)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        if host not in self.names:
            raise OSError("no such name")
        return self.names[host]

    async def dial(self, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.dialled.append((address, port))
        return await asyncio.open_connection("127.0.0.1", self.port)


@asynccontextmanager
async def internet(
    serve: Serve, names: Mapping[str, Sequence[str]], *, bounds: EgressBounds | None = None
) -> AsyncIterator[Internet]:
    """An internet in which `serve` answers everywhere."""
    made = Internet(names, bounds or EgressBounds())
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Gives back what it gets."""
    try:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()
