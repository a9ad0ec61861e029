"""The routes: the agent card, which everybody may read, and the one address that takes requests as JSON-RPC."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message

from iact.faces.a2a.card import card_at
from iact.faces.a2a.handler import REQUEST, SessionTasks
from iact.faces.http.access import Access, body_of

_PATH: Final = "/a2a"


def routes(access: Access) -> Sequence[BaseRoute]:
    """As `faces.http.server.Face`."""
    # What was sent is told in its log lines, and no log of ours has that; what is a bug the handler tells itself.
    logging.getLogger("a2a.server.routes").setLevel(logging.CRITICAL)
    made = _A2A(access)
    return (
        Route("/.well-known/agent-card.json", made.card, methods=["GET"]),
        Route(_PATH, made.ask, methods=["POST"]),
    )


class _ContextBuilder(DefaultServerCallContextBuilder):
    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state[REQUEST] = request
        return context


class _A2A:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._dispatcher = JsonRpcDispatcher(SessionTasks(access), _ContextBuilder())

    async def card(self, request: Request) -> Response:
        address = str(request.url.replace(path=_PATH, query="", fragment=""))
        return JSONResponse(agent_card_to_dict(card_at(address)), headers={"Cache-Control": "no-cache"})

    async def ask(self, request: Request) -> Response:
        await self._access.principal(request, "greet")  # before a byte of a stranger's is read
        body = await body_of(request)

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        return await self._dispatcher.handle_requests(Request(request.scope, receive))
