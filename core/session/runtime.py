"""Opens sessions, new ones and stored ones. One process, one data directory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final

from iact.core.clock import SystemClock
from iact.core.context.tail import LAYOUT
from iact.core.errors import (
    IactError,
    JournalCorrupt,
    JournalError,
    JournalUnwritable,
    MemoryUnavailable,
    SandboxError,
    Superseded,
    UsageError,
)
from iact.core.gate.grant import Grant
from iact.core.gate.hosts import Rule
from iact.core.gate.level import level
from iact.core.gate.policy import Policy
from iact.core.gate.policy_file import DEFAULT, Policies, policy_json
from iact.core.journal.file import Contents, Journal
from iact.core.journal.stores import JournalStore
from iact.core.models.roles import Models
from iact.core.modules.approval import FILE as APPROVALS
from iact.core.modules.approval import Approvals
from iact.core.modules.invoker import Invoker, OpenModules
from iact.core.ports import (
    Clock,
    ConcurrencyLimits,
    Memory,
    ModelQuota,
    ModuleHost,
    ModuleSource,
    OpenLayer,
    OpenLive,
    Versions,
)
from iact.core.records.control import SetPolicy
from iact.core.records.kinds import FORMAT
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.records.session import Close, Migrate, Open
from iact.core.session.distilling import DistilOutcome
from iact.core.session.files import open_files
from iact.core.session.live import Live
from iact.core.session.models import chosen
from iact.core.session.money import MoneyBudget
from iact.core.session.monitor import Authorities
from iact.core.session.person import acting_user
from iact.core.session.services import Services
from iact.core.session.session import Session
from iact.core.session.slots import SessionSlots
from iact.core.session.status_watch import SessionStatuses, StatusWatcher
from iact.core.session.unneeded import UnneededSessions
from iact.core.stored.adopt import Terms
from iact.core.stored.catalogue import ModuleCatalogue
from iact.core.stored.deletion import Deletion, DeletionOutcome, OpenMemory, Retention, lent
from iact.core.stored.experience import FILE, NEWEST, Experience
from iact.core.stored.fork import new_session
from iact.core.stored.garbage_collection import collector_paused
from iact.core.stored.index import TextHits
from iact.core.stored.listing import EMPTY, SessionInfo, ToldRow
from iact.core.stored.policy import read_policies
from iact.core.stored.shared_list import SharedList
from iact.core.stored.store import SearchResult, SessionStore
from iact.core.stored.templates import Templates
from iact.core.stored.undistilled import UndistilledSessions
from iact.core.tree import module_states
from iact.core.tree.apply import lost_at, read_tree
from iact.core.tree.roles import Role
from iact.core.tree.tree import Tree
from iact.core.views.figures import Figures, Workload, workload
from iact.core.views.known_modules import KnownModule

_LOG: Final = logging.getLogger(__name__)
_NAMED: Final = 5
"""How many lost values a notice names."""
_ROOM: Final = 64 * 1024
"""How many bytes must be writable before a session that stopped for lack of space goes on."""
_RESTED: Final = 600.0
"""Seconds without a record after which a session counts as ended, and is distilled."""

_LEFT: Final = 20
"""How many sessions that were closed too early are distilled at a time."""

_CLOSING: Final = 16
"""How many sessions are closed at a time when the runtime ends."""

_SENT_AGAIN: Final = timedelta(hours=1)
"""For how long a message that began a session may be sent again, because the line lost its answer."""

_TENDING: Final = 3600.0
"""Seconds between two runs of tidying up."""
_LOOKING: Final = 60.0
"""The most seconds between two looks which sessions are not needed."""
_SETTLING: Final = 0.05
"""Seconds between a change of a session and reporting it to other hosts."""
_HEARING: Final = 5.0
"""Seconds between two readings of other hosts' session lists."""
_SLICE: Final = 0.2
"""For how many seconds journals are read at a time in the background."""

Observe = Callable[[Sequence[Record]], Callable[[Record], None]]
"""Takes the records that a session has when it is opened, and returns a function that takes each later record once it
is on disk. Neither may block or fail."""


SearchElsewhere = Callable[[str, int], Awaitable[Sequence[TextHits]]]
"""Searches the texts of sessions on other hosts, with a maximum number of results for each host."""


class Runtime:
    """All sessions of one data directory.

    Use it as an asynchronous context manager. Leaving it closes every session, and no task, container, socket or
    temporary file is left behind.
    """

    def __init__(
        self,
        data: Path,
        models: Models,
        host: ModuleHost,
        *,
        clock: Clock | None = None,
        bounds: Bounds | None = None,
        policies: Callable[[], Policies] | None = None,
        scope: str = DEFAULT,
        authorities: Authorities | None = None,
        workspace: Path | None = None,
        open_modules: OpenModules = Invoker,
        memory: Memory | None = None,
        versions: Versions | None = None,
        open_live: OpenLive | None = None,
        open_layer: OpenLayer | None = None,
        warm: Sequence[str] = (),
        warm_live: Sequence[str] = (),
        retention: Retention | None = None,
        memory_at_rest: OpenMemory | None = None,
        egress: Iterable[Rule] = (),
        journals: JournalStore | None = None,
        others: SharedList | None = None,
        search_elsewhere: SearchElsewhere | None = None,
        user: str = "",
        observe: Observe | None = None,
        limits: ConcurrencyLimits | None = None,
    ) -> None:
        """`policies`: reads the available scopes whenever a session is opened; by default from `data`.

        `scope`: of new sessions. `egress`: hosts that modules may reach under any policy. `retention`: how long
        sessions are kept. `memory_at_rest`: if sessions have no memory now, opens the memory of earlier sessions, so
        that deleted ones can be forgotten. `journals`: where they are kept; by default in the data directory. `others`:
        the list in which hosts publish their sessions. `search_elsewhere`: searches the texts of the sessions on other
        hosts. `limits`: how many sessions may be at work at the same time. `user`: the owner of the sessions, for the
        log. `observe`: called for each session that is opened, and for its records.
        """
        self._policies = policies or partial(read_policies, data)
        self._scope = scope
        self._egress = frozenset(egress)
        given = authorities or Authorities()
        approvals = given.approvals or Approvals(data / APPROVALS)
        self._clock: Clock = clock or SystemClock()
        self._data: Final = data
        self.catalogue: Final = ModuleCatalogue(host, approvals)
        self.store: Final = SessionStore(
            data, clock=self._clock, versions=versions, indexed=True, journals=journals, others=others
        )
        self.templates: Final = Templates(data)
        self._services = Services(
            models=models,
            host=host,
            clock=self._clock,
            open_modules=open_modules,
            authorities=replace(given, approvals=approvals),
            experience=Experience(data / FILE),
            memory=memory,
            versions=versions,
            open_live=open_live,
            open_layer=open_layer,
            warm=tuple(warm),
            warm_live=tuple(warm_live),
            templates=self.templates,
            data=data,
            user=user,
        )
        self.memory: Final = memory
        opened = lent(memory) if memory is not None or memory_at_rest is None else memory_at_rest
        self._deletion = Deletion(self.store, self._clock, opened, retention)
        self._statuses = SessionStatuses(self._clock)
        self.figures: Final = Figures()
        """Sums of what sessions have done here so far."""
        self._models = models
        self._host = host
        self._bounds = bounds or Bounds()
        self._workspace = workspace
        self._observe = observe
        self._search_elsewhere = search_elsewhere
        self._group = asyncio.TaskGroup()
        self._open: dict[str, Session] = {}
        self._unneeded = UnneededSessions()
        self._opening = asyncio.Lock()
        self._slots = SessionSlots(limits, self._open) if limits is not None else None
        self._undistilled = UndistilledSessions(data)
        self._began: Final = self._clock.now()

    async def __aenter__(self) -> Runtime:
        await self._group.__aenter__()
        self._warming = self._group.create_task(self._warm_models(), name="warm the models")
        self._sharing = [
            self._group.create_task(self._tell_others(), name="tell other hosts"),
            self._group.create_task(self._hear_others(), name="hear other hosts"),
        ]

        experience = self._services.experience
        if experience.lost:
            known = [info for info in self.store.sessions() if info.readable and not info.foreign]
            folders = [self.store.folder / info.id for info in known[:NEWEST]]
            await asyncio.to_thread(experience.learn_from, folders)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._warming.cancel()
        for task in self._sharing:
            task.cancel()

        try:
            await self._close_all()
        finally:
            try:
                await self._group.__aexit__(kind, error, trace)
            except BaseExceptionGroup as group:
                if error is None or group.exceptions != (error,):
                    raise
                # Returning lets `error` propagate as the caller expects it: without a group around it.
            finally:
                with contextlib.suppress(OSError):
                    await asyncio.to_thread(self._services.experience.keep)
                await self._host.close()
                await self._models.close()

    async def _warm_models(self) -> None:
        """Load the models. The first call reports failures; a bug of ours must not end the sessions."""
        try:
            await self._models.warm()
        except Exception:
            _LOG.exception("Getting the models ready met a bug.")

    async def _tell_others(self) -> None:
        """Report the status of the open sessions to other hosts, as it changes."""
        if self.store.others is None:
            return

        async with self.watch_sessions() as changes:
            async for session, _ in changes:
                # A state is known before its record is on disk, where the rest of the row is read.
                await self._clock.sleep(_SETTLING)

                status = self._statuses.now.get(session)
                if status is None:
                    continue
                was_told = await asyncio.to_thread(self.store.tell, session, status)
                if not was_told:
                    changes.offer(session, status)  # to be tried again

    async def _hear_others(self) -> None:
        """Pass what other hosts report to the people who watch the list of sessions."""
        others = self.store.others
        if others is None:
            return

        known: Mapping[str, ToldRow] = {}
        while True:
            if self._statuses.watched > 1:  # one of them is `_tell_others`
                rows = await asyncio.to_thread(others.read)
                for session, row in rows.items():
                    if known.get(session) != row and session not in self._open:
                        self._statuses.changed(session)
                known = rows

            await self._clock.sleep(_HEARING)

    async def open(
        self,
        session_id: str | None = None,
        *,
        intent: float | str = 1,
        scope: str | None = None,
        workspace: Path | None = None,
        memory: bool = True,
        resting: bool = False,
    ) -> Session:
        """Open a new session (None) or a stored one. A session that is already open is returned as it is.

        The options are for new sessions. `intent`: a number from 0 to 2 or the name of a level. `scope`: one of the
        policy's scopes, or several joined by "+". `workspace`: a directory of the user's instead of the session's own.
        `memory`: whether it reads and writes the user's memory, if there is one. `resting`: only if that resumes no work,
        and no module is started in advance.

        Raises:
            UsageError: there is no such session, scope, intent or directory; or it has work to resume.
            ForeignSession: this installation did not make it.
            JournalLocked: another process has it open.
            JournalError: it is damaged, or can't be written.
        """
        async with self._opening:
            if session_id is not None and session_id in self._open:
                self._unneeded.forget(session_id)
                if not await self._can_write_again(self._open[session_id]):
                    return self._open[session_id]
                await self.close(session_id)  # the session is then opened again from its journal

            if session_id:
                live = await self._resume(session_id, resting=resting)
            else:
                live = self._create(intent, scope or self._scope, workspace or self._workspace, memory=memory)
            files = await open_files(live, self._services)
            services = replace(self._services, models=self._models.view(*self._quotas(live.tree)))
            session = Session(live, services, files)

            self._open[session.id] = session
            self._statuses.follow(live)
            live.on_durable.append(self.figures.take)
            if self._observe is not None:
                live.on_durable.append(self._observe(live.records))

            session.start(self._group, warm=not resting)
            # Nothing may be awaited from here on: the caller that opens a session speaks first.
            return session

    def _quotas(self, tree: Tree) -> list[ModelQuota]:
        """What limits the calls of models of one session."""
        quotas: list[ModelQuota] = []
        if self._slots is not None:
            quotas.append(self._slots.of(tree))
        if tree.bounds.money is not None:
            quotas.append(MoneyBudget(tree))
        return quotas

    async def switch_memory(self, value: bool) -> None:
        """Switch memory off or on for the user: in all sessions, until it is switched again.

        Raises:
            MemoryUnavailable: there is no memory here, or the switch can't be stored.
        """
        if self.memory is None:
            raise MemoryUnavailable("Memory is off in this server; start it without IACT_MEMORY=off.")
        await asyncio.to_thread(self.memory.switch, value)
        for session in self._open.values():
            session.follow_memory()

    async def begun_with(self, once: str) -> str | None:
        """The session that the acting user began, within the last hour, with the message that was sent under this name.

        Only sessions are looked at that were begun before this runtime: who began one here was told of it, or is told by
        what keeps the answers. None if there is none, or if the name is empty.
        """
        since = self._clock.now() - _SENT_AGAIN
        if not once or since >= self._began:
            return None
        return await asyncio.to_thread(self.store.begun_with, once, acting_user(), since, self._began)

    @property
    def opened(self) -> Mapping[str, Session]:
        """The sessions that are open here, by id."""
        return self._open

    @property
    def at_work(self) -> bool:
        """Whether an agent of an open session has something to do, including waiting for a person."""
        return any(session.state.at_work for session in self._open.values())

    def workload(self) -> Workload:
        """What is going on in the open sessions now."""
        return workload((session.state for session in self._open.values()), self._host.running)

    async def unready(self) -> str:
        """One word for what prevents new work; empty if nothing does."""
        if not await asyncio.to_thread(_writable, self._data):
            return "data"
        return "" if await self._host.answers() else "sandbox"

    def is_open(self, session_id: str) -> bool:
        """Whether a session is open here."""
        return session_id in self._open

    async def _can_write_again(self, session: Session) -> bool:
        """Whether a session that stopped because its journal could not be written has room for it now."""
        if not isinstance(session.failure, JournalUnwritable) or isinstance(session.failure, Superseded):
            return False  # a session that moved to another host must not be taken back
        return await asyncio.to_thread(_writable, session.journal.parent)

    async def fork(self, source: str | Path, at: int, *, run: bool = False) -> str:
        """Make a session that shares records 1…`at` of a stored one. Returns its id, and does not open it.

        `run`: what was under way at `at` is carried out in the fork; without it, that work is dropped. Raises as
        `SessionStore.fork`.
        """
        return (await asyncio.to_thread(partial(self.store.fork, source, at, run=run))).session

    async def adopt(
        self,
        source: str | Path,
        at: int | None = None,
        *,
        intent: float | str = 1,
        scope: str | None = None,
    ) -> str:
        """Make our own session from records 1…`at` of a session that another installation made. Returns its id.

        It is not opened. `intent`, `scope`: as for a new session.

        Raises:
            UsageError: there is no such scope or intent; or as `SessionStore.adopt`.
            JournalError: as `SessionStore.adopt`.
        """
        terms = Terms.of(self._policies().chosen(scope or self._scope), intent, self._bounds, self._models)
        return (await asyncio.to_thread(self.store.adopt, source, at, terms)).session

    # --- modules --------------------------------------------------------------------------------

    async def modules(self) -> Sequence[KnownModule]:
        """The modules of the catalogue, with their approvals.

        Raises:
            SandboxError: there is no catalogue.
        """
        return await self.catalogue.modules()

    async def add_module(self, source: ModuleSource) -> KnownModule:
        """Add a module on behalf of a person. Open sessions find its functions when their context matches.

        Raises as `ModuleCatalogue.add`.
        """
        added = await self.catalogue.add(source)
        await self.refresh_modules()
        return added

    async def remove_module(self, name: str) -> None:
        """Remove a module on behalf of a person. Open sessions lose its functions.

        Raises as `ModuleCatalogue.remove`.
        """
        await self.catalogue.remove(name)
        await self.refresh_modules()

    async def approve_module(
        self, name: str, functions: Sequence[str] = (), *, digest: str = ""
    ) -> KnownModule:
        """Approve functions of a module on behalf of a person, all if none is named. Open sessions can use them.

        Raises as `ModuleCatalogue.approve`.
        """
        approved = await self.catalogue.approve(name, functions, digest=digest)
        await self.refresh_modules()
        return approved

    async def refresh_modules(self) -> None:
        """Update the open sessions with what the catalogue holds now."""
        for session in list(self._open.values()):
            with contextlib.suppress(SandboxError, JournalError):
                await session.refresh_modules()

    def use_models(self, others: Models) -> None:
        """Use other models for the roles: in new sessions, and in open ones from their next message.

        The runtime owns these models from now on.
        """
        self._models.replace(others)
        # What a new model needs is fetched now, and not only when somebody waits for its answer.
        self._warming.cancel()
        self._warming = self._group.create_task(self._warm_models(), name="warm the models")

    @property
    def model_label(self) -> str:
        """The model that answers, in words for people."""
        profile = self._models.profile("smart")
        return profile.label or profile.name

    @property
    def small_models(self) -> frozenset[str]:
        """The names of models that would answer in a new session and are small: they bring a static prompt of their own."""
        profile = self._models.profile("smart")
        if profile.static is None:
            return frozenset()
        return frozenset({profile.name})

    async def close(self, session_id: str) -> None:
        """Close one session."""
        session = self._open.pop(session_id, None)
        if session is not None:
            try:
                await session.close()
            finally:
                self._statuses.leave(session_id)
            await self._note_undistilled(session)

    async def _close_all(self) -> None:
        """Close all sessions, several at a time: what ends a server kills it if that takes more than some seconds."""
        room = asyncio.Semaphore(_CLOSING)
        async with asyncio.TaskGroup() as leaving:
            for session in list(self._open.values()):
                leaving.create_task(self._leave(session, room), name=f"close session {session.id}")

    async def _leave(self, session: Session, room: asyncio.Semaphore) -> None:
        """Close a session for good, when there is room. One that fails does not keep the others from being closed."""
        async with room:
            try:
                await session.close()
            except IactError:
                pass
            except Exception:
                _LOG.exception("Session %s could not be left in order.", session.id)

            await self._note_undistilled(session)
            if self.store.others is not None:
                await asyncio.to_thread(self.store.tell, session.id)

    async def close_unless(self, session_id: str, needed: Callable[[Session], bool]) -> None:
        """Close an open session that is not needed, before anyone else can open it."""
        async with self._opening:
            session = self._open.get(session_id)
            if session is not None and not needed(session):
                await self.close(session_id)

    async def close_unneeded(self, seconds: float) -> None:
        """Close each session that nobody has needed for so long; runs until it is cancelled. With 0, it closes none.

        A closed session takes no memory, task, descriptor or container. It is opened again when somebody asks for it.
        """
        while seconds:
            await self._clock.sleep(min(_LOOKING, seconds / 4))

            for session_id in self._unneeded_for(seconds):
                try:
                    await self.close_unless(session_id, lambda session: session.needed)
                except IactError as error:
                    _LOG.warning("The session %s could not be closed in order: %s", session_id, error)

    def _unneeded_for(self, seconds: float) -> list[str]:
        """The open sessions that nobody has needed for so long."""
        now = self._clock.monotonic()
        self._unneeded.look(
            [session_id for session_id, session in self._open.items() if not session.needed], now
        )
        return self._unneeded.for_longer_than(seconds, now)

    # --- all sessions -----------------------------------------------------------------------------

    def sessions(self) -> list[SessionInfo]:
        """Every stored session, most recently changed first; one that can't be read with the reason."""
        return self.store.sessions(self._statuses.now)

    async def search_sessions(self, query: str, limit: int) -> SearchResult:
        """Search for sessions that contain all these words, here or on other hosts; see `SessionStore.search`."""
        elsewhere = await self._search_elsewhere(query, limit) if self._search_elsewhere is not None else ()
        return await asyncio.to_thread(self.store.search, query, limit, self._statuses.now, elsewhere)

    def texts(self, query: str, limit: int) -> TextHits:
        """Search the texts of the sessions on this host; see `SessionStore.texts`. Blocks."""
        return self.store.texts(query, limit)

    def watch_sessions(self) -> StatusWatcher:
        """A watcher of the sessions that change from the moment of entering it, with their status."""
        return self._statuses.watch()

    async def rename(self, session_id: str, title: str) -> str:
        """Give a session a name; raises as `SessionStore.rename`."""
        line = await asyncio.to_thread(self.store.rename, session_id, title)
        self._statuses.changed(session_id)
        return line

    async def pin(self, session_id: str, pinned: bool) -> None:
        """Pin or unpin a session; raises as `SessionStore.pin`."""
        await asyncio.to_thread(self.store.pin, session_id, pinned)
        self._statuses.changed(session_id)

    async def delete(self, sessions: Sequence[str]) -> DeletionOutcome:
        """Move sessions to the trash, from which they can be restored; open ones are closed first."""
        async with self._opening:
            for session_id in sessions:
                with contextlib.suppress(IactError):
                    await self.close(session_id)

            outcome = await self._deletion.delete(sessions)
        return self._told(outcome)

    async def restore_sessions(self, sessions: Sequence[str]) -> DeletionOutcome:
        """Move deleted sessions back from the trash."""
        async with self._opening:
            outcome = await self._deletion.restore(sessions)
        return self._told(outcome)

    async def purge(self, sessions: Sequence[str]) -> DeletionOutcome:
        """Permanently remove deleted sessions.

        Raises:
            MemoryUnavailable: memory can't be written to now; nothing was removed.
        """
        return self._told(await self._deletion.purge(sessions))

    async def tidy(self) -> DeletionOutcome:
        """Delete sessions past their retention, and purge those deleted long ago."""
        async with self._opening:
            outcome = await self._deletion.tidy(self._open)
        return self._told(outcome)

    async def tend(self) -> None:
        """Keep the index of all sessions up to date, tidy up every hour, and distil sessions that have come to rest; runs
        until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_tidy(), name="tidy up")
            tasks.create_task(self._distil_rested(), name="distil")

    async def distil(self, session_id: str) -> int:
        """Ask a model what of a stored session is worth remembering. Returns how many messages it was asked about.

        A session that is not open resumes nothing by it.

        Raises:
            UsageError, ForeignSession, JournalError: as `open`; it has unfinished work and is not open.
            ModelError: the model can't be asked.
        """
        was_open = self.is_open(session_id)
        session = await self.open(session_id, resting=True)
        try:
            return await session.distil()
        finally:
            if not was_open:
                await self.close_unless(session_id, lambda session: session.needed)

    async def _note_undistilled(self, session: Session) -> None:
        """Leave word of a session that was closed before a model was asked about what was said in it here."""
        heard = session.state.root.context.chronicle.heard
        is_news = bool(heard) and heard[-1].read > session.read
        # Where several hosts share the sessions, another one may have it next.
        if is_news and self.store.others is None and session.failure is None and session.can_be_distilled:
            await asyncio.to_thread(self._undistilled.add, session.id)

    async def distil_left(self, most: int) -> int:
        """Distil at most so many sessions that were closed a while ago before that was done. Returns how many were.

        It is for the background: one that can't be distilled is left out, and tried again at most twice.
        """
        if self.memory is None:
            return 0

        names = await asyncio.to_thread(self._undistilled.names, _RESTED, self._clock.now())
        ended = [name for name in names if not self.is_open(name)]
        distilled = 0
        for session_id in ended[:most]:
            # Counted before it is tried: one that ends this program isn't tried for ever.
            await asyncio.to_thread(self._undistilled.begin, session_id)
            try:
                await self.distil(session_id)
            except IactError as error:
                _LOG.info("Session %s was not distilled: %s", session_id, error)
                continue

            await asyncio.to_thread(self._undistilled.remove, session_id)
            distilled += 1
        return distilled

    async def distil_each(self, sessions: Sequence[str]) -> DistilOutcome:
        """Distil these sessions one after another, as `distil`. One that can't be is left out, and the others go on."""
        messages = 0
        left_out = dict[str, str]()
        for session_id in sessions:
            try:
                messages += await self.distil(session_id)
            except IactError as error:
                left_out[session_id] = str(error)
        return DistilOutcome(messages, left_out)

    async def _distil_rested(self) -> None:
        """Distil sessions that were closed too early, and open ones in which nothing was said for a while: they may have
        ended. One after another."""
        while True:
            await self._clock.sleep(_RESTED)

            for session in list(self._open.values()):
                has_rested = session.at_rest and session.seconds_since_last(self._clock.now()) >= _RESTED
                if has_rested and session.can_be_distilled:
                    await session.distil_in_background()

            await self.distil_left(_LEFT)

    async def _keep_tidy(self) -> None:
        """Keep the index up to date, and tidy up, every hour."""
        while True:
            await asyncio.to_thread(self.store.sessions)

            index = self.store.index
            if index is not None:
                while await asyncio.to_thread(index.update, self.store.folder, most=_SLICE) > 0:
                    await self._clock.sleep(_SLICE)  # other tasks get the processor meanwhile

            try:
                await self.tidy()
            except IactError as error:
                _LOG.warning("Tidying up the sessions met a fault: %s", error)
            await self._clock.sleep(_TENDING)

    def _told(self, outcome: DeletionOutcome) -> DeletionOutcome:
        """The outcome, once the people who watch the list of sessions know of it."""
        for session_id in outcome.sessions:
            self._statuses.changed(session_id)
        return outcome

    def _create(self, intent: float | str, scope: str, workspace: Path | None, *, memory: bool) -> Live:
        """Make a session, with its first record.

        Raises:
            UsageError: there is no such scope, intent or directory, or agents may not work there.
            JournalError: its journal can't be written.
        """
        policy = self._policy(scope)
        granted = level(intent, dict(policy.levels))
        if workspace is not None:
            self._check_directory(workspace)

        session = new_session(self._clock.now())
        journal = self.store.create(session)
        live = self._live(journal, Tree(strict=True, blobs=journal.blob), [])

        models = {name: Role.of(self._models.profile(name)).terms() for name in self._models.roles()}
        opened = Open(
            format=FORMAT,
            session=session,
            models=models,
            grant=Grant(policy.scope(), granted).terms(),
            policy=policy_json(policy),
            bounds=self._bounds,
            tail=LAYOUT,
            workspace=str(workspace.resolve()) if workspace is not None else "scratch",
            layers=self._services.open_layer is not None,
            memory=memory,
        )
        live.record(opened, "/")
        return live

    def _check_directory(self, workspace: Path) -> None:
        """Check that agents can work in a directory of the user's.

        Raises:
            UsageError: it is none, or holds the data directory.
        """
        if workspace.is_file():
            raise UsageError(f"{workspace} is a file; give the directory to work in.")
        if not workspace.is_dir():
            raise UsageError(f"There is no directory {workspace} to work in.")
        self._check_apart(workspace)

    def _check_apart(self, workspace: Path) -> None:
        """Check that agents can see neither keys nor journals: anyone who can read the key of the seals can forge our
        sessions.

        Raises:
            UsageError: the data directory is inside `workspace`.
        """
        data = self.store.data.resolve()
        if data.is_relative_to(workspace.resolve()):
            raise UsageError(
                f"Agents can't work in {workspace}, because it contains the data directory {data}, "
                "which holds keys and journals. Choose another directory, or keep the data elsewhere "
                "(IACT_DATA)."
            )

    async def _resume(self, session_id: str, *, resting: bool) -> Live:
        """Open a stored session. `resting`: only if that resumes no work. Raises as `open`."""
        # Other tasks go on while a long journal is read.
        reading = asyncio.ensure_future(asyncio.to_thread(_read, self.store, session_id))
        try:
            journal, contents, tree = await asyncio.shield(reading)
        except asyncio.CancelledError:
            # The caller is gone. The journal's lock must neither stay behind nor block the next caller.
            reading.add_done_callback(_let_go)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([reading])
            raise

        try:
            if resting and tree.at_work:
                raise UsageError(
                    f"Session {session_id} has unfinished work, which opening it would resume. Open it, and let the work "
                    "end or cancel it."
                )
            if tree.workspace != "scratch":
                self._check_apart(Path(tree.workspace))

            live = self._live(journal, tree, contents.records)
            self._tell(live, contents)
        except BaseException:
            # The descriptor holds the lock, which must be released if the session can't be opened.
            journal.abandon()
            raise
        return live

    def _live(self, journal: Journal, tree: Tree, records: list[Record]) -> Live:
        return Live(journal, tree, self._clock, records)

    def _migrate(self, live: Live) -> None:
        """Note that another version of this program continues the session, or that other values are lost than before, if
        so; verification starts again from there."""
        tree = live.tree
        before = lost_at(live.records)
        lost = frozenset(tree.blobs.recorded)
        if tree.format != FORMAT or tree.outdated or lost != before:
            models = {name: role.terms() for name, role in tree.roles.items()}
            live.record(Migrate(from_=tree.format, to=FORMAT, models=models, lost=tuple(sorted(lost))), "/")

        if lost - before:
            live.notice("/", "lost", _told_of_lost(tree, lost - before))

    def _tell(self, live: Live, contents: Contents) -> None:
        """Record what is different from when the session was last open, and tell people of it."""
        self._migrate(live)
        if not live.tree.closed and module_states.in_use(live.tree):
            live.record(Close(late=True), "/")

        if contents.torn:
            text = (
                f"The last {contents.torn} bytes of the journal were an unfinished append and were dropped."
            )
            live.notice("/", "torn", text)

        self._renew_policy(live)
        missing = set(live.tree.roles) - set(self._models.roles())
        if missing:
            text = (
                f"The roles {', '.join(sorted(missing))} of this session have no model any more, so they "
                "now use the model of “smart”."
            )
            live.notice("/", "roles", text)

        # Work that a crash left goes on at once with the current models; a session at rest gets them with its next
        # message.
        if live.tree.at_work:
            renewed = chosen(live.tree, self._models)
            if renewed is not None:
                live.record(renewed, "/")

    def _policy(self, scope: str) -> Policy:
        """What a policy says now, with the hosts that settings allow.

        Raises:
            UsageError: there is no such scope, or the policy can't be read.
        """
        policy = self._policies().chosen(scope)
        return replace(policy, egress=policy.egress | self._egress)

    def _renew_policy(self, live: Live) -> None:
        """Apply what a person has changed in the policy since the session was last open."""
        known = live.tree.policy
        try:
            policy = self._policy("+".join(sorted(known.names)))
        except UsageError as error:
            text = f"{error} The session continues under its earlier policy."
            live.notice("/", "policy", text)
            return

        if policy != known:
            live.record(SetPolicy(by="user", policy=policy_json(policy)), "/")


def _read(store: SessionStore, session_id: str) -> tuple[Journal, Contents, Tree]:
    """Open a session's journal and fold it. Blocks."""
    with collector_paused():
        try:
            journal, contents = store.open(session_id)
        except JournalCorrupt as error:
            raise _with_a_way_out(error, session_id) from error

        try:
            if not contents.records:
                raise JournalError(f"The session {session_id} can't be opened: {EMPTY}, {journal.directory}.")
            tree = read_tree(contents.records, journal.blob, strict=False, is_there=journal.holds)
            return journal, contents, tree
        except BaseException:
            # The descriptor holds the lock, which must be released if the session can't be opened.
            journal.abandon()
            raise


def _with_a_way_out(error: JournalCorrupt, session_id: str) -> JournalCorrupt:
    """The error, with how to go on without what is damaged, if anything is before it."""
    if error.n < 2:
        return error

    last = error.n - 1
    return JournalCorrupt(
        f"{error} The records before it are whole; `iact journal fork {session_id} --at {last}` goes on from there in a new "
        "session.",
        n=error.n,
        offset=error.offset,
    )


def _told_of_lost(tree: Tree, lost: Set[str]) -> str:
    """What people are told about values whose contents are lost."""
    names = {
        f"${name}"
        for agent in tree.agents.values()
        for name, value in agent.table.items()
        if value.sha256 in lost
    }

    # A lost value may have no name, and one content may have several.
    listed = sorted(names)[:_NAMED]
    unnamed = max(len(lost), len(names)) - len(listed)
    if unnamed:
        listed.append(f"{unnamed} more")
    what = ", ".join(listed) if names else f"{len(lost)} values"

    return (
        f"Lost: {what}. The files that held this are missing or damaged in the session's folder. The session goes on "
        "without it; agents are told. If you have a backup of the folder blobs, put it back and open the session again."
    )


def _let_go(reading: asyncio.Future[tuple[Journal, Contents, Tree]]) -> None:
    """Release the journal that was read for a caller who is gone."""
    if not reading.cancelled() and reading.exception() is None:
        journal, _, _ = reading.result()
        journal.abandon()


def _writable(folder: Path) -> bool:
    """Whether a folder has room for some more records, as far as a test write can tell."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_ROOM))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError:
        return False
    return True
