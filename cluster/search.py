"""Finds words in texts of sessions on other hosts: each has an index of the sessions that it had open, so each is
asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from pydantic import TypeAdapter, ValidationError

from iact.accounts.rights import LOCAL
from iact.cluster.control import all_of
from iact.cluster.leases import HostLease
from iact.cluster.placement import Peers, StaticPlacement
from iact.core.errors import IactError
from iact.core.ports import JSON
from iact.core.session.index import TextHits

_SECONDS: Final = 3.0
"""Seconds that a search waits for a host that does not answer."""

_ANSWER: Final = TypeAdapter(TextHits)


class HostSearch:
    """Asks all living hosts except the one of this incarnation. A host that does not answer counts as not yet
    indexed."""

    def __init__(self, placement: StaticPlacement, peers: Peers, own: str = "") -> None:
        self._placement = placement
        self._peers = peers
        self._own = own

    async def search(self, query: str, limit: int, user: str = LOCAL.user) -> Sequence[TextHits]:
        """What each host found: at most `limit` sessions of a user."""
        others = [one for one in self._placement.alive() if one.incarnation != self._own]
        return await all_of(self._at(one, user, query, limit) for one in others)

    async def _at(self, lease: HostLease, user: str, query: str, limit: int) -> TextHits:
        try:
            async with asyncio.timeout(_SECONDS):
                asked: dict[str, JSON] = {"do": "search", "user": user, "query": query, "limit": limit}
                return _ANSWER.validate_python(await self._peers.ask(lease, asked), strict=False)
        except (IactError, TimeoutError, ValidationError):
            return TextHits(behind=max(lease.sessions, 1))


def answer(found: TextHits) -> Mapping[str, JSON]:
    """What a host found, as JSON for another host."""
    return {"hits": [asdict(one) for one in found.hits], "behind": found.behind}
