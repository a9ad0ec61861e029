"""The agent card, which everybody may read, and the answers to requests, which come as JSON-RPC."""

from __future__ import annotations

import logging

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message

from iact.faces.a2a.card import card_at
from iact.faces.a2a.handler import REQUEST, SessionTasks
from iact.faces.http.access import Access, body_of


class _ContextBuilder(DefaultServerCallContextBuilder):
    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state[REQUEST] = request
        return context


class Service:
    """Answers for the two addresses."""

    def __init__(self, access: Access) -> None:
        # What was sent is told in its log lines, and no log of ours has that; what is a bug the handler tells itself.
        logging.getLogger("a2a.server.routes").setLevel(logging.CRITICAL)
        self._dispatcher = JsonRpcDispatcher(SessionTasks(access), _ContextBuilder())

    def card(self, address: str) -> Response:
        """The agent card. `address`: where requests are taken, as whoever asks for it reached it."""
        return JSONResponse(agent_card_to_dict(card_at(address)), headers={"Cache-Control": "no-cache"})

    async def ask(self, request: Request) -> Response:
        """Answer a request of somebody who is known."""
        body = await body_of(request)

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        return await self._dispatcher.handle_requests(Request(request.scope, receive))
