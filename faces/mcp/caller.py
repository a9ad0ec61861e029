"""Whoever sends requests: what of theirs is reached, and what they may."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from starlette.requests import Request

from iact.accounts.rights import Principal, Right, may, refusal
from iact.core.session.runtime import Runtime
from iact.faces.http.access import Access

PRINCIPAL: Final = "iact.principal"
"""Under what name a request's scope has who sent it."""


class Callers(Protocol):
    """Who asks, as the server sees them."""

    def may(self, context: ServerRequestContext[None], right: Right) -> bool:
        """Whether whoever sent a request has a right."""
        ...

    def runtime(
        self, context: ServerRequestContext[None], right: Right
    ) -> AbstractAsyncContextManager[Runtime]:
        """The sessions of whoever sent a request, for as long as it is open.

        Raises:
            MCPError: they lack the right.
            IactError: their sessions can't be opened now.
        """
        ...


class OneCaller:
    """The only client, by standard input and output: it may whatever the user who started it may."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def may(self, context: ServerRequestContext[None], right: Right) -> bool:
        """As `Callers.may`."""
        return True

    @asynccontextmanager
    async def runtime(self, context: ServerRequestContext[None], right: Right) -> AsyncIterator[Runtime]:
        """As `Callers.runtime`."""
        yield self._runtime


class CallersByHTTP:
    """Each request says by its token who sends it; the route has looked at that before anything was read."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def may(self, context: ServerRequestContext[None], right: Right) -> bool:
        """As `Callers.may`."""
        return may(_principal(context), right, "owner")

    @asynccontextmanager
    async def runtime(self, context: ServerRequestContext[None], right: Right) -> AsyncIterator[Runtime]:
        """As `Callers.runtime`."""
        if not self.may(context, right):
            raise MCPError(INVALID_REQUEST, refusal(right))
        async with self._access.runtime(_principal(context)) as runtime:
            yield runtime


def _principal(context: ServerRequestContext[None]) -> Principal:
    assert isinstance(context.request, Request)
    who = context.request.scope[PRINCIPAL]
    assert isinstance(who, Principal)
    return who
