"""Connections that have not authenticated yet.

Any program on the machine can open connections and send nothing. Each costs a descriptor, so there is a limit; but
turning away new connections beyond it would let idle ones lock all other clients out. So the oldest unverified
connection is closed. A legitimate client authenticates with its first bytes, and is then no longer counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Generic, TypeVar

Connection = TypeVar("Connection", bound=Hashable)


class UnverifiedConnections(Generic[Connection]):
    """The unverified connections of one server, by peer address, the oldest first. At most `most` in total, and
    `per_peer` from one address."""

    def __init__(self, *, most: int, per_peer: int) -> None:
        self._most = most
        self._per_peer = per_peer
        self._all: dict[Connection, str] = {}
        self._of: defaultdict[str, dict[Connection, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: Connection, peer: str) -> Connection | None:
        """Add a connection. Returns the one that must be closed for it, which has been removed."""
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
        """Remove a connection that has authenticated, or is gone."""
        peer = self._all.pop(connection, None)
        if peer is not None:
            self._of[peer].pop(connection)
            if not self._of[peer]:
                del self._of[peer]
