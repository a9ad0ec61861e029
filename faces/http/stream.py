"""Streamed responses, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

import anyio
from starlette._utils import create_collapsing_task_group
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

SILENCE: Final = 10.0
"""Seconds without an event after which a comment is sent. Proxies end connections on which nothing comes for a minute."""
_COMMENT: Final = b": still at work\n\n"


class EventResponse(StreamingResponse):
    """A stream of events, with comments while none come.

    However it ends, even before the first event, `end` is awaited and can't be cancelled.
    """

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

    async def stream_response(self, send: Send) -> None:
        """Send the events, and comments between them when there are none for a while."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sending = anyio.Lock()
        last = anyio.current_time()

        async def send_chunk(chunk: bytes) -> None:
            nonlocal last
            async with sending:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                last = anyio.current_time()

        async def comment() -> None:
            while True:
                await anyio.sleep_until(last + SILENCE)
                if anyio.current_time() >= last + SILENCE:
                    await send_chunk(_COMMENT)

        async with create_collapsing_task_group() as group:
            group.start_soon(comment)
            async for line in self._lines:
                await send_chunk(line.encode())
            group.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
