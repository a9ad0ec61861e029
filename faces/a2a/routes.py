"""The routes of A2A. Its packages are loaded with the first request, so they cost nothing if A2A is not used."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from iact.faces.http.access import Access
from iact.faces.http.server import not_installed

if TYPE_CHECKING:
    from iact.faces.a2a.service import Service

_PATH: Final = "/a2a"


def routes(access: Access) -> Sequence[BaseRoute]:
    """See `faces.http.server.Face`."""
    made = _A2A(access)
    return (
        Route("/.well-known/agent-card.json", made.card, methods=["GET"]),
        Route(_PATH, made.ask, methods=["POST"]),
    )


class _A2A:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._service: Service | None = None

    async def card(self, request: Request) -> Response:
        service = await self._loaded()
        return (
            service.card(str(request.url.replace(path=_PATH, query="", fragment=""))) if service else _MISSING
        )

    async def ask(self, request: Request) -> Response:
        await self._access.principal(
            request, "greet"
        )  # before reading any part of an unknown sender's request
        service = await self._loaded()
        return await service.ask(request) if service else _MISSING

    async def _loaded(self) -> Service | None:
        if self._service is None and find_spec("a2a") is not None and find_spec("sse_starlette") is not None:
            made = await asyncio.to_thread(self._load)
            self._service = (
                self._service or made
            )  # two requests can arrive at the same time and must share one service
        return self._service

    def _load(self) -> Service:
        from iact.faces.a2a.service import Service

        return Service(self._access)


_MISSING: Final = not_installed("A2A", "a2a")
