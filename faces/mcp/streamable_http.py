"""MCP over streamable HTTP: the official SDK's transport between clients and the server.

In revision 2026-07-28, each request is a separate POST and nothing is kept between requests: a client that disconnects has
cancelled its call. Older revisions begin with a handshake, and the SDK keeps a session for each such client, which can only
be used with the token of the handshake.
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
"""The maximum number of clients with a handshake. A client that is idle for half an hour is forgotten."""


class StreamableHTTP:
    """Serves all users; each user reaches only their own sessions. `new`: the intent and scope of sessions they start."""

    def __init__(self, access: Access, new: NewSessions) -> None:
        # Its log lines contain the requests, which must not be logged. The server logs bugs itself.
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
        self._manager = StreamableHTTPSessionManager(
            mcp_server(CallersByHTTP(access), new),
            max_request_body_size=MAX_BODY,
            max_sessions=_MOST,
        )
        self.ready = anyio.Event()
        """Set once requests can be answered."""

    async def run(self) -> None:
        """Run the parts that outlive single requests, until cancelled."""
        async with self._manager.run():
            self.ready.set()
            await anyio.sleep_forever()

    async def ask(self, who: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request from an authenticated user."""
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
    """Sends only one reply to a request.

    The SDK acknowledges an old client's message before passing it on. If the client's session has ended in the meantime,
    passing it on fails, and the SDK would reply a second time.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.complete = False

    async def __call__(self, message: Message) -> None:
        if not self.complete:
            self.complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await self._send(message)
