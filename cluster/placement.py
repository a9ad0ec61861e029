"""Which host has a session, and which should have it: the protocol, and an implementation with notes in the store only.

Every member chooses alike without communication (rendezvous hashing): gateways that place one session at the same
moment, and hosts that divide up a dead host's sessions, mostly agree. Where they don't, two hosts take the session over
one after the other; the second one has it, and the first notices (`core.journal.fence`).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from iact.cluster.leases import HostLease, Members, holder_of, read_hosts
from iact.core.errors import IactError, StoreUnavailable, UsageError
from iact.core.ports import JSON, ObjectStore

PATIENCE: Final = 30.0
"""How long placing a session is attempted: longer than it takes to notice that a host is dead."""
_PAUSE: Final = 0.25
"""Seconds between two attempts."""


class Moved(IactError):
    """A host was asked for a session that it does not have, or no longer has. The caller should look it up again."""


class HostUnavailable(IactError):
    """A host does not answer."""


class NoHost(IactError):
    """There is no host that could take a session."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a session is. `epoch`: of its journal, if it is known; 0 for a session that does not exist yet."""

    lease: HostLease
    epoch: int


class Placement(Protocol):
    """Finds hosts for sessions."""

    async def locate(self, session: str) -> Location | None:
        """The living host that has a session open, or had it last; None if there is none.

        Raises:
            StoreUnavailable: the store does not answer now.
        """
        ...

    async def place(self, session: str | None, *, host: str = "") -> Location:
        """Have a session open on a host: the one that has it, or a chosen one. None: where a new session may begin.

        `host`: use the host with this name.

        Raises:
            NoHost: there is none, or none with this name.
            IactError: the session can't be opened.
        """
        ...

    async def drain(self, host: str) -> int:
        """Have a host pass on all of its sessions and accept no more. Returns how many it had.

        Raises:
            NoHost: there is none with this name.
        """
        ...

    async def hosts(self) -> Sequence[HostLease]:
        """The living hosts."""
        ...


class Peers(Protocol):
    """Talks to hosts."""

    async def ask(self, lease: HostLease, message: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Have a host carry out a message (`cluster.control`).

        Raises:
            HostUnavailable: it does not answer.
            Moved: the session is not there, or is moving to another host.
            IactError: it refuses.
        """
        ...


def chosen(session: str, leases: Iterable[HostLease]) -> HostLease | None:
    """The host for a session that no host has. Every member that sees the same hosts chooses the same one."""
    candidates = [lease for lease in leases if not lease.draining]
    return max(candidates, key=lambda lease: _weight(session, lease.incarnation), default=None)


def least_loaded(leases: Iterable[HostLease], sent: Mapping[HostLease, int]) -> HostLease | None:
    """The host for a session that does not exist yet. `sent`: how often each host was chosen since its last note."""
    candidates = [lease for lease in leases if not lease.draining]
    return min(
        candidates, key=lambda lease: (lease.sessions + sent.get(lease, 0), lease.incarnation), default=None
    )


def _weight(session: str, incarnation: str) -> bytes:
    return hashlib.sha256(f"{session} {incarnation}".encode()).digest()


class StaticPlacement:
    """Places sessions by the notes in the store, with no engine: the hosts are those that were started with the
    store."""

    def __init__(
        self,
        store: ObjectStore,
        peers: Peers,
        *,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        life: float | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._store = store
        self._peers = peers
        self._now = now
        self._wall = wall
        self._patience = patience
        self._sent: dict[HostLease, int] = {}
        self.members = Members() if life is None else Members(life)

    async def refresh(self) -> None:
        """Read which hosts exist.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        leases = await asyncio.to_thread(lambda: list(read_hosts(self._store)))
        self.members = self.members.observe(leases, now=self._now(), wall=self._wall())

    def alive(self) -> list[HostLease]:
        """The hosts that were alive at the last refresh."""
        return self.members.alive(self._now())

    def dead(self) -> list[HostLease]:
        """The hosts that were not, and have not left."""
        return self.members.dead(self._now())

    async def hosts(self) -> Sequence[HostLease]:
        """See `Placement.hosts`."""
        await self.refresh()
        return self.alive()

    async def locate(self, session: str) -> Location | None:
        """See `Placement.locate`."""
        incarnation, epoch = await asyncio.to_thread(holder_of, self._store, session)
        lease = self.members.lease(incarnation)
        if lease is None and incarnation:
            await self.refresh()
            lease = self.members.lease(incarnation)
        if lease is None or lease not in self.alive():
            return None
        return Location(lease, epoch)

    async def place(self, session: str | None, *, host: str = "") -> Location:
        """See `Placement.place`."""
        end = self._now() + self._patience
        while True:
            try:
                return self._any() if session is None else await self._attempt(session, host)
            except (Moved, HostUnavailable, StoreUnavailable, NoHost) as error:
                trouble = str(error)

            if self._now() > end:
                sentence = f"No host could open the session {session}. {trouble}" if session else trouble
                raise NoHost(sentence)
            await asyncio.sleep(_PAUSE)
            await self._look_again()

    async def drain(self, host: str) -> int:
        """See `Placement.drain`."""
        lease = self._named(host, await self.hosts())
        answer = await self._peers.ask(lease, {"do": "drain"})
        passed = answer.get("sessions", 0)
        return passed if isinstance(passed, int) else 0

    async def _look_again(self) -> None:
        try:
            await self.refresh()
        except StoreUnavailable:
            return  # keep what was known

    async def _attempt(self, session: str, host: str) -> Location:
        """Have a session open on a host, if nothing changes meanwhile; raises what `place` tries again for."""
        location = await self.locate(session)
        if location is not None and host and location.lease.host != host:
            self._named(host, self.alive())
            await self._peers.ask(location.lease, {"do": "give", "session": session, "host": host})
            location = await self.locate(session)

        if location is not None:
            try:
                return await self._opened_at(location.lease, session)
            except Moved:
                # It had the session last, and has closed it. Any other host checks that no host has it before opening
                # it.
                if location.lease == self._candidate(session, host):
                    raise

        return await self._opened_at(self._candidate(session, host), session)

    async def _opened_at(self, lease: HostLease, session: str) -> Location:
        answer = await self._peers.ask(lease, {"do": "open", "session": session})
        epoch = answer.get("epoch", 0)
        if not isinstance(epoch, int):
            epoch = 0
        return Location(lease, epoch)

    def _candidate(self, session: str, host: str) -> HostLease:
        alive = self.alive()
        if host:
            return self._named(host, alive)
        lease = chosen(session, alive)
        if lease is None:
            raise NoHost("No host is running that takes sessions. Start one with: iact cluster host.")
        return lease

    def _any(self) -> Location:
        """A host for a new session."""
        alive = self.alive()
        self._sent = {lease: count for lease, count in self._sent.items() if lease in alive}
        lease = least_loaded(alive, self._sent)
        if lease is None:
            raise NoHost("No host is running that takes sessions. Start one with: iact cluster host.")

        self._sent[lease] = self._sent.get(lease, 0) + 1
        return Location(lease, 0)

    def _named(self, host: str, leases: Iterable[HostLease]) -> HostLease:
        for lease in leases:
            if lease.host == host:
                return lease
        raise UsageError(f"No host called {host} is running. See: iact cluster status.")
