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
from iact.core.stored.index import TextHits

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
        others = [lease for lease in self._placement.alive() if lease.incarnation != self._own]
        return await all_of(self._at(lease, user, query, limit) for lease in others)

    async def _at(self, lease: HostLease, user: str, query: str, limit: int) -> TextHits:
        message: dict[str, JSON] = {"do": "search", "user": user, "query": query, "limit": limit}
        try:
            async with asyncio.timeout(_SECONDS):
                answered = await self._peers.ask(lease, message)
            return _ANSWER.validate_python(answered, strict=False)
        except (IactError, TimeoutError, ValidationError):
            return TextHits(behind=max(lease.sessions, 1))


def answer(texts: TextHits) -> Mapping[str, JSON]:
    """What a host found, as JSON for another host."""
    return {"hits": [asdict(hit) for hit in texts.hits], "behind": texts.behind}
