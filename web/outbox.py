"""The sending side of a websocket: sends frames, and disconnects clients that don't read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Final

from websockets.asyncio.server import ServerConnection

from iact.web.wire.answers import Record
from iact.web.wire.news import ErrorAnswer, News

_LAST_WORDS: Final = 1.0
"""Seconds that a disconnected client has to acknowledge the close."""


_AT_ONCE: Final = 256 * 1024
"""Bytes that are encoded, or handed over, before others have their turn."""


async def _encoded(message: Mapping[str, object]) -> bytes:
    """A message as JSON. The rows of a long list are encoded one by one: together they can be many megabytes."""
    rows = message.get("list")
    if not isinstance(rows, list) or len(message) == 1:
        return _json(message)
    parts, fresh = [], 0
    for row in rows:
        parts.append(_json(row))
        fresh += len(parts[-1])
        if fresh > _AT_ONCE:
            fresh = 0
            await asyncio.sleep(0)
    head = _json({name: value for name, value in message.items() if name != "list"})
    return b'%s,"list":[%s]}' % (head[:-1], b",".join(parts))


def _json(value: object) -> bytes:
    # A text frame can't contain lone surrogates; they become "?".
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _cut(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _AT_ONCE] for at in range(0, len(data), _AT_ONCE))


class SlowReader(Exception):
    """The client does not read what it is sent; its connection has been closed."""


class Outbox:
    """Sends messages. `timeout`: seconds that a message may wait for the client to read."""

    def __init__(self, socket: ServerConnection, *, timeout: float) -> None:
        self._socket = socket
        self._timeout = timeout

    async def send(self, message: News) -> None:
        """Send news.

        Raises:
            SlowReader: the client did not read in time.
            ConnectionClosed: the client has left.
        """
        await self._send(message)

    async def send_record(self, message: Record) -> None:
        """Send a record; raises as `send` does."""
        await self._send(message)

    async def ok(self, identity: str | int | None, answer: Mapping[str, object]) -> None:
        """Answer a request that was carried out; raises as `send` does."""
        await self._send({"type": "ok", "id": identity, **answer})

    async def _send(self, message: Mapping[str, object]) -> None:
        data = await _encoded(message)
        try:
            async with asyncio.timeout(self._timeout):
                # A long message is sent in fragments, so that the client takes one before the next is copied.
                pieces = data if len(data) <= _AT_ONCE else _cut(data)
                await self._socket.send(pieces, text=True)
        except TimeoutError as error:
            self._socket.transport.abort()
            raise SlowReader from error

    async def error(self, identity: str | int | None, code: str, message: str) -> None:
        """Answer a message with an error; `message` is one sentence for people."""
        answer: ErrorAnswer = {"type": "error", "id": identity, "code": code, "message": message}
        await self._send(answer)

    async def cut(self, code: int, reason: str) -> None:
        """Close with a reason, without waiting long for the client to agree."""
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._socket.close(code, reason)
        except TimeoutError:
            self._socket.transport.abort()
