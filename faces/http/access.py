"""Who asks through a face, and what of theirs it may reach: the same table of rights as the page has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request

from iact.accounts.rights import Principal, Right, may, refusal
from iact.core.session.runtime import Runtime

MAX_BODY: Final = 32 << 20
"""Bytes of one request."""


class Visitors(Protocol):
    """What the server knows of those who ask."""

    def identify(self, authorization: str, peer: str) -> Principal | None:
        """Who sends a request with this `Authorization`, from this address; None: nobody that is known. Blocks."""
        ...

    def lease(self, who: Principal) -> AbstractAsyncContextManager[Runtime]:
        """The sessions of somebody, for as long as it is open.

        Raises:
            IactError: they can't be opened now.
        """
        ...


class Access:
    """What a face asks before it does anything."""

    def __init__(self, visitors: Visitors) -> None:
        self._visitors = visitors

    async def principal(self, request: Request, right: Right) -> Principal:
        """Who sent a request, if they may.

        Raises:
            HTTPException: 401, it is nobody that is known; 403, they may not.
        """
        peer = request.client.host if request.client is not None else ""
        given = request.headers.getlist("authorization")
        identify = self._visitors.identify
        who = await asyncio.to_thread(identify, given[0], peer) if len(given) == 1 else None
        if who is None:
            raise HTTPException(
                401,
                "Say who you are: send the header Authorization: Bearer and a token. iact token create makes one where "
                "there are accounts; else it is the key that iact serve has in server.json.",
                {"WWW-Authenticate": "Bearer"},
            )
        if not may(who, right, "owner"):
            raise HTTPException(403, refusal(right))
        return who

    @asynccontextmanager
    async def runtime(self, who: Principal) -> AsyncIterator[Runtime]:
        """Their sessions, for as long as it is open."""
        async with self._visitors.lease(who) as runtime:
            yield runtime


async def body_of(request: Request) -> bytes:
    """All of a request's body.

    Raises:
        HTTPException: 413, it is too large.
    """
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BODY:
            raise HTTPException(413, f"A request may have {MAX_BODY:,} bytes, and this one has more.")
    return bytes(content)
