"""The sending side of a websocket: frames out, and an end to clients that don't read."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from websockets.asyncio.server import ServerConnection

from web.records import Fields

_LAST_WORDS: Final = 1.0
"""Seconds for a client that is cut off to take note of it."""


class SlowReader(Exception):
    """The client does not read what it is sent; its connection is gone."""


class Line:
    """Sends messages. `timeout`: seconds that one may wait for the client to read."""

    def __init__(self, socket: ServerConnection, *, timeout: float) -> None:
        self._socket = socket
        self._timeout = timeout

    async def send(self, message: Fields) -> None:
        """Send one message.

        Raises:
            SlowReader: the client did not read in time.
            ConnectionClosed: it is gone.
        """
        # Lone surrogates can't stand in a text frame; they become "?".
        data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        try:
            async with asyncio.timeout(self._timeout):
                await self._socket.send(data, text=True)
        except TimeoutError as error:
            self._socket.transport.abort()
            raise SlowReader from error

    async def error(self, identity: str | int | None, code: str, message: str) -> None:
        """Answer a message with an error; `message` is one sentence for people."""
        await self.send({"type": "error", "id": identity, "code": code, "message": message})

    async def cut(self, code: int, reason: str) -> None:
        """Close, saying why, without waiting long for the client to agree."""
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._socket.close(code, reason)
        except TimeoutError:
            self._socket.transport.abort()
