"""Answers whose body is made while it is sent, so that a large download takes little memory here.

The library sends an answer in one piece. Here the head and all pieces but the last are written to the connection first,
as fast as the client reads; the last one is returned to the library as the answer. A body that breaks off in the middle
ends the connection without its last chunk (RFC 9112, section 7.1), which browsers show as a failed download.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Response

from iact.core.errors import IactError

AT_ONCE: Final = 4
"""How many streams one server sends at a time; others wait."""

_log = logging.getLogger("iact.web")


class _Last(Response):
    """The end of a body; nothing is put in front of it."""

    def serialize(self) -> bytes:
        return bytes(self.body)


class Streams:
    """The streams of one server. `patience`: seconds that a client may take to read a piece."""

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._room = asyncio.Semaphore(AT_ONCE)
        self._under_way: set[ServerConnection] = set()

    def end(self) -> None:
        """Abort the streams in progress."""
        for connection in tuple(self._under_way):
            connection.transport.abort()

    async def send(
        self, connection: ServerConnection, head: Response, pieces: Callable[[], Iterator[bytes]]
    ) -> Response:
        """Send `head` and the pieces of `pieces`, which may block and raise `IactError`. Returns what the library
        should send."""
        self._under_way.add(connection)
        try:
            async with self._room:
                return await self._send(connection, head, pieces())
        finally:
            self._under_way.discard(connection)

    async def _send(self, connection: ServerConnection, head: Response, pieces: Iterator[bytes]) -> Response:
        try:
            piece = await asyncio.to_thread(_some, pieces)
            await self._write(connection, head.serialize())
            while piece:
                await self._write(connection, b"%x\r\n%b\r\n" % (len(piece), piece))
                piece = await asyncio.to_thread(_some, pieces)
            return _Last(head.status_code, head.reason_phrase, Headers(), b"0\r\n\r\n")
        except (IactError, OSError, TimeoutError) as error:
            _log.info("A download broke off (%s).", error or "the client reads too slowly")
            connection.transport.abort()
            return _Last(head.status_code, head.reason_phrase, Headers(), b"")
        finally:
            with suppress(ValueError):  # its thread is still advancing it, and ends it as well
                close = getattr(pieces, "close", None)
                if close is not None:
                    close()

    async def _write(self, connection: ServerConnection, data: bytes) -> None:
        if connection.transport.is_closing():
            raise ConnectionResetError("the client is gone")
        connection.transport.write(data)
        async with asyncio.timeout(self._patience):
            await connection.drain()


def _some(pieces: Iterator[bytes]) -> bytes:
    """The next piece that is not empty; empty at the end."""
    return next((piece for piece in pieces if piece), b"")
