"""MCP by streamable HTTP: the official SDK's transport, between who sends a request and our server.

In revision 2026-07-28 a request is a POST of its own and nothing is kept between two of them: a client that hangs up has
given up its call. Older revisions begin with a handshake, and the SDK keeps a session for each that shook hands, for the
token alone that it came with.
"""

from __future__ import annotations

import logging
from typing import Final

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Receive, Scope, Send

from iact.accounts.rights import Principal
from iact.faces.http.access import MAX_BODY, Access
from iact.faces.mcp.ask import NewSessions
from iact.faces.mcp.caller import PRINCIPAL, CallersByHTTP
from iact.faces.mcp.server import mcp_server

_MOST: Final = 1000
"""Clients of older revisions that shook hands; one that does nothing for half an hour is forgotten."""


class StreamableHTTP:
    """Answers for all who ask; each reaches what is theirs. `new`: what sessions that they begin may do."""

    def __init__(self, access: Access, new: NewSessions) -> None:
        # What was sent is told in its log lines, and no log of ours has that; what is a bug the server tells itself.
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
        self._manager = StreamableHTTPSessionManager(
            mcp_server(CallersByHTTP(access), new),
            max_request_body_size=MAX_BODY,
            max_sessions=_MOST,
        )
        self.ready = anyio.Event()
        """Set once requests can be answered."""

    async def run(self) -> None:
        """Hold what no single request does, until it is cancelled."""
        async with self._manager.run():
            self.ready.set()
            await anyio.sleep_forever()

    async def ask(self, who: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of somebody who is known."""
        scope[PRINCIPAL] = who
        scope["user"] = AuthenticatedUser(
            AccessToken(token="", client_id=who.user, subject=f"{who.link} {who.key}", scopes=[])
        )
        reply = _Reply(send)
        try:
            await self._manager.handle_request(scope, receive, reply)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            if not reply.complete:
                raise


class _Reply:
    """One reply to a request. The SDK acknowledges what an old client says before it hands it over; where the client's
    session has ended meanwhile, that fails, and it would reply again."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.complete = False

    async def __call__(self, message: Message) -> None:
        if not self.complete:
            self.complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await self._send(message)
