"""The Hippocampus: a memory next to the tree that never delays it.

    remember ──▶ queue ──▶ the upkeep task ──▶ writing thread ──▶ store
    recall ───────────────────────────────▶ reading thread ──▶ store     within the time budget, or nothing

`Upkeep` owns everything that changes; this file answers the queries while turns go on. While the store is not open yet,
slow or gone, there is no answer, and people are told so once.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from iact.core.errors import IactError, MemoryUnavailable
from iact.core.ports import (
    LONGEST_STATEMENT,
    Clock,
    Embedder,
    MemoryDetails,
    MemoryQuestion,
    NewStatement,
    Recalled,
    Recollection,
    StandingQuestion,
)
from iact.hippocampus import ranking
from iact.hippocampus.jobs import Note
from iact.hippocampus.lifecycle import OpenStore, StoreOpener
from iact.hippocampus.ranking import Weights
from iact.hippocampus.reader import Wanted
from iact.hippocampus.statement import MemoryScope, Statement, readable
from iact.hippocampus.store import ChromaStore
from iact.hippocampus.switch import SwitchFile
from iact.hippocampus.upkeep import Journals, Upkeep
from iact.hippocampus.worker import Worker

_LOG: Final = logging.getLogger(__name__)

BUDGET: Final = 0.150
"""Seconds that a turn waits for a recall."""

OPENING: Final = 30.0
"""Seconds that the first turn of a program waits instead, in all, so that it has its memory. Opening takes about 0.6 s
of processor time, mostly beside the start of the session; only a busy machine needs more, and is slow in all else, too."""

ATTENDED: Final = 3.0
"""The same where a person waits for the answer: the next turn has what this one lacks."""

_WRITTEN: Final = 0.5
"""Seconds of these that it waits, at most, for what was stated a moment ago to be stored."""

_NOTICEABLE: Final = 1.0
"""Seconds of waiting for the store to open from which the log says so."""

_WAITING: Final = 32
"""Questions in the reading thread's queue above which another one would be too late anyway."""

_PATIENCE: Final = 10.0
"""Seconds that a person's search waits for the store to open, and that closing waits for queued jobs."""

_ARENAS: Final = -8
"""`M_ARENA_MAX` of glibc's `malloc.h`."""

_PERTURB: Final = -6
"""`M_PERTURB` of glibc's `malloc.h`."""

_FILLED: Final = 0x55
"""What freed memory is filled with."""


class Hippocampus:
    """The memory of all users of one directory or Chroma server. Created by `open_hippocampus`."""

    def __init__(
        self,
        upkeep: Upkeep,
        embedder: Embedder,
        clock: Clock,
        switches: SwitchFile,
        budget: float,
        opening: float,
    ) -> None:
        self._upkeep = upkeep
        self._embedder = embedder
        self._clock = clock
        self.switches: Final = switches
        """Who has switched memory off."""
        self._reader = Worker("reading")

        # How long a turn waits.
        self._budget = budget
        self._opening = opening
        self._is_first_turn = True
        """Whether no turn has had its answers yet, so that the questions of this one may wait longer."""
        self._first_until: float | None = None
        """When that ends; None before the first question."""
        self._late = False
        """Whether the newest answer came too late, or not yet."""
        self._noticed: set[str] = set()
        """What people were told."""

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

    def remember(self, user: str, statement: NewStatement) -> None:
        """Queue a statement."""
        self._upkeep.note(Note(user, statement))

    async def standing(self, user: str, ask: StandingQuestion) -> Recollection:
        """See `core.ports.Memory`."""
        seconds = self._time_to_write()

        async def answer(opened: OpenStore) -> list[Recalled]:
            await self._written(seconds)
            return await self._reader.run(lambda: opened.reader.standing(user, ask))

        return await self._in_time(answer, ends_first=False)

    async def recall(self, user: str, ask: MemoryQuestion) -> Recollection:
        """See `core.ports.Memory`."""
        # A later turn has waited for that when its session began, if it did.
        seconds = self._time_to_write() if self._is_first_turn else 0.0

        async def answer(opened: OpenStore) -> list[Recalled]:
            if seconds:
                await self._written(seconds)
            text = ranking.wanted(ask)
            (vector,) = await self._embedder.embed([text])
            query = Wanted(text, vector, _scopes(user, ask.project, ask.session), ask.now)
            return await self._reader.run(lambda: opened.reader.recall(ask, query))

        return await self._in_time(answer)

    def _time_to_write(self) -> float:
        """How long a question waits for what was stated a moment ago, perhaps in another session, to be stored."""
        return min(max(_WRITTEN, self._budget), self._patience() / 2)

    async def _written(self, seconds: float) -> None:
        """Wait until all that was stated by now is stored, but no longer than that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._upkeep.settled()

    async def _in_time(
        self, answer: Callable[[OpenStore], Awaitable[list[Recalled]]], *, ends_first: bool = True
    ) -> Recollection:
        """The answer to a turn's question, within the time budget, or none. `ends_first`: it is the last of its turn."""
        opened = await self._tried()
        if opened is None:
            self._say_not_open()
            return Recollection((), self._once(self.trouble))

        patience = self._patience()
        if ends_first:
            self._is_first_turn = False
        if self._is_hopeless():
            return Recollection((), self._once(self._slow()))

        try:
            async with asyncio.timeout(patience):
                rows = await answer(opened)
        except TimeoutError:
            self._late = True
            return Recollection((), self._once(self._slow()))
        except IactError as error:
            return Recollection((), self._once(str(error)))
        except Exception as error:
            return Recollection((), self._once(self._upkeep.broke(opened, error)))

        # It is quick again: whatever happens next is told of again.
        if self._late:
            self._late = False
            self._noticed.clear()
        return Recollection(tuple(rows), self._once(self._upkeep.news))

    def _is_hopeless(self) -> bool:
        """Whether another question would be answered too late, and make others wait."""
        if self._reader.waiting >= _WAITING:
            return True
        return self._late and self._reader.waiting > 0

    async def _tried(self) -> OpenStore | None:
        """The open store; None if it did not open in time."""
        began = self._clock.monotonic()
        opened = await self._upkeep.tried(self._patience())
        waited = self._clock.monotonic() - began
        if opened is not None and waited >= _NOTICEABLE:
            _LOG.info("A turn waited %.1f s for memory to open.", waited)
        return opened

    def _patience(self) -> float:
        """How long a question may wait from now on: what is left of the first turn's time, or else the budget."""
        if not self._is_first_turn:
            return self._budget

        now = self._clock.monotonic()
        if self._first_until is None:
            self._first_until = now + self._opening
        return max(self._first_until - now, self._budget)

    def _say_not_open(self) -> None:
        """Log, once, that a turn goes on without memory because its store is still being opened."""
        if self._is_first_turn and not self.trouble:
            _LOG.info(
                "Memory was not open after %.0f ms, so a turn began without it. It is there for later ones.",
                max(self._opening, self._budget) * 1000,
            )
        self._is_first_turn = False

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
        """Search all statements of the user, or only those that one project and session can see."""
        opened = await self._upkeep.ready(_PATIENCE)
        vector: Sequence[float] = ()
        if query.strip():
            (vector,) = await self._embedder.embed([query])

        is_narrow = project is not None or session is not None

        def find() -> list[Recalled]:
            scopes = _scopes(user, project or "", session or "")
            if not is_narrow:
                scopes = tuple(statement_set.scope for statement_set in opened.writer.statement_sets(user))

            now = self._clock.now()
            if not query.strip():
                return opened.reader.newest(scopes, limit, now)
            wanted = Wanted(query, vector, scopes, now)
            return opened.reader.search(wanted, limit, session or "", with_neighbours=is_narrow)

        try:
            return await self._reader.run(find)
        except Exception as error:
            raise MemoryUnavailable(self._upkeep.broke(opened, error)) from error

    async def show(self, user: str, identity: str) -> Statement | None:
        """A statement with all of its fields."""
        opened = await self._upkeep.ready(_PATIENCE)
        place = await self._reader.run(lambda: opened.writer.find(user, identity))
        return None if place is None else place[1].statement

    async def forget(self, user: str, ids: Sequence[str]) -> int:
        """See `core.ports.Memory`."""
        return await self._upkeep.forget(user, ids)

    async def forget_all(self, user: str) -> int:
        """See `core.ports.Memory`."""
        return await self._upkeep.forget_all(user)

    async def drop_sessions(self, user: str, sessions: Sequence[str], *, for_good: bool) -> int:
        """See `core.ports.Memory`."""
        return await self._upkeep.drop_sessions(user, sessions, for_good=for_good)

    async def edit(self, user: str, identity: str, text: str) -> None:
        """See `core.ports.Memory`."""
        line = " ".join(text.split())
        if not line or len(line) > LONGEST_STATEMENT:
            raise MemoryUnavailable(
                f"A memory must have 1 to {LONGEST_STATEMENT} characters, and this text has {len(line)}. To "
                "remove a memory, forget it."
            )
        await self._upkeep.edit(user, identity, line)

    async def rebuild(self, user: str, statements: Iterable[NewStatement] | None) -> int:
        """Empty the user's memory and fill it, by default from the journals. Return the number of statements."""
        if statements is None:
            statements = await self._upkeep.in_journals(user)
        return await self._upkeep.rebuild(user, statements)


class UserMemory:
    """One user's memory; implements `core.ports.Memory`."""

    def __init__(self, hippocampus: Hippocampus, user: str) -> None:
        self._hippocampus = hippocampus
        self._user = user

    @property
    def on(self) -> bool:
        """See `core.ports.Memory`."""
        return self._hippocampus.switches.is_on(self._user)

    def switch(self, value: bool) -> None:
        """See `core.ports.Memory`.

        Raises:
            MemoryUnavailable: the switch can't be stored.
        """
        self._hippocampus.switches.switch(self._user, value)

    def wake(self) -> None:
        """See `core.ports.Memory`."""
        self._hippocampus.wake()

    def remember(self, statement: NewStatement) -> None:
        """See `core.ports.Memory`."""
        self._hippocampus.remember(self._user, statement)

    async def standing(self, ask: StandingQuestion) -> Recollection:
        """See `core.ports.Memory`."""
        return await self._hippocampus.standing(self._user, ask)

    async def recall(self, ask: MemoryQuestion) -> Recollection:
        """See `core.ports.Memory`."""
        return await self._hippocampus.recall(self._user, ask)

    async def search(
        self, query: str, *, limit: int = 20, project: str | None = None, session: str | None = None
    ) -> Sequence[Recalled]:
        """All statements about `query`, or the newest if it is empty. `project`, `session`: only what these can see.

        Raises:
            MemoryUnavailable: memory can't answer.
        """
        return await self._hippocampus.search(
            self._user, query, limit=limit, project=project, session=session
        )

    async def show(self, identity: str) -> MemoryDetails | None:
        """See `core.ports.Memory`."""
        statement = await self._hippocampus.show(self._user, identity)
        return None if statement is None else readable(statement)

    async def forget(self, ids: Sequence[str]) -> int:
        """Forget these statements.

        Raises:
            MemoryUnavailable: memory can't be written now; nothing was forgotten.
        """
        return await self._hippocampus.forget(self._user, ids)

    async def forget_all(self) -> int:
        """See `core.ports.Memory`.

        Raises:
            MemoryUnavailable: memory can't be written now; nothing was forgotten.
        """
        return await self._hippocampus.forget_all(self._user)

    async def drop_sessions(self, sessions: Sequence[str], *, for_good: bool) -> int:
        """See `core.ports.Memory`.

        Raises:
            MemoryUnavailable: memory can't be written now; nothing was removed.
        """
        return await self._hippocampus.drop_sessions(self._user, sessions, for_good=for_good)

    async def edit(self, identity: str, text: str) -> None:
        """Change a statement's text for good.

        Raises:
            MemoryUnavailable: there is no such statement, the text is empty or too long, or memory can't be
                written now; nothing was changed.
        """
        await self._hippocampus.edit(self._user, identity, text)

    async def rebuild(self, statements: Iterable[NewStatement] | None = None) -> int:
        """Empty this user's memory and fill it again, by default from all journals. Return the number of statements.

        Raises:
            MemoryUnavailable: memory can't be written now.
        """
        return await self._hippocampus.rebuild(self._user, statements)


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
    beside: Path | None = None,
) -> AsyncIterator[Hippocampus]:
    """Open a memory in `directory` (or at the Chroma server `server`), in the background at its first use.

    Opening this context never fails.

    `budget`: seconds that a turn waits for a recall; `opening`: those that the first may wait for the store to open.
    `beside`: a directory for a copy of the decisions, in case `directory` is lost, and for the switches. `journals`: where to catch up from
    after a crash, damage or a time without a store. On exit, queued statements are written, within ten seconds.
    """
    _set_up_heap()
    upkeep = Upkeep(
        directory,
        embedder,
        clock=clock,
        server=server,
        journals=journals,
        weights=weights or Weights(),
        open_store=open_store,
        beside=beside,
    )
    switches = SwitchFile(beside or directory, clock)
    hippocampus = Hippocampus(upkeep, embedder, clock, switches, budget, opening)

    failure: Exception | None = None
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(upkeep.serve(), name="hippocampus")
        try:
            yield hippocampus
        except Exception as error:  # the caller's own: it must not be raised in a group
            failure = error
        finally:
            await upkeep.finish(_PATIENCE)
            serving.cancel()
            await upkeep.close()
            await hippocampus.close()
    if failure is not None:
        raise failure


def _scopes(user: str, project: str, session: str) -> tuple[MemoryScope, ...]:
    """Where statements are that an agent of this project and session can see."""
    scopes = [MemoryScope(user, "person")]
    if project:
        scopes.append(MemoryScope(user, "project", project))
    if session:
        scopes.append(MemoryScope(user, "session", session))
    return tuple(scopes)


def _set_up_heap() -> None:
    """Make threads that start from now on share the heap of the C library, if that is glibc, and clear what is freed.

    Otherwise each thread gets its own heap, and Chroma's threads leave theirs fragmented: 20,000 statements took a fifth
    more memory. And Chroma writes room for more vectors from memory that it has not set, where a forgotten text may stand.
    """
    allocator = ctypes.CDLL(None)
    if hasattr(allocator, "mallopt"):
        allocator.mallopt(_ARENAS, 1)
        allocator.mallopt(_PERTURB, _FILLED)
