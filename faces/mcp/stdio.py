"""The MCP server on standard input and output, as editors and chat programs start it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, cast

import anyio
from mcp.server.stdio import stdio_server

from iact.core.session.runtime import Runtime
from iact.faces.mcp.ask import NewSessions
from iact.faces.mcp.caller import OneCaller
from iact.faces.mcp.server import mcp_server

_LONGEST: Final = 64 << 20
"""The maximum number of bytes of a message."""


async def serve(runtime: Runtime, new: NewSessions) -> None:
    """Serve one client until it closes standard input. Standard output is reserved for the protocol."""
    server = mcp_server(OneCaller(runtime), new)
    async with _input() as lines, stdio_server(lines) as (read, write):
        await server.run(read, write, server.create_initialization_options())


class _Lines:
    """The lines of standard input for `stdio_server`. Unlike in a thread, waiting for a line can be cancelled."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await self._reader.readline():
            yield line.decode("utf-8", "replace")


@asynccontextmanager
async def _input() -> AsyncIterator[anyio.AsyncFile[str] | None]:
    """Take over standard input, so that no started program can read it. Yields None if the SDK must read it, as for a file."""
    reader = asyncio.StreamReader(limit=_LONGEST)
    with os.fdopen(os.dup(0), "rb", buffering=0) as own:
        try:
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), own
            )
        except (ValueError, PermissionError):
            yield None
            return
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        try:
            yield cast("anyio.AsyncFile[str]", _Lines(reader))
        finally:
            transport.close()
