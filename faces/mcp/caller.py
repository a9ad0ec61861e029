"""The senders of requests: their sessions and their rights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from starlette.requests import Request

from iact.accounts.rights import Principal, Right, Words, may, refusal
from iact.core.session.runtime import Runtime
from iact.faces.http.access import Access, remembers

PRINCIPAL: Final = "iact.principal"
"""The key of the sender in a request's scope."""


class Callers(Protocol):
    """The senders of requests, as the server sees them."""

    def may(self, context: ServerRequestContext[None], right: Right) -> bool:
        """Whether the sender of a request has a right."""
        ...

    def remembers(self, context: ServerRequestContext[None]) -> bool:
        """Whether a session that the sender of a request begins reads and writes memory."""
        ...

    def words(self, context: ServerRequestContext[None]) -> Words:
        """What of all that the sender of a request sends is their user's words."""
        ...

    def runtime(
        self, context: ServerRequestContext[None], right: Right
    ) -> AbstractAsyncContextManager[Runtime]:
        """Open the runtime with the sessions of a request's sender.

        Raises:
            MCPError: the sender lacks the right.
            IactError: the sessions can't be opened now.
        """
        ...


class OneCaller:
    """The only client, on standard input and output. It has all rights of the user who started it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def may(self, context: ServerRequestContext[None], right: Right) -> bool:
        """See `Callers.may`."""
        return True

    def remembers(self, context: ServerRequestContext[None]) -> bool:
        """See `Callers.remembers`. The memory is that of the user who started the process."""
        return True

    def words(self, context: ServerRequestContext[None]) -> Words:
        """See `Callers.words`."""
        return "newest"

    @asynccontextmanager
    async def runtime(self, context: ServerRequestContext[None], right: Right) -> AsyncIterator[Runtime]:
        """See `Callers.runtime`."""
        yield self._runtime


class CallersByHTTP:
    """The senders of HTTP requests. The route has checked a request's token before reading anything else."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def may(self, context: ServerRequestContext[None], right: Right) -> bool:
        """See `Callers.may`."""
        return may(_principal(context), right, "owner")

    def remembers(self, context: ServerRequestContext[None]) -> bool:
        """See `Callers.remembers`."""
        return remembers(_principal(context))

    def words(self, context: ServerRequestContext[None]) -> Words:
        """See `Callers.words`."""
        return _principal(context).words

    @asynccontextmanager
    async def runtime(self, context: ServerRequestContext[None], right: Right) -> AsyncIterator[Runtime]:
        """See `Callers.runtime`."""
        if not self.may(context, right):
            raise MCPError(INVALID_REQUEST, refusal(right))
        async with self._access.runtime(_principal(context)) as runtime:
            yield runtime


def _principal(context: ServerRequestContext[None]) -> Principal:
    assert isinstance(context.request, Request)
    who = context.request.scope[PRINCIPAL]
    assert isinstance(who, Principal)
    return who
