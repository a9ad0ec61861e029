"""Deletes sessions, restores them, and removes old ones: from the store and from memory together.

A deleted session moves to the trash, and memory forgets it at once. When it is restored, its files are unchanged, and
memory reads its journal again. When it is purged, nothing is left: memory drops it first, because the journal that says
what to forget goes with the purge. If memory can't be written to, the trash notes it, and the next tidying catches up.
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
from iact.core.ports import Clock, Memory, NewStatement
from iact.core.stored.listing import SessionInfo
from iact.core.stored.store import SessionStore

_LOG: Final = logging.getLogger(__name__)

OpenMemory: TypeAlias = Callable[[], AbstractAsyncContextManager[Memory | None]]
"""Opens memory for as long as it is needed; yields None if there is no memory and never was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long sessions are kept. 0 means no limit in time or size. Sessions that are pinned or open always stay.

    `days`: since the last change of a session. `bytes`: of all sessions on disk; the least recently changed go first.
    `trash_days`: how long a deleted session can be restored.
    """

    days: float = 0
    bytes: int = 0
    trash_days: float = 7


@dataclass(frozen=True, slots=True)
class DeletionOutcome:
    """What was done to sessions. `refused`: by id, why a session was left as it was. `note`: what is still to be
    done."""

    sessions: tuple[str, ...]
    refused: dict[str, str]
    note: str = ""


class Deletion:
    """Deletes and restores sessions of a store that are not open here."""

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
        """Move sessions back from the trash, and let memory read them again."""
        done = await self._each(sessions, self._store.take_back)
        async with self._open_memory() as memory:
            if memory is not None:
                for statement in await asyncio.to_thread(self._statements, done.sessions):
                    memory.remember(statement)
        return done

    async def purge(self, sessions: Sequence[str]) -> DeletionOutcome:
        """Permanently remove sessions that are in the trash, with everything derived from them.

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
        """Delete sessions past their retention, purge those deleted long ago or purged by another host, and finish what
        was cut off.

        `running`: sessions that are open here.
        """
        old = await asyncio.to_thread(self._too_old, running)
        deleted = await self.delete(old) if old else DeletionOutcome((), {})

        trash = await asyncio.to_thread(self._store.trash.all)
        limit = self._clock.now() - timedelta(days=self._retention.trash_days)
        expired = [entry.id for entry in trash if datetime.fromisoformat(entry.at) <= limit]

        # Memory may still hold what came of a session whose deletion was cut off.
        unforgotten = [entry.id for entry in trash if not entry.forgotten and entry.id not in expired]
        note = deleted.note
        if not note:
            note = await self._forget(unforgotten)

        try:
            left_over = await asyncio.to_thread(self._store.left_over)
            expired += [session for session in left_over if session not in expired]
        except IactError as error:
            _LOG.warning("What other hosts have deleted for good can't be known now: %s", error)

        if expired:
            await self._purge_for_good(expired)
        return DeletionOutcome(deleted.sessions, deleted.refused, note)

    async def _purge_for_good(self, sessions: Sequence[str]) -> None:
        """Purge sessions that have been in the trash long enough; those that can't be are tried again next time."""
        with contextlib.suppress(MemoryUnavailable):
            purged = await self.purge(sessions)
            for session, why in purged.refused.items():
                _LOG.warning(
                    "The deleted session %s is still there: %s", session, why, extra={"session": session}
                )

    async def _forget(self, sessions: Sequence[str]) -> str:
        """Let memory forget sessions that are in the trash. Returns why that is still to be done, or empty."""
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

    def _statements(self, sessions: Sequence[str]) -> list[NewStatement]:
        return [statement for session in sessions for statement in self._store.statements(session)]

    async def _each(self, sessions: Sequence[str], act: Callable[[str], object]) -> DeletionOutcome:
        """Do something with each of these sessions, in a thread; those that refuse it are named with the reason."""
        acted_on: list[str] = []
        refused: dict[str, str] = {}
        for session in dict.fromkeys(sessions):
            try:
                await asyncio.to_thread(act, session)
            except IactError as error:
                refused[session] = str(error)
            else:
                acted_on.append(session)
        return DeletionOutcome(tuple(acted_on), refused)

    # --- retention --------------------------------------------------------------------------------

    def _too_old(self, running: Collection[str]) -> list[str]:
        """The sessions to be deleted because of their age, or because all sessions together take too much space."""
        retention = self._retention
        if not retention.days and not retention.bytes:
            return []

        known = self._store.sessions()
        # What can't be read now is not known to be old.
        candidates = [info for info in known if info.readable and not info.pinned and info.id not in running]

        old: list[SessionInfo] = []
        if retention.days:
            limit = self._clock.now() - timedelta(days=retention.days)
            old = [info for info in candidates if datetime.fromisoformat(info.changed) <= limit]
        if retention.bytes:
            old += self._too_many(known, [info for info in candidates if info not in old], old)
        return [info.id for info in old]

    def _too_many(
        self, known: Sequence[SessionInfo], candidates: Sequence[SessionInfo], old: Sequence[SessionInfo]
    ) -> list[SessionInfo]:
        """The candidates without which all sessions fit into the space for them, least recently changed first. `old`: they
        are deleted anyway."""
        sizes = {info.id: room_of(self._store.folder / info.id) for info in known}
        total = sum(sizes.values()) - sum(sizes[info.id] for info in old)

        gone: list[SessionInfo] = []
        for info in sorted(candidates, key=lambda info: info.changed):
            if total <= self._retention.bytes:
                break
            total -= sizes[info.id]
            gone.append(info)
        return gone


def room_of(directory: Path) -> int:
    """How many bytes a directory takes on disk; unreadable parts count as nothing."""
    total = 0
    for folder, _, files in os.walk(directory):
        for name in (*files, "."):
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def lent(memory: Memory | None) -> OpenMemory:
    """Opens a memory that the lender keeps open for as long as it wants."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Memory | None]:
        yield memory

    return opened
