"""Deleting sessions, taking that back, and letting go of what is old: the store and the memory beside it, together.

A deleted session is in the trash, and memory forgets it at once. Restored, its files are what they were, and memory
reads its journal again. Purged, nothing is left of it: memory lets go of it first, for the journal that says what
there is to forget goes with the purge. Where memory can't be written to now, the trash says so, and the next tidying
makes good for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

from iact.core.errors import IactError, MemoryUnavailable
from iact.core.ports import Clock, Memory, MemoryEvent
from iact.core.session.listing import SessionInfo
from iact.core.session.store import SessionStore

_LOG: Final = logging.getLogger(__name__)

OpenMemory: TypeAlias = Callable[[], AbstractAsyncContextManager[Memory | None]]
"""Opens memory for as long as it is needed; None where there is none, and was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long sessions are kept. 0: for ever, and however large they are. What is pinned or open always stays.

    `days`: since a session changed last. `bytes`: of all sessions on disk; the ones that changed longest ago go first.
    `trash_days`: how long a deleted session can be restored.
    """

    days: float = 0
    bytes: int = 0
    trash_days: float = 7


@dataclass(frozen=True, slots=True)
class DeletionOutcome:
    """What was done to sessions. `refused`: why one was left as it was, by its id. `note`: what is still to be done."""

    sessions: tuple[str, ...]
    refused: dict[str, str]
    note: str = ""


class Deletion:
    """Deletes and restores sessions of a store that nobody has open here."""

    def __init__(
        self, store: SessionStore, clock: Clock, open_memory: OpenMemory, retention: Retention | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._open_memory = open_memory
        self._retention = retention or Retention()

    async def delete(self, sessions: Sequence[str]) -> DeletionOutcome:
        """Move sessions to the trash, and let memory forget them."""
        done = await self._each(sessions, self._store.delete)
        note = await self._forget(done.sessions)
        return DeletionOutcome(done.sessions, done.refused, note)

    async def restore(self, sessions: Sequence[str]) -> DeletionOutcome:
        """Move sessions back from the trash, and let memory read them."""
        done = await self._each(sessions, self._store.take_back)
        async with self._open_memory() as memory:
            if memory is not None:
                for happening in await asyncio.to_thread(self._happenings, done.sessions):
                    memory.remember(happening)
        return done

    async def purge(self, sessions: Sequence[str]) -> DeletionOutcome:
        """Remove sessions that are in the trash for good, and all that came of them.

        Raises:
            MemoryUnavailable: memory can't be written to now; nothing was removed.
        """
        there = [one for one in sessions if self._store.trash.find(one) is not None]
        if there:
            async with self._open_memory() as memory:
                if memory is not None:
                    await memory.drop_sessions(there, for_good=True)
        return await self._each(sessions, self._store.purge)

    async def tidy(self, running: Collection[str] = ()) -> DeletionOutcome:
        """Delete what is kept no longer, purge what was deleted long ago, or for good by another host, and what was cut off.

        `running`: sessions that are open here.
        """
        old = await asyncio.to_thread(self._too_old, running)
        deleted = await self.delete(old) if old else DeletionOutcome((), {})
        trash = await asyncio.to_thread(self._store.trash.all)
        limit = self._clock.now() - timedelta(days=self._retention.trash_days)
        over = [one.id for one in trash if datetime.fromisoformat(one.at) <= limit]
        left = [one.id for one in trash if not one.forgotten and one.id not in over]
        note = deleted.note or (await self._forget(left) if left else "")
        try:
            over += [one for one in await asyncio.to_thread(self._store.left_over) if one not in over]
        except IactError as error:
            _LOG.warning("What other hosts have deleted for good can't be known now: %s", error)
        with contextlib.suppress(MemoryUnavailable):
            purged = await self.purge(over) if over else DeletionOutcome((), {})
            for session, why in purged.refused.items():
                _LOG.warning(
                    "The deleted session %s is still there: %s", session, why, extra={"session": session}
                )
        return DeletionOutcome(deleted.sessions, deleted.refused, note)

    async def _forget(self, sessions: Sequence[str]) -> str:
        """Let memory forget sessions that are in the trash; gives why that is still to be done, if it is."""
        if not sessions:
            return ""
        try:
            async with self._open_memory() as memory:
                if memory is not None:
                    await memory.drop_sessions(sessions, for_good=False)
        except MemoryUnavailable as error:
            return f"Memory still holds what came of it, and forgets that later: {error}"
        for session in sessions:
            with contextlib.suppress(IactError):  # restored meanwhile
                await asyncio.to_thread(self._store.trash.forgotten, session)
        return ""

    def _happenings(self, sessions: Sequence[str]) -> list[MemoryEvent]:
        return [happening for one in sessions for happening in self._store.happenings(one)]

    async def _each(self, sessions: Sequence[str], act: Callable[[str], object]) -> DeletionOutcome:
        done, refused = [], {}
        for session in dict.fromkeys(sessions):
            try:
                await asyncio.to_thread(act, session)
            except IactError as error:
                refused[session] = str(error)
            else:
                done.append(session)
        return DeletionOutcome(tuple(done), refused)

    # --- retention --------------------------------------------------------------------------------

    def _too_old(self, running: Collection[str]) -> list[str]:
        """The sessions that are kept no longer, for their age or for the room that all of them take."""
        keep = self._retention
        if not keep.days and not keep.bytes:
            return []
        known = self._store.sessions()
        mine = [one for one in known if not one.pinned and one.id not in running]
        limit = self._clock.now() - timedelta(days=keep.days)
        old = [one for one in mine if keep.days and datetime.fromisoformat(one.changed) <= limit]
        if keep.bytes:
            old += self._too_many(known, [one for one in mine if one not in old], old)
        return [one.id for one in old]

    def _too_many(
        self, known: Sequence[SessionInfo], candidates: Sequence[SessionInfo], old: Sequence[SessionInfo]
    ) -> list[SessionInfo]:
        sizes = {one.id: room_of(self._store.folder / one.id) for one in known}
        total = sum(sizes.values()) - sum(sizes[one.id] for one in old)
        gone = []
        for one in sorted(candidates, key=lambda one: one.changed):
            if total <= self._retention.bytes:
                break
            total -= sizes[one.id]
            gone.append(one)
        return gone


def room_of(directory: Path) -> int:
    """Bytes on disk that a directory takes; what can't be read counts nothing."""
    total = 0
    for folder, _, files in os.walk(directory):
        for name in (*files, "."):
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def lent(memory: Memory | None) -> OpenMemory:
    """A memory that is open as long as whoever lends it likes."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Memory | None]:
        yield memory

    return opened
