"""Streamed responses, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import anyio
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class EventResponse(StreamingResponse):
    """A stream of events. However it ends, even before the first event, `end` is awaited and can't be cancelled."""

    def __init__(self, lines: AsyncGenerator[str, None], end: Callable[[], Awaitable[None]]) -> None:
        self._lines = lines
        self._end = end
        super().__init__(lines, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with aclosing(self._lines):
                await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):  # a client that disconnected has cancelled this
                await self._end()
