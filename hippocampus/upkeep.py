"""Maintains memory in the background while turns go on: one task that opens the store and makes all changes to it.

    opening ──▶ open ──▶ (a call fails) ──▶ down ──▶ (30 s, or longer if nobody asks) ──▶ opening
       └──▶ down (locked, unwritable, no server)

Missed events (by a crash, a lock, damage, a full queue) are noted by a marker file, and recovered from the journals:
they are the truth, and memory is an index of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from iact.core.errors import IactError, MemoryUnavailable
from iact.core.ports import Clock, Embedder, NewStatement
from iact.hippocampus.embedding import noise_floor
from iact.hippocampus.jobs import AwaitedJob, BackgroundJob, MemoryJob, Note, Result
from iact.hippocampus.lifecycle import OpenStore, StoreLifecycle, StoreOpener
from iact.hippocampus.marker_files import MarkerFiles
from iact.hippocampus.ranking import Weights
from iact.hippocampus.statement import statement_of
from iact.hippocampus.worker import Worker

_QUEUE: Final = 10_000
_BATCH: Final = 64
_REINDEX: Final = 512

RETRY: Final = 30.0
"""Seconds between two attempts to open a store that failed."""

Journals: TypeAlias = Callable[[], Iterable[tuple[str, NewStatement]]]
"""All statements of all journals, each with its user, in the order of each journal. Blocking; run in a thread."""


class Upkeep:
    """Owns the store. `serve` is its task; everything else may be called from the loop at any time."""

    def __init__(
        self,
        directory: Path,
        embedder: Embedder,
        *,
        clock: Clock,
        server: str,
        journals: Journals | None,
        weights: Weights,
        open_store: StoreOpener,
        beside: Path | None = None,
    ) -> None:
        self._embedder = embedder
        self._clock = clock
        self._journals = journals
        self._markers = MarkerFiles(directory)
        self._lifecycle = StoreLifecycle(
            directory, server, embedder.name, weights, self._markers, open_store, beside, clock
        )
        self._worker = Worker("writing")
        self._queue: asyncio.Queue[Note | MemoryJob] = asyncio.Queue(_QUEUE)

        # The store.
        self.opened: OpenStore | None = None
        """The store, while it is open."""
        self.trouble = ""
        """Why it is not, as a sentence; empty before the first attempt to open it."""
        self.news = ""
        """What people are told about it, once."""
        self._wanted = asyncio.Event()
        """Set once the store is needed."""
        self._tried = asyncio.Event()
        """Set once it was attempted to open it."""
        self._retry_at = 0.0
        """When that, or a catch-up, may be attempted again, by the clock's monotonic time."""
        self._broken: OpenStore | None = None
        """A store that failed, and is still to be closed."""
        self._suspect = False
        """Whether it may be damaged."""

        # What it lacks.
        self._missed = False
        """Whether statements were not stored, so that it must catch up from the journals."""
        self._marked = False
        """Whether a marker file says that this process has statements to remember but no store."""

    # --- from the loop ---

    def note(self, note: Note) -> None:
        """Queue a statement to remember. If the queue is full, it is caught up from the journals later."""
        if self.opened is None and not self._marked:
            self._marked = True
            self._markers.leave()
        try:
            self._queue.put_nowait(note)
        except asyncio.QueueFull:
            self._missed = True

    def wake(self) -> None:
        """Open the store, unless that was tried. If it was down, try again when it is time."""
        self._wanted.set()
        if self.trouble and self._may_retry:
            self.aside(_nothing)

    def broke(self, opened: OpenStore, error: Exception) -> str:
        """Handle a failed call to the store: close it, and open it again later. Return a sentence about it."""
        if self.opened is not opened:
            return self.trouble

        self.opened = None
        self._broken = opened
        self._suspect = True
        self._retry_at = self._clock.monotonic() + RETRY
        self.trouble = (
            f"Memory failed ({type(error).__name__}: {error}); turns continue without it. It is "
            f"opened again after {RETRY:.0f} s and brought up to date from the journals."
        )
        self._tried.set()
        return self.trouble

    async def tried(self, patience: float) -> OpenStore | None:
        """The open store, or None if it is not open within `patience` seconds."""
        self.wake()
        if self.opened is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._tried.wait()
        return self.opened

    async def ready(self, patience: float) -> OpenStore:
        """The open store.

        Raises:
            MemoryUnavailable: it is down, or not open after `patience` seconds.
        """
        opened = await self.tried(patience)
        if opened is None:
            raise MemoryUnavailable(
                self.trouble or f"Memory is not open after {patience:.0f} s; try again later."
            )
        return opened

    async def settled(self) -> None:
        """Open the store if that was not tried, and wait until everything queued so far is done or given up."""
        self._wanted.set()
        await self._tried.wait()
        await self._queue.join()

    async def finish(self, patience: float) -> None:
        """Let queued jobs be done, within `patience` seconds."""
        if not self._queue.empty():
            self._wanted.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._queue.join()

    async def close(self) -> None:
        """Close the store, after `serve` has ended. Events that were not written are noted as missed."""
        opened = self.opened or self._broken
        self.opened = None
        has_missed = self._missed or not self._queue.empty() or self._broken is not None
        while not self._queue.empty():
            job = self._queue.get_nowait()
            if not isinstance(job, Note):
                job.refuse(MemoryUnavailable("Memory was closed before that was done; try again."))

        if opened is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await self._worker.run(lambda: self._lifecycle.close(opened, missed=has_missed))
        elif has_missed:
            self._markers.leave()
        else:
            self._markers.withdraw()
        await self._worker.close(1.0)

    # --- jobs ---

    async def forget(self, user: str, ids: Sequence[str]) -> int:
        """Remove statements for good. Return how many were removed."""

        async def act(opened: OpenStore) -> int:
            gone = await self._worker.run(lambda: opened.writer.with_ids(user, ids))
            if not gone:
                return 0
            # Decided first: if what follows is cut off, they come back at no catch-up.
            opened.decisions.forget(statement.id for statement in gone)
            await self._worker.run(lambda: opened.writer.remove(user, gone))
            return len(gone)

        return await self._order(act)

    async def forget_all(self, user: str) -> int:
        """Remove all statements of a user for good, and what journals would bring of them. Return how many there were."""

        async def act(opened: OpenStore) -> int:
            gone = await self._worker.run(lambda: opened.writer.everything(user))
            opened.decisions.forget_all(user, [statement.id for statement in gone])
            await self._worker.run(lambda: opened.writer.clear(user, for_good=True))
            await self._worker.run(self._lifecycle.remove_damaged)
            return len(gone)

        return await self._order(act)

    async def drop_sessions(self, user: str, sessions: Sequence[str], *, for_good: bool) -> int:
        """Remove the statements of these sessions. Return their number. `for_good`: also remove decisions about them."""

        async def act(opened: OpenStore) -> int:
            gone = await self._worker.run(lambda: opened.writer.of_sessions(user, sessions))
            if gone:
                await self._worker.run(lambda: opened.writer.remove(user, gone))

            if for_good:
                opened.decisions.drop(sessions)
                await self._worker.run(self._lifecycle.remove_damaged)
            return len(gone)

        return await self._order(act)

    async def edit(self, user: str, identity: str, text: str) -> None:
        """Change a statement's text for good."""

        async def act(opened: OpenStore) -> None:
            place = await self._worker.run(lambda: opened.writer.find(user, identity))
            if place is None:
                raise MemoryUnavailable(f"There is no memory {identity!r}; list them with a search.")

            (vector,) = await self._embedder.embed([text])
            opened.decisions.edit(identity, text)
            await self._worker.run(lambda: opened.writer.rewrite(user, identity, text, vector))

        await self._order(act)

    async def in_journals(self, user: str) -> list[NewStatement]:
        """All statements of a user in the journals."""
        journals = self._journals
        if journals is None:
            return []
        return await asyncio.to_thread(
            lambda: [statement for owner, statement in journals() if owner == user]
        )

    async def rebuild(self, user: str, statements: Iterable[NewStatement]) -> int:
        """Empty a user's memory and fill it. Return how many statements it then has."""
        notes = [Note(user, statement) for statement in statements]

        async def act(opened: OpenStore) -> int:
            await self._worker.run(lambda: opened.writer.clear(user))
            return await self._add_all(opened, notes)

        return await self._order(act)

    async def _order(self, act: Callable[[OpenStore], Awaitable[Result]]) -> Result:
        """Queue a job, and wait for its result. Raises MemoryUnavailable."""
        job = AwaitedJob(act)
        self.wake()
        try:
            self._queue.put_nowait(job)
        except asyncio.QueueFull as error:
            raise MemoryUnavailable("Memory is too busy for that now; try again in a minute.") from error
        return await job.done

    def aside(self, act: Callable[[OpenStore], Awaitable[None]]) -> None:
        """Do `act` in the background, if the store opens at all."""
        with suppress(asyncio.QueueFull):
            self._queue.put_nowait(BackgroundJob(act))

    # --- the task ---

    async def serve(self) -> None:
        """Wait until the store is needed, open it, then do queued jobs, until cancelled.

        Opening takes a second or two of processor time, which a program start should not spend.
        """
        await self._wanted.wait()
        await self._open()
        while True:
            notes, job = await self._next()
            taken = len(notes) + (job is not None)
            try:
                await self._work(notes, job)
            finally:
                for _ in range(taken):
                    self._queue.task_done()

    async def _next(self) -> tuple[list[Note], MemoryJob | None]:
        """Waiting notes, and the job after them, if there is one."""
        notes: list[Note] = []
        job = await self._queue.get()
        while isinstance(job, Note):
            notes.append(job)
            if len(notes) == _BATCH or self._queue.empty():
                return notes, None
            job = self._queue.get_nowait()
        return notes, job

    async def _work(self, notes: Sequence[Note], job: MemoryJob | None) -> None:
        """Store statements, do the job after them, and catch up if something is missing."""
        if self.opened is None and self._may_retry:
            await self._open()
        opened = self.opened
        if opened is None:
            self._missed = self._missed or bool(notes)
            if job is not None:
                job.refuse(MemoryUnavailable(self.trouble))
            return

        if notes and not await self._guarded(opened, self._add(opened, notes)):
            self._missed = True
        if job is not None:
            await self._carry_out(opened, job)

        self._missed = self._missed or self._markers.left()
        is_still_open = self.opened is opened
        if self._missed and is_still_open and self._may_retry:
            await self._guarded(opened, self._catch_up(opened))

    @property
    def _may_retry(self) -> bool:
        return self._clock.monotonic() >= self._retry_at

    async def _carry_out(self, opened: OpenStore, job: MemoryJob) -> None:
        """Do a job. If it fails, only its caller gets the error."""
        if self.opened is not opened:
            job.refuse(MemoryUnavailable(self.trouble))
            return

        try:
            await job.run(opened)
        except MemoryUnavailable as error:
            job.refuse(error)
        except IactError as error:
            job.refuse(MemoryUnavailable(str(error)))
        except Exception as error:
            job.refuse(MemoryUnavailable(self.broke(opened, error)))

    async def _guarded(self, opened: OpenStore, work: Coroutine[object, object, object]) -> bool:
        """Do maintenance work and return whether it succeeded. Errors are reported, and it is tried again later."""
        try:
            await work
        except IactError as error:
            self._retry_at = self._clock.monotonic() + RETRY
            self.news = str(error)
            return False
        except Exception as error:
            self.broke(opened, error)
            return False
        return True

    async def _add(self, opened: OpenStore, notes: Sequence[Note]) -> int:
        """Store the statements of notes. Return their number."""
        # Of two with one id, the later one.
        by_id = {
            statement.id: statement
            for statement in (statement_of(note.statement, note.user) for note in notes)
        }
        decided = [
            replace(statement, text=opened.decisions.text(statement))
            for statement in by_id.values()
            if not opened.decisions.forgotten(statement)
        ]

        # Embedding takes time, and nearly all that a catch-up brings is stored.
        stored = await self._worker.run(lambda: opened.writer.stored(decided))
        fresh = [statement for statement in decided if statement.id not in stored]
        if fresh:
            vectors = await self._embedder.embed([statement.text for statement in fresh])
            await self._worker.run(lambda: opened.writer.add(fresh, vectors))
        return len(decided)

    async def _add_all(self, opened: OpenStore, notes: Sequence[Note]) -> int:
        """The same for many notes, oldest first."""
        ordered = sorted(notes, key=_in_order)
        count = 0
        for start in range(0, len(ordered), _BATCH):
            count += await self._add(opened, ordered[start : start + _BATCH])
        return count

    async def _catch_up(self, opened: OpenStore) -> None:
        """Add events from the journals that the store lacks."""
        journals = self._journals
        if journals is None:
            return

        # Removed before the journals are read: markers left meanwhile count the next time.
        self._markers.heed()
        notes = await asyncio.to_thread(lambda: [Note(user, statement) for user, statement in journals()])
        await self._add_all(opened, notes)
        self._missed = False

    # --- opening ---

    async def _open(self) -> None:
        """Try to open the store; sets `opened` or `trouble`."""
        broken = self._broken
        self._broken = None
        if broken is not None:
            with suppress(Exception):
                await self._worker.run(lambda: self._lifecycle.close(broken, missed=True))

        try:
            await self._worker.run(self._lifecycle.look)
            floor = await noise_floor(self._embedder)
            opened = await self._worker.run(lambda: self._lifecycle.open(floor, suspect=self._suspect))
        except MemoryUnavailable as error:
            self._failed_to_open(str(error))
        except Exception as error:
            self._failed_to_open(
                f"Memory can't be opened ({type(error).__name__}: {error}); turns continue without it."
            )
        else:
            self.opened = opened
            self.trouble = ""
            self.news = opened.news or self.news
            self._suspect = False
            self._missed = self._missed or opened.lacking
            self._retry_at = 0.0
            self.aside(self._reindex)
        finally:
            self._tried.set()

    def _failed_to_open(self, trouble: str) -> None:
        self.trouble = trouble
        self._retry_at = self._clock.monotonic() + RETRY

    # --- in the background ---

    async def _reindex(self, opened: OpenStore) -> None:
        """Embed again the statements of another embedder's sets, and remove those sets."""
        for statement_set in await self._worker.run(opened.writer.foreign):
            statements = await self._worker.run(partial(opened.writer.texts, statement_set))
            for start in range(0, len(statements), _REINDEX):
                part = statements[start : start + _REINDEX]
                vectors = await self._embedder.embed([statement.text for statement in part])
                await self._worker.run(partial(opened.writer.carry, part, vectors))

            await self._worker.run(partial(opened.writer.drop, statement_set))


async def _nothing(opened: OpenStore) -> None:
    """A job that only wakes the task."""


def _in_order(note: Note) -> tuple[str, int, int]:
    return note.statement.at, note.statement.record, note.statement.ordinal
