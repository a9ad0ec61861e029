"""Who sends a request to a face, and what it may reach. The table of rights is the same as for the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request

from iact.accounts.rights import LOCAL, Principal, Right, may, refusal
from iact.core.session.runtime import Runtime


def remembers(who: Principal, *, apart: bool = False) -> bool:
    """Whether a session that this sender begins reads and writes memory.

    The memory is that of an account, which has tokens of its own. The server's own key is that of all
    programs, which many people may use: what one of them says must not reach another. Nor does what a token passes on
    of others. `apart`: the request says itself that it speaks for somebody else, or wants nothing to be kept.
    """
    return who.user != LOCAL.user and who.words != "none" and not apart


MAX_BODY: Final = 32 << 20
"""The maximum number of bytes of a request."""


class Visitors(Protocol):
    """The users of the server, and their sessions."""

    def identify(self, authorization: str, peer: str) -> Principal | None:
        """Who sends a request with this `Authorization` from this address, or None if unknown. Blocks."""
        ...

    def lease(self, who: Principal) -> AbstractAsyncContextManager[Runtime]:
        """Open the runtime with a user's sessions.

        Raises:
            IactError: it can't be opened now.
        """
        ...


class Access:
    """The access checks of faces."""

    def __init__(self, visitors: Visitors) -> None:
        self._visitors = visitors

    async def principal(self, request: Request, right: Right) -> Principal:
        """Return the sender of a request, if they have the right.

        Raises:
            HTTPException: 401 if the sender is unknown, 403 if they lack the right.
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
        """Open the runtime with a user's sessions."""
        async with self._visitors.lease(who) as runtime:
            yield runtime


async def body_of(request: Request) -> bytes:
    """Read the whole body of a request.

    Raises:
        HTTPException: 413 if it is too large.
    """
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BODY:
            raise HTTPException(413, f"A request may have {MAX_BODY:,} bytes, and this one has more.")
    return bytes(content)
