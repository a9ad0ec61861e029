"""Connections that have not shown yet that they may be here.

Anybody on the machine can open connections and say nothing. Each costs a descriptor, so there is a limit; and
whoever comes beyond it must not be the one who is turned away, or those who hold the others would shut everybody
out. So the oldest stranger goes. Who may be here shows it with the first bytes it sends, and is none any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Generic, TypeVar

Connection = TypeVar("Connection", bound=Hashable)


class UnverifiedConnections(Generic[Connection]):
    """The unverified of one server, by the address they come from, the oldest first. At most `most` in all, and
    `per_peer` from one address."""

    def __init__(self, *, most: int, per_peer: int) -> None:
        self._most = most
        self._per_peer = per_peer
        self._all: dict[Connection, str] = {}
        self._of: defaultdict[str, dict[Connection, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: Connection, peer: str) -> Connection | None:
        """One more; gives the one that has to go for it, which is none of them any more."""
        self._all[connection] = peer
        self._of[peer][connection] = None
        if len(self._of[peer]) > self._per_peer:
            gone = next(iter(self._of[peer]))
        elif len(self._all) > self._most:
            gone = next(iter(self._all))
        else:
            return None
        self.discard(gone)
        return gone

    def discard(self, connection: Connection) -> None:
        """It has shown who it is, or is gone."""
        peer = self._all.pop(connection, None)
        if peer is not None:
            self._of[peer].pop(connection)
            if not self._of[peer]:
                del self._of[peer]
