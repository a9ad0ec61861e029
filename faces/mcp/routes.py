"""The route of MCP over streamable HTTP. Its packages are loaded with the first request, so they cost nothing if unused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from iact.faces.http.access import Access
from iact.faces.http.server import background_of, not_installed

if TYPE_CHECKING:
    from iact.faces.mcp.streamable_http import StreamableHTTP


def routes(access: Access, *, intent: str = "1", scope: str | None = None) -> Sequence[BaseRoute]:
    """See `faces.http.server.Face`. `intent`, `scope`: for sessions that clients start."""
    return (Route("/mcp", _MCP(access, intent, scope)),)


class _MCP:
    """An ASGI application, because the SDK sends its own responses: immediate, streamed, or as a stream that stays open."""

    def __init__(self, access: Access, intent: str, scope: str | None) -> None:
        self._access = access
        self._intent = intent
        self._scope = scope
        self._service: StreamableHTTP | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        who = await self._access.principal(
            request, "greet"
        )  # before reading any part of an unknown sender's request
        if find_spec("mcp") is None:
            await _MISSING(scope, receive, send)
            return
        service = await self._loaded(scope)
        await service.ask(who, scope, receive, send)

    async def _loaded(self, scope: Scope) -> StreamableHTTP:
        if self._service is None:
            made = await asyncio.to_thread(self._load)
            if self._service is None:  # two requests can arrive at the same time and must share one service
                self._service = made
                background_of(scope).begin(made.run())
        await self._service.ready.wait()
        return self._service

    def _load(self) -> StreamableHTTP:
        from iact.faces.mcp.ask import NewSessions
        from iact.faces.mcp.streamable_http import StreamableHTTP

        return StreamableHTTP(self._access, NewSessions(self._intent, self._scope))


_MISSING: Final = not_installed("MCP", "mcp")
