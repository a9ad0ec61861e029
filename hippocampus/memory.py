"""The Hippocampus: a memory next to the tree that never delays it.

    remember ──▶ queue ──▶ the upkeep task ──▶ writing thread ──▶ store
    recall ───────────────────────────────▶ reading thread ──▶ store     within the time budget, or nothing

`Upkeep` owns everything that changes; this file answers the queries while turns go on. While the store is not open yet,
slow or gone, `recall` returns what needs no store (the goal), and reports that once.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from iact.core.errors import IactError, MemoryUnavailable
from iact.core.ports import (
    Clock,
    Embedder,
    MemoryDetails,
    MemoryEvent,
    MemoryQuestion,
    Recalled,
    Recollection,
)
from iact.hippocampus import consolidation, ranking
from iact.hippocampus.consolidation import Distill
from iact.hippocampus.extraction import PASSAGE, fragments_of
from iact.hippocampus.fragment import Fragment, MemoryScope, readable
from iact.hippocampus.jobs import Note
from iact.hippocampus.lifecycle import OpenStore, StoreOpener
from iact.hippocampus.maintenance import faded, maintain_when_idle
from iact.hippocampus.ranking import Candidate, Scored, Weights
from iact.hippocampus.reader import Wanted
from iact.hippocampus.store import ChromaStore, FragmentSet
from iact.hippocampus.upkeep import Journals, Upkeep
from iact.hippocampus.worker import Worker

_LOG: Final = logging.getLogger(__name__)

BUDGET: Final = 0.150
"""Seconds that a turn waits for a recall."""

OPENING: Final = 1.0
"""Seconds that the first recalls wait instead, until the store is open or one has waited in vain. Opening takes about 0.6 s
of processor time, mostly beside the start of the session."""

_WAITING: Final = 32
"""Recalls in the reading thread's queue above which another one would be too late anyway."""

_JUST_SAID: Final = 3
"""The most preferences not yet stored that a turn is shown."""

_GROUPS: Final = 8
"""The most groups of fragments that are merged in one run; each costs a call of the model."""

_PATIENCE: Final = 10.0
"""Seconds that a person's search waits for the store to open, and that closing waits for queued jobs."""

_ARENAS: Final = -8
"""`M_ARENA_MAX` of glibc's `malloc.h`."""


class Hippocampus:
    """The memory of all users of one directory or Chroma server. Created by `open_hippocampus`."""

    def __init__(
        self,
        upkeep: Upkeep,
        embedder: Embedder,
        clock: Clock,
        budget: float,
        weights: Weights,
        distill: Distill | None,
        opening: float,
    ) -> None:
        self._upkeep = upkeep
        self._embedder = embedder
        self._clock = clock
        self._budget = budget
        self._opening = opening
        self._weights = weights
        self._distill = distill
        self._users: set[str] = set()
        self._used = asyncio.Event()
        self.uses = 0
        self._reader = Worker("reading")
        self._late = False
        self._patient = True
        """Whether recalls may still wait for the store to open."""
        self._noticed: set[str] = set()
        self._goals: dict[tuple[str, str], list[Fragment]] = {}

    def of(self, user: str) -> UserMemory:
        """The memory of one user, through which no other user's can be reached."""
        return UserMemory(self, user)

    @property
    def trouble(self) -> str:
        """Why memory is unavailable now, as a sentence; empty if it works or is still being opened."""
        return self._upkeep.trouble

    def wake(self) -> None:
        """Open the store in the background, unless that was done: now there is time for it."""
        self._upkeep.wake()

    async def settled(self) -> None:
        """Wait until all events and jobs so far are stored or given up."""
        await self._upkeep.settled()

    async def close(self) -> None:
        """Let the reading thread end, if it can."""
        await self._reader.close(1.0)

    # --- turns ---

    def remember(self, user: str, event: MemoryEvent) -> None:
        """Queue an event, and keep its session's goal in memory."""
        self._note_use(user)
        if event.occasion == "say" and not event.untrusted:
            self._note_goal(user, event)
        self._upkeep.note(Note(user, event))

    def _note_use(self, user: str) -> None:
        self.uses += 1
        self._users.add(user)
        self._used.set()

    async def used(self) -> None:
        """Wait until a turn uses memory, unless one did since the last call."""
        await self._used.wait()
        self._used.clear()

    def _note_goal(self, user: str, event: MemoryEvent) -> None:
        """Keep a session's first message, and its latest."""
        said = fragments_of(event, user)
        if said:
            goal = replace(said[0], kind="goal")
            held = self._goals.get((user, event.session))
            if held is None and not event.first:
                return  # a resumed session: its first message is in the store
            self._goals[(user, event.session)] = [*(held or [])[:1], goal]

    async def recall(self, user: str, ask: MemoryQuestion) -> Recollection:
        """See `core.ports.Memory`."""
        self._note_use(user)
        opened = await self._upkeep.tried(self._patience())
        if opened is None:
            self._say_not_open()
            return self._without_store(user, ask, self.trouble)
        self._patient = False
        if self._reader.waiting >= _WAITING or (self._late and self._reader.waiting):
            return self._without_store(user, ask, self._slow())
        try:
            async with asyncio.timeout(self._budget):
                rows = await self._recall(opened, user, ask)
        except TimeoutError:
            self._late = True
            return self._without_store(user, ask, self._slow())
        except IactError as error:
            return self._without_store(user, ask, str(error))
        except Exception as error:
            return self._without_store(user, ask, self._upkeep.broke(opened, error))
        if self._late:
            self._late = False
            self._noticed.clear()
        known = {row.id for row in rows}
        rows += [row for row in self._just_said(user, ask) if row.id not in known]
        return Recollection(tuple(rows), self._once(self._upkeep.news))

    def _patience(self) -> float:
        """How long a recall waits for the store to open."""
        return max(self._opening, self._budget) if self._patient else self._budget

    def _say_not_open(self) -> None:
        """Log, once, that a turn goes on without memory because its store is still being opened."""
        if self._patient and not self.trouble:
            _LOG.info(
                "Memory was not open after %.0f ms, so a turn began without it. It is there for later ones.",
                self._patience() * 1000,
            )
        self._patient = False

    async def _recall(self, opened: OpenStore, user: str, ask: MemoryQuestion) -> list[Recalled]:
        text = ranking.wanted(ask)
        (vector,) = await self._embedder.embed([text])
        scopes = _scopes(user, ask.project, ask.session)
        asked = Wanted(text, vector, scopes, ask.now)
        goals, key = self._goals_for(user, ask), (user, ask.session)

        def find() -> tuple[list[Recalled], Fragment | None]:
            stored = opened.reader.goal(*key) if _deep(ask) and key not in self._goals else None
            return opened.reader.recall(ask, asked, [stored] if stored else goals), stored

        rows, stored = await self._reader.run(find)
        if _deep(ask):
            self._goals.setdefault(key, [stored] if stored else [])
        self._upkeep.index(scopes)
        return rows

    def _goals_for(self, user: str, ask: MemoryQuestion) -> list[Fragment]:
        return self._goals.get((user, ask.session), []) if _deep(ask) else []

    def _without_store(self, user: str, ask: MemoryQuestion, why: str) -> Recollection:
        goals = self._goals_for(user, ask)
        chosen = ranking.pinned(goals, ask)
        return Recollection(
            (*(ranking.recalled(one, ask.session, ask.now) for one in chosen), *self._just_said(user, ask)),
            self._once(why),
        )

    def _just_said(self, user: str, ask: MemoryQuestion) -> list[Recalled]:
        """The newest preferences that the user has just stated in another session and that are not stored yet."""
        scopes = _scopes(user, ask.project, ask.session)
        fresh = [
            one
            for event in self._upkeep.unstored(user)
            if event.session != ask.session
            for one in fragments_of(event, user)
            if one.kind == "preference" and one.scope in scopes
        ]
        return [
            ranking.recalled(Scored(Candidate(one, 0.0), 0.0, 1.0, "just said"), ask.session, ask.now)
            for one in fresh[-_JUST_SAID:]
        ]

    def _slow(self) -> str:
        return (
            f"Memory is slow (over {self._budget * 1000:.0f} ms); answers are written without it for now. "
            "A rebuild or a faster disk may help."
        )

    def _once(self, notice: str) -> str:
        if not notice or notice in self._noticed:
            return ""
        self._noticed.add(notice)
        return notice

    # --- people ---

    async def search(
        self, user: str, query: str, *, limit: int, project: str | None, session: str | None
    ) -> list[Recalled]:
        """Search all fragments of the user, or only those that one project and session can see."""
        opened = await self._upkeep.ready(_PATIENCE)
        vector: Sequence[float] = ()
        if query.strip():
            (vector,) = await self._embedder.embed([query])
        narrow = project is not None or session is not None
        try:
            return await self._reader.run(
                lambda: self._search(opened, user, query, vector, limit, narrow, project, session)
            )
        except Exception as error:
            raise MemoryUnavailable(self._upkeep.broke(opened, error)) from error

    def _search(
        self,
        opened: OpenStore,
        user: str,
        query: str,
        vector: Sequence[float],
        limit: int,
        narrow: bool,
        project: str | None,
        session: str | None,
    ) -> list[Recalled]:
        scopes = _scopes(user, project or "", session or "")
        if not narrow:
            scopes = tuple(fragment_set.scope for fragment_set in opened.writer.fragment_sets(user))
        for scope in scopes:
            opened.indexes.build(opened.writer.fragment_set(scope))
        if not query.strip():
            return opened.reader.newest(scopes, limit, self._clock.now())
        return opened.reader.search(Wanted(query, vector, scopes, self._clock.now()), limit, session or "")

    async def show(self, user: str, identity: str) -> Fragment | None:
        """A fragment with all of its fields."""
        opened = await self._upkeep.ready(_PATIENCE)
        found = await self._reader.run(lambda: opened.writer.find(user, identity))
        return found[1].fragment if found else None

    async def forget(self, user: str, ids: Sequence[str]) -> int:
        """See `core.ports.Memory`."""
        gone = await self._upkeep.forget(user, ids)
        self._goals = {key: held for key, held in self._goals.items() if key[0] != user}
        return gone

    async def drop_sessions(self, user: str, sessions: Sequence[str], *, for_good: bool) -> int:
        """See `core.ports.Memory`."""
        gone = await self._upkeep.drop_sessions(user, sessions, for_good=for_good)
        self._goals = {key: held for key, held in self._goals.items() if key[1] not in sessions}
        return gone

    async def edit(self, user: str, identity: str, text: str) -> None:
        """See `core.ports.Memory`."""
        line = " ".join(text.split())
        if not line or len(line) > PASSAGE:
            raise MemoryUnavailable(
                f"A memory must have 1 to {PASSAGE} characters, and this text has {len(line)}. To "
                "remove a memory, forget it."
            )
        await self._upkeep.edit(user, identity, line)
        self._goals = {key: held for key, held in self._goals.items() if key[0] != user}

    async def rebuild(self, user: str, memory_events: Iterable[MemoryEvent] | None) -> int:
        """Empty the user's memory and fill it from events (default: the journals'). Return the number of fragments."""
        found = memory_events if memory_events is not None else await self._upkeep.in_journals(user)
        return await self._upkeep.rebuild(user, found)

    async def maintain(self) -> None:
        """Merge related fragments, if there is a model for it, and remove faded ones.

        Raises:
            MemoryUnavailable: memory can't be read or written now.
        """
        users, self._users = self._users, set()
        for user in sorted(users):
            if self._distill is not None:
                await self.consolidate(user, self._distill, limit=_GROUPS)
            await self._upkeep.let_go(user, self._faded)

    def _faded(self, fragment: Fragment) -> bool:
        return faded(fragment, self._clock.now(), self._weights)

    async def consolidate(self, user: str, distill: Distill, *, limit: int) -> int:
        """Merge related fragments. Return the number of merged groups."""
        opened = await self._upkeep.ready(_PATIENCE)
        done = 0
        for fragment_set in await self._reader.run(lambda: opened.writer.fragment_sets(user)):
            for group in await self._reader.run(partial(_groups, opened, fragment_set)):
                if done >= limit:
                    return done
                done += await self._merge(user, group, distill)
        return done

    async def _merge(self, user: str, group: Sequence[Fragment], distill: Distill) -> bool:
        try:
            answer = await distill(consolidation.prompt(group))
        except IactError:
            return False
        fragment = consolidation.merged(group, answer)
        return fragment is not None and await self._upkeep.merge(user, fragment)


class UserMemory:
    """One user's memory; implements `core.ports.Memory`."""

    def __init__(self, hippocampus: Hippocampus, user: str) -> None:
        self._hippocampus = hippocampus
        self._user = user

    def wake(self) -> None:
        """See `core.ports.Memory`."""
        self._hippocampus.wake()

    def remember(self, event: MemoryEvent) -> None:
        """See `core.ports.Memory`."""
        self._hippocampus.remember(self._user, event)

    async def recall(self, ask: MemoryQuestion) -> Recollection:
        """See `core.ports.Memory`."""
        return await self._hippocampus.recall(self._user, ask)

    async def search(
        self, query: str, *, limit: int = 20, project: str | None = None, session: str | None = None
    ) -> Sequence[Recalled]:
        """All fragments about `query`, or the newest if it is empty. `project`, `session`: only what these can see.

        Raises:
            MemoryUnavailable: memory can't answer.
        """
        return await self._hippocampus.search(
            self._user, query, limit=limit, project=project, session=session
        )

    async def show(self, identity: str) -> MemoryDetails | None:
        """See `core.ports.Memory`."""
        found = await self._hippocampus.show(self._user, identity)
        return readable(found) if found is not None else None

    async def forget(self, ids: Sequence[str]) -> int:
        """Forget these fragments, all others from the same records, and any that were consolidated from them.

        Raises:
            MemoryUnavailable: memory can't be written now; nothing was forgotten.
        """
        return await self._hippocampus.forget(self._user, ids)

    async def drop_sessions(self, sessions: Sequence[str], *, for_good: bool) -> int:
        """See `core.ports.Memory`.

        Raises:
            MemoryUnavailable: memory can't be written now; nothing was removed.
        """
        return await self._hippocampus.drop_sessions(self._user, sessions, for_good=for_good)

    async def edit(self, identity: str, text: str) -> None:
        """Change a fragment's text for good, also where the text occurs in others from the same record.

        Raises:
            MemoryUnavailable: there is no such fragment, the text is empty or too long, or memory can't be
                written now; nothing was changed.
        """
        await self._hippocampus.edit(self._user, identity, text)

    async def rebuild(self, memory_events: Iterable[MemoryEvent] | None = None) -> int:
        """Empty this user's memory and fill it again, by default from all journals. Return the number of fragments.

        Raises:
            MemoryUnavailable: memory can't be written now.
        """
        return await self._hippocampus.rebuild(self._user, memory_events)

    async def consolidate(self, distill: Distill, *, limit: int = 8) -> int:
        """Let a small model merge up to `limit` groups of related fragments. Return the number of merged groups.

        Raises:
            MemoryUnavailable: memory can't be read or written now.
        """
        return await self._hippocampus.consolidate(self._user, distill, limit=limit)


@asynccontextmanager
async def open_hippocampus(
    directory: Path,
    embedder: Embedder,
    *,
    clock: Clock,
    server: str = "",
    journals: Journals | None = None,
    budget: float = BUDGET,
    opening: float = OPENING,
    weights: Weights | None = None,
    open_store: StoreOpener = ChromaStore,
    distill: Distill | None = None,
    beside: Path | None = None,
) -> AsyncIterator[Hippocampus]:
    """Open a memory in `directory` (or at the Chroma server `server`), in the background at its first use.

    Opening this context never fails.

    `budget`: seconds that a turn waits for a recall; `opening`: those that the first may wait for the store to open.
    `distill`: the model that merges related fragments while the memory is idle. `beside`: a directory for a copy of the
    decisions, in case `directory` is lost. `journals`: where to catch up from after a crash, damage or a time
    without a store. On exit, queued events are written, within ten seconds.
    """
    _share_heap()
    weights = weights or Weights()
    upkeep = Upkeep(
        directory,
        embedder,
        clock=clock,
        server=server,
        journals=journals,
        weights=weights,
        open_store=open_store,
        beside=beside,
    )
    hippocampus = Hippocampus(upkeep, embedder, clock, budget, weights, distill, opening)
    failure: Exception | None = None
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(upkeep.serve(), name="hippocampus")
        maintenance = tasks.create_task(maintain_when_idle(hippocampus, clock), name="hippocampus at rest")
        try:
            yield hippocampus
        except Exception as error:  # the caller's own: it must not be raised in a group
            failure = error
        finally:
            maintenance.cancel()
            await upkeep.finish(_PATIENCE)
            serving.cancel()
            await upkeep.close()
            await hippocampus.close()
    if failure is not None:
        raise failure


def _deep(ask: MemoryQuestion) -> bool:
    """Whether the agent is so far from the user that it may not know the overall goal, and could use it."""
    return ask.agent.strip("/").count("/") >= 1 and not any(
        ranking.closed(task) for task in (ask.input, *ask.recent[:1])
    )


def _scopes(user: str, project: str, session: str) -> tuple[MemoryScope, ...]:
    found = [MemoryScope(user, "user")]
    if project:
        found.append(MemoryScope(user, "project", project))
    if session:
        found.append(MemoryScope(user, "session", session))
    return tuple(found)


def _groups(opened: OpenStore, fragment_set: FragmentSet) -> list[list[Fragment]]:
    return consolidation.groups(opened.writer.hits(fragment_set))


def _share_heap() -> None:
    """Make threads that start from now on share the heap of the C library, if that is glibc.

    Otherwise each thread gets its own heap, and Chroma's threads leave theirs fragmented: 20,000 fragments took a fifth
    more memory.
    """
    allocator = ctypes.CDLL(None)
    if hasattr(allocator, "mallopt"):
        allocator.mallopt(_ARENAS, 1)
