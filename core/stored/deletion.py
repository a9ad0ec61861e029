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
        """The sessions to be deleted because of their age, or because all sessions together take too much space."""
        keep = self._retention
        if not keep.days and not keep.bytes:
            return []
        known = self._store.sessions()
        # What can't be read now is not known to be old.
        mine = [one for one in known if one.readable and not one.pinned and one.id not in running]
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
