"""One host: a runtime that is given sessions, and passes them on when it is told to.

It regularly reports that it is alive, notes which sessions it has open, and opens what a dead host had open. All of
that is for liveness; its journals decide what it may write (`core.journal.fence`).

An idle session that no one watches is closed after a while, and opened again on request.

Moving a session: no more work begins, running work finishes if it does so soon, everything is made durable, and the
journal is released; then the other host folds it and continues. Clients that watch the session are disconnected,
reconnect on their own, and are led to the other host.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from iact.accounts.rights import LOCAL
from iact.cluster.leases import (
    RENEWAL,
    OwnLease,
    closed_by_another,
    forget_host,
    holder_of,
    is_open_at,
    open_at,
)
from iact.cluster.placement import Moved, NoHost, Peers, StaticPlacement, chosen
from iact.cluster.search import answer
from iact.core.errors import IactError, StoreUnavailable, Superseded, UsageError
from iact.core.ports import JSON, ObjectStore
from iact.core.session.unneeded import UnneededSessions
from iact.core.stored.index import TextHits

GRACE: Final = 30.0
"""Seconds that running work may take to finish when a session is moved."""
_TOGETHER: Final = 8
"""How many sessions are moved, or taken over from a dead host, at the same time."""

_log = logging.getLogger("iact.cluster")


class OpenSession(Protocol):
    """The parts of a session that a host needs."""

    @property
    def failure(self) -> IactError | None: ...
    @property
    def epoch(self) -> int:
        """The epoch of its journal."""
        ...

    @property
    def needed(self) -> bool:
        """Whether it must stay open: it has work, or a module holds something for it, or somebody watches it."""
        ...

    async def rest(self, seconds: float) -> bool:
        """Begin nothing more, and wait until running work has ended."""
        ...


class Sessions(Protocol):
    """What a host needs of the runtimes of its users. Sessions have the names that are used among hosts."""

    @property
    def opened(self) -> Mapping[str, OpenSession]:
        """The sessions that are open, by name."""
        ...

    async def open(self, session: str, /) -> OpenSession: ...
    async def close(self, session: str, /) -> None: ...

    async def close_unless(self, session: str, needed: Callable[[OpenSession], bool], /) -> None:
        """Close an open session that is not needed, before any other caller can open it."""
        ...

    def texts_of(self, user: str, /) -> AbstractAsyncContextManager[Callable[[str, int], TextHits]]:
        """A function that finds where texts of a user's sessions on this host have all words of a query, valid until
        the context exits. The function blocks."""
        ...


class Page(Protocol):
    """The server of clients that watch."""

    unavailable: str
    """Why no new work should be sent there, in one word."""

    def watches(self, session: str) -> bool:
        """Whether a client watches a session."""
        ...

    async def send_away(self, session: str | None) -> None:
        """End the connections that watch a session (None: all that are left), so that the clients reconnect
        elsewhere."""
        ...


@dataclass(frozen=True, slots=True)
class HostTiming:
    """When a host does what, in seconds, and by which clocks."""

    grace: float = GRACE
    """How long running work may take to finish when a session is moved."""
    idle: float = 0.0
    """After how long without work or watchers a session is closed; 0: never."""
    renewal: float = RENEWAL
    """How often it reports that it is alive."""
    wall: Callable[[], float] = time.time
    """Seconds since 1970."""
    now: Callable[[], float] = time.monotonic


class SessionHost:
    """Serves sessions until it is drained or ends.

    `buried`: called with the incarnation of each host that was found dead. Blocks.
    """

    def __init__(
        self,
        sessions: Sessions,
        page: Page,
        store: ObjectStore,
        lease: OwnLease,
        placement: StaticPlacement,
        peers: Peers,
        *,
        timing: HostTiming | None = None,
        buried: Callable[[str], None] = lambda incarnation: None,
    ) -> None:
        self._sessions = sessions
        self._page = page
        self._store = store
        self._lease = lease
        self._placement = placement
        self._peers = peers
        self._timing = timing or HostTiming()
        self._buried = buried

        self._draining = False
        self._unneeded = UnneededSessions()
        self.leaving: Final[dict[str, asyncio.Event]] = {}
        """Sessions that are moving to another host, each with an event that is set on arrival."""
        self._room = asyncio.Semaphore(_TOGETHER)
        """Bounds how many are moved at once."""

        self._noted: set[str] = set()
        """The sessions of which the store says that they are open here."""
        self._renewing = asyncio.Lock()
        self._noting = asyncio.Lock()
        """Held while a note about a session is written or removed, so that the note says what is so."""

    async def start(self, before: str = "") -> None:
        """Announce the host.

        `before`: the incarnation that used its data directory before, and can't be alive: the sessions that it had open
        continue here at once.

        Raises:
            StoreUnavailable: the store can't be written now.
        """
        await self._renew()
        if not before:
            return

        await asyncio.to_thread(self._buried, before)
        sessions = await asyncio.to_thread(open_at, self._store, before)
        await asyncio.to_thread(forget_host, self._store, before)
        await self._placement.refresh()
        async with asyncio.TaskGroup() as group:
            for session in sessions:
                group.create_task(self._take_from(before, session))

    async def run(self) -> None:
        """Renew the announcement regularly, and take over what dead hosts had; until cancelled."""
        while True:
            await asyncio.sleep(self._timing.renewal)
            try:
                await self.look()
            except Exception:
                _log.exception("Looking after other hosts met a bug.")

    async def look(self) -> None:
        """Report that the host is alive, and see which others are."""
        try:
            await self._renew()
            await self._placement.refresh()
            await self._close_lost()
            await self._close_idle()

            if self._draining:
                await self._pass_all_on()  # including sessions that clients unaware of the drain began
            else:
                await self._adopt()
        except StoreUnavailable as error:
            _log.warning("The host %s can't say that it is alive: %s", self._lease.incarnation, error)

    async def leave(self) -> None:
        """Report that the host is gone, after its sessions are closed."""
        await self._forget(set())
        await asyncio.to_thread(self._lease.leave)

    async def act(self, message: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Carry out a message of `cluster.control`."""
        session = message.get("session")
        host = message.get("host", "")
        match message.get("do"), session, host:
            case "open", str(), _:
                return {"epoch": await self.open(session)}
            case "give", str(), str():
                await self.give(session, host)
                return {}
            case "drain", _, _:
                return {"sessions": await self.drain()}
            case "search", _, _:
                user = message.get("user", LOCAL.user)
                return await self._search(user, message.get("query"), message.get("limit"))
            case "status", _, _:
                return {"sessions": [*sorted(self._sessions.opened)], "draining": self._draining}
        raise UsageError(f"A host knows no such message: {message.get('do')!r}.")

    async def _search(self, user: JSON, query: JSON, limit: JSON) -> Mapping[str, JSON]:
        if not isinstance(user, str) or not isinstance(query, str) or not isinstance(limit, int):
            raise UsageError("A search has a user, a query and a limit.")
        async with self._sessions.texts_of(user) as texts:
            return answer(await asyncio.to_thread(texts, query, limit))

    # --- one session ----------------------------------------------------------------------------

    async def open(self, session: str) -> int:
        """Have a session open here. Returns the epoch of its journal.

        Raises:
            Moved: it is moving to another host, or this host accepts no more.
            IactError: it can't be opened.
        """
        leaving = self.leaving.get(session)
        if leaving is not None:
            await leaving.wait()
            raise Moved(f"The session {session} has moved to another host.")

        opened = self._sessions.opened.get(session)
        if opened is not None and isinstance(opened.failure, Superseded):
            await self._drop(session)
            raise Moved(f"Another host has gone on with the session {session}.")
        if opened is None and self._draining:
            raise Moved(f"The host {self._lease.host} takes no more sessions.")
        if opened is None and await self._is_elsewhere(session):
            # The caller looked it up before it moved. Opening it here would take it back from its new host.
            raise Moved(f"The session {session} is open on another host.")

        self._unneeded.forget(session)  # the caller is about to send `hello`
        try:
            opened = await self._sessions.open(session)
        except IactError:
            if session not in self._sessions.opened:
                await asyncio.to_thread(self._lease.closed, session)  # noted when its epoch began
            raise
        return opened.epoch

    async def _is_elsewhere(self, session: str) -> bool:
        """Whether another living host has a session open."""
        holder, _ = await asyncio.to_thread(holder_of, self._store, session)
        if holder in ("", self._lease.incarnation):
            return False
        if holder not in {lease.incarnation for lease in self._placement.alive()}:
            return False
        return await asyncio.to_thread(is_open_at, self._store, holder, session)

    async def give(self, session: str, host: str = "") -> None:
        """Move a session to the host with this name, or to the next one for it.

        Without another host, it is closed, and continues when one becomes available.

        Raises:
            Moved: it is not here.
            UsageError: there is no host with that name.
        """
        await self._placement.refresh()
        # Nothing is awaited from here until it is marked as leaving: a drain and `look` may give it away at the same time.
        if session in self.leaving or session not in self._sessions.opened:
            raise Moved(f"The session {session} is not open on the host {self._lease.host}.")

        targets = [lease for lease in self._placement.alive() if lease.incarnation != self._lease.incarnation]
        if host:
            targets = [lease for lease in targets if lease.host == host]
            if not targets:
                raise UsageError(f"No other host called {host} is running. See: iact cluster status.")
        target = chosen(session, targets)

        arrival = asyncio.Event()
        self.leaving[session] = arrival
        try:
            opened = self._sessions.opened.get(session)  # it may have been closed as idle meanwhile
            if opened is not None and opened.failure is None:
                await opened.rest(self._timing.grace)
            await self._page.send_away(session)
            await self._drop(session)
            if target is not None:
                await self._peers.ask(target, {"do": "open", "session": session})
        finally:
            del self.leaving[session]
            arrival.set()

    async def drain(self) -> int:
        """Pass on all sessions, and accept no more. Returns how many there were."""
        self._draining = True
        self._page.unavailable = "draining"
        await self._renew()
        passed = await self._pass_all_on()
        await self._page.send_away(None)
        return passed

    async def _pass_all_on(self) -> int:
        """Move all sessions elsewhere, and those that are opened meanwhile. Returns how many there were."""
        passed = 0
        while rest := [session for session in self._sessions.opened if session not in self.leaving]:
            passed += len(rest)
            async with asyncio.TaskGroup() as group:
                for session in rest:
                    group.create_task(self._pass_on(session))
        return passed

    async def _pass_on(self, session: str) -> None:
        async with self._room:
            try:
                await self.give(session)
            except Moved:
                pass
            except (IactError, NoHost) as error:
                # Its journal is complete; the next client that asks for it has it placed again.
                sentence = "The session %s was closed, and no other host has it yet: %s"
                _log.warning(sentence, session, error, extra={"session": session})

    async def _drop(self, session: str) -> None:
        """Close a session, and remove the note that it is open here."""
        await self._sessions.close(session)
        async with self._noting:
            self._noted.discard(session)
            await asyncio.to_thread(self._lease.closed, session)

    # --- all of them ------------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Report that the host is alive, and which sessions it has open."""
        async with self._renewing:
            opened = set(self._sessions.opened)
            at = self._timing.wall()
            await asyncio.to_thread(self._lease.renew, at=at, sessions=len(opened), draining=self._draining)

            await self._forget(opened)
            for session in opened - self._noted:  # usually noted before, unless it was being closed
                await self._note_open(session)

    async def _note_open(self, session: str) -> None:
        """Note that a session is open here, unless it was closed meanwhile: its next host would take it for ours."""
        async with self._noting:
            if session in self._sessions.opened:
                await asyncio.to_thread(self._lease.opened, session)
                self._noted.add(session)

    async def _forget(self, opened: set[str]) -> None:
        """Remove the notes about sessions that were closed."""
        for session in self._noted - opened - set(self.leaving):
            await asyncio.to_thread(self._lease.closed, session)
            self._noted.discard(session)

    async def _close_lost(self) -> None:
        """Close the sessions that another host has taken over, with their containers."""
        for name, session in list(self._sessions.opened.items()):
            if isinstance(session.failure, Superseded) and name not in self.leaving:
                await self._page.send_away(name)
                await self._drop(name)

    async def _close_idle(self) -> None:
        """Close the sessions that nobody has needed for a while."""
        now = self._timing.now()
        unneeded = [
            name for name, session in self._sessions.opened.items() if not self._needed(name, session)
        ]
        self._unneeded.look(unneeded, now)
        if not self._timing.idle:
            return

        for name in self._unneeded.for_longer_than(self._timing.idle, now):
            await self._sessions.close_unless(name, partial(self._needed, name))

    def _needed(self, name: str, session: OpenSession) -> bool:
        return session.needed or name in self.leaving or self._page.watches(name)

    async def _adopt(self) -> None:
        """Open the sessions that dead hosts had open and that this host should take."""
        alive = self._placement.alive()
        for dead in self._placement.dead():
            await asyncio.to_thread(self._buried, dead.incarnation)
            sessions = await asyncio.to_thread(open_at, self._store, dead.incarnation)
            async with asyncio.TaskGroup() as group:
                for session in sessions:
                    heir = chosen(session, alive)
                    if heir is not None and heir.incarnation == self._lease.incarnation:
                        group.create_task(self._take_from(dead.incarnation, session))

            # The last heir removes its notes. Read again: others take theirs at the same time.
            if not await asyncio.to_thread(open_at, self._store, dead.incarnation):
                await asyncio.to_thread(forget_host, self._store, dead.incarnation)

    async def _take_from(self, dead: str, session: str) -> None:
        """Open a session that a dead host had open, unless another host has it by now."""
        async with self._room:
            try:
                holder, _ = await asyncio.to_thread(holder_of, self._store, session)
                # It may be ours already, if the answer to our note was lost and nothing was opened.
                if holder in (dead, self._lease.incarnation):
                    await self.open(session)
            except StoreUnavailable:
                return  # tried again at the next check
            except IactError as error:
                sentence = "The session %s of a dead host can't be opened: %s"
                _log.warning(sentence, session, error, extra={"session": session})

            await asyncio.to_thread(closed_by_another, self._store, dead, session)
