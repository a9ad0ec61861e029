"""The public agent card, and the answers to JSON-RPC requests."""

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
    """Serves the two routes."""

    def __init__(self, access: Access) -> None:
        # Its log lines contain the requests, which must not be logged. The handler logs bugs itself.
        logging.getLogger("a2a.server.routes").setLevel(logging.CRITICAL)
        self._dispatcher = JsonRpcDispatcher(SessionTasks(access), _ContextBuilder())

    def card(self, address: str) -> Response:
        """The agent card. `address`: the address for requests, as seen by the client that asks for the card."""
        return JSONResponse(agent_card_to_dict(card_at(address)), headers={"Cache-Control": "no-cache"})

    async def ask(self, request: Request) -> Response:
        """Answer a request from an authenticated user."""
        body = await body_of(request)

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        return await self._dispatcher.handle_requests(Request(request.scope, receive))
