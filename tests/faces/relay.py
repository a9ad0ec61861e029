"""A relay in front of a server of faces, for checkers that can't send a token. It only adds a token."""

from __future__ import annotations

import asyncio
import re
import socket
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Final
from urllib.parse import urlsplit

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@asynccontextmanager
async def relayed(url: str, token: str) -> AsyncIterator[str]:
    """Its address. Where a client names the relay, the server hears its own name; any other name it hears as it is."""
    behind = urlsplit(url).port
    assert behind is not None
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def rewritten(head: bytes) -> bytes:
            named = re.sub(
                rb"(\r\n(?:host|origin): [^\r]*):%d\r" % port, rb"\1:%d\r" % behind, head, flags=re.I
            )
            return named[:-2] + b"Authorization: Bearer " + token.encode() + b"\r\n\r\n"

        async def relay(reader: StreamReader, writer: StreamWriter) -> None:
            answers, server = await asyncio.open_connection("127.0.0.1", behind)
            with closing(writer), closing(server):
                async with asyncio.TaskGroup() as group:
                    back = group.create_task(_copied(answers, writer))
                    try:
                        while True:
                            head = await reader.readuntil(b"\r\n\r\n")
                            length = _LENGTH.search(head)
                            server.write(
                                rewritten(head) + await reader.readexactly(int(length[1]) if length else 0)
                            )
                            await server.drain()
                    except (IncompleteReadError, ConnectionError):
                        back.cancel()

        async with await asyncio.start_server(relay, sock=listening) as relaying:
            yield f"http://127.0.0.1:{port}"
            relaying.close()


async def _copied(reader: StreamReader, writer: StreamWriter) -> None:
    while some := await reader.read(1 << 16):
        writer.write(some)
        await writer.drain()
    writer.close()
