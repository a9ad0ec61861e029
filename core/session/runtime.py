"""Opens sessions: new ones, and stored ones to go on with. One process, one data directory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Final

from core.context.tail import LAYOUT
from core.errors import IactError, JournalError, SandboxError, UsageError
from core.gate.grant import Grant
from core.gate.level import level
from core.gate.policy_file import DEFAULT, Policies, policy_json
from core.journal.file import FILE, Contents, Journal, read_journal
from core.journal.seal import Sealer, open_sealer
from core.models.roles import Models
from core.modules.approval import FILE as APPROVALS
from core.modules.approval import Approvals
from core.modules.catalogue import Known, approve, describe_once, known
from core.modules.door import Door, OpenModules
from core.ports import Clock, Memory, ModuleHost, ModuleSource, OpenLive, Versions
from core.records.control import SetPolicy
from core.records.kinds import FORMAT
from core.records.parts import Bounds
from core.records.record import Record
from core.records.session import Migrate, Open
from core.session.adopt import Terms, adopt
from core.session.files import open_files
from core.session.fork import fork, new_session
from core.session.garbage_collection import collector_paused
from core.session.listing import SessionInfo, listed
from core.session.live import Live
from core.session.monitor import Authorities
from core.session.services import Services
from core.session.session import Session
from core.tree.apply import read_tree
from core.tree.roles import Role
from core.tree.tree import Tree

_LOG: Final = logging.getLogger(__name__)


class SystemClock:
    """The real clock."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds from an arbitrary point."""
        return monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Runtime:
    """All sessions of one data directory.

    Use it as an asynchronous context manager; leaving it closes every session, and nothing of them
    (task, container, socket, temporary file) is left behind.
    """

    def __init__(
        self,
        data: Path,
        models: Models,
        host: ModuleHost,
        *,
        clock: Clock | None = None,
        bounds: Bounds | None = None,
        policies: Callable[[], Policies] = Policies,
        scope: str = DEFAULT,
        authorities: Authorities | None = None,
        workspace: Path | None = None,
        open_modules: OpenModules = Door,
        memory: Memory | None = None,
        versions: Versions | None = None,
        open_live: OpenLive | None = None,
        warm: Sequence[str] = (),
        warm_live: Sequence[str] = (),
    ) -> None:
        """`policies`: reads the scopes that sessions can have, whenever one is opened. `scope`: of new ones."""
        self._policies = policies
        self._scope = scope
        given = authorities or Authorities()
        self._approvals = given.approvals or Approvals(data / APPROVALS)
        self._clock: Clock = clock or SystemClock()
        self._services = Services(
            models=models,
            host=host,
            clock=self._clock,
            open_modules=open_modules,
            authorities=replace(given, approvals=self._approvals),
            memory=memory,
            versions=versions,
            open_live=open_live,
            warm=tuple(warm),
            warm_live=tuple(warm_live),
        )
        self.memory: Final = memory
        self._versions = versions
        self._data = data
        self._sealed: Sealer | None = None
        self._sessions_path: Final = data / "sessions"
        self._models = models
        self._host = host
        self._bounds = bounds or Bounds()
        self._workspace = workspace
        self._group = asyncio.TaskGroup()
        self._open: dict[str, Session] = {}
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Runtime:
        await self._group.__aenter__()
        self._warming = self._group.create_task(self._warm_models(), name="warm the models")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._warming.cancel()
        try:
            for session in list(self._open.values()):
                with contextlib.suppress(IactError):
                    await session.close()
        finally:
            try:
                await self._group.__aexit__(kind, error, trace)
            except BaseExceptionGroup as group:
                if error is None or group.exceptions != (error,):
                    raise
                # Returning lets `error` itself go on, as whoever uses this expects it: with no group around it.
            finally:
                await self._host.close()
                await self._models.close()

    async def _warm_models(self) -> None:
        """What fails is told by the first call; a bug of ours must not end the sessions."""
        try:
            await self._models.warm()
        except Exception:
            _LOG.exception("Getting the models ready met a bug.")

    async def open(
        self,
        session_id: str | None = None,
        *,
        intent: float | str = 1,
        scope: str | None = None,
        workspace: Path | None = None,
    ) -> Session:
        """A new session (None), or a stored one to go on with; one that is open is given as it is.

        `intent`: of a new session, a number from 0 to 2 or the name of a level. `scope`: of a new session, one of the policies' or several with "+" between. `workspace`: a directory of
        the user's in place of the session's own, for a new session.

        Raises:
            UsageError: no such session, scope, intent or directory.
            ForeignSession: this installation did not make it.
            JournalLocked: another process has it open.
            JournalError: it is damaged, or can't be written.
        """
        async with self._opening:
            if session_id is not None and session_id in self._open:
                return self._open[session_id]
            live = (
                self._resume(session_id)
                if session_id
                else self._create(intent, scope or self._scope, workspace or self._workspace)
            )
            files = await open_files(live, self._services)
            session = Session(live, self._services, files)
            self._open[session.id] = session
            session.start(self._group)
            return session

    async def fork(self, source: str | Path, at: int) -> str:
        """Make a session that shares records 1…`at` of a stored one, which may be running; gives its id.

        It is not opened. What had no outcome at `at` is treated as after a crash when it is.
        `source`: a session's id, or the directory of a journal anywhere.

        Raises:
            UsageError: no such session or record.
            ForeignSession: this installation did not make it.
            JournalError: the session is damaged before `at`, or the new one can't be stored.
        """
        now = self._clock.now()
        place = source if isinstance(source, Path) else self.path_of(source)
        made = await asyncio.to_thread(
            fork, self._sessions_path, place, at,
            session=new_session(now), now=now, versions=self._versions, sealer=self._sealer(),
        )  # fmt: skip
        return made.session

    async def adopt(
        self,
        source: str | Path,
        at: int | None = None,
        *,
        intent: float | str = 1,
        scope: str | None = None,
    ) -> str:
        """Make a session of our own of records 1…`at` of one that another installation made; gives its id.

        It is not opened. `source`: a session's id, or the directory of a journal anywhere. `intent`, `scope`: as of a
        new session.

        Raises:
            UsageError: no such session, record, scope or intent.
            JournalError: the session is damaged before `at`, or the new one can't be stored.
        """
        now = self._clock.now()
        place = source if isinstance(source, Path) else self.path_of(source)
        terms = Terms.of(self._policies().chosen(scope or self._scope), intent, self._bounds, self._models)
        made = await asyncio.to_thread(
            adopt, self._sessions_path, place, at,
            session=new_session(now), now=now, terms=terms, versions=self._versions, sealer=self._sealer(),
        )  # fmt: skip
        return made.session

    def why_foreign(self, journal: Path) -> str:
        """Why this installation did not make a journal, in words; empty if it did. Reads all of it.

        Raises:
            JournalError: it can't be read.
        """
        return read_journal(journal, self._sealer()).foreign

    def _sealer(self) -> Sealer:
        """What seals what sessions append here; its key is made the first time."""
        if self._sealed is None:
            self._sealed = open_sealer(self._data)
        return self._sealed

    # --- modules --------------------------------------------------------------------------------

    async def modules(self) -> Sequence[Known]:
        """The catalogue, with what is approved of it.

        Raises:
            SandboxError: there is no catalogue.
        """
        return [known(entry, self._approvals) for entry in await self._host.catalogue()]

    async def add_module(self, source: ModuleSource) -> Known:
        """A person adds a module: it is started once, kept, and made known to the sessions that are open.

        Raises:
            UsageError: it can't be a module.
            SandboxError: there is no sandbox, or it did not come up; `ModuleLost.log` may say why.
            ModuleFault: what it says of itself breaks the rules.
        """
        entry = await self._host.add(source, "user")
        if entry.manifest is None:
            await describe_once(self._host, entry, lambda line: None)
        await self._host.adopt(entry.name, entry.digest, "user")
        await self._refresh()
        return next(one for one in await self.modules() if one.entry.name == entry.name)

    async def remove_module(self, name: str) -> None:
        """A person takes a module out of the catalogue, and the sessions that are open lose its functions.

        Raises:
            UsageError: there is none, or it ships with the product.
            SandboxError: there is no catalogue.
        """
        await self._host.remove(name)
        await self._refresh()

    async def approve_module(self, name: str, functions: Sequence[str] = (), *, digest: str = "") -> Known:
        """A person approves functions of a module's manifest (none named: all of it) for this digest.

        Raises:
            UsageError: there is no such module, version or function.
            SandboxError: there is no catalogue.
        """
        approved = approve(name, await self._host.catalogue(), self._approvals, functions, digest=digest)
        await self._refresh()
        return approved

    async def _refresh(self) -> None:
        for session in list(self._open.values()):
            with contextlib.suppress(SandboxError, JournalError):
                await session.refresh_modules()

    @property
    def model_label(self) -> str:
        """Which model answers, in words for people."""
        profile = self._models.profile("smart")
        return profile.label or profile.name

    async def close(self, session_id: str) -> None:
        """Close one session."""
        session = self._open.pop(session_id, None)
        if session is not None:
            await session.close()

    def sessions(self) -> list[SessionInfo]:
        """Every stored session, the one that changed last first; damaged ones are left out."""
        return listed(self._sessions_path, self._sealer(), self._open)

    def path_of(self, session_id: str) -> Path:
        """A session's directory.

        Raises:
            UsageError: there is no such session.
        """
        path = self._sessions_path / session_id
        if path.parent != self._sessions_path or not (path / FILE).is_file():
            raise UsageError(f"There is no session {session_id!r} in {self._sessions_path.parent}.")
        return path

    def _create(self, intent: float | str, scope: str, workspace: Path | None) -> Live:
        policy = self._policies().chosen(scope)
        granted = level(intent, dict(policy.levels))
        if workspace is not None and not workspace.is_dir():
            raise UsageError(f"There is no directory {workspace} to work in.")
        if workspace is not None:
            self._check_apart(workspace)
        now = self._clock.now()
        session = new_session(now)
        journal = Journal.create(self._sessions_path / session, self._sealer())
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
        )
        live.record(opened, "/")
        return live

    def _check_apart(self, workspace: Path) -> None:
        """Agents must see neither keys nor journals: who can read the key of the seals can make sessions of ours.

        Raises:
            UsageError: the data directory lies in `workspace`.
        """
        data = self._sessions_path.parent.resolve()
        if data.is_relative_to(workspace.resolve()):
            raise UsageError(
                f"Agents can't work in {workspace}: the data directory {data} is in it, which holds keys and "
                "journals. Choose another directory, or keep the data elsewhere (IACT_DATA)."
            )

    def _resume(self, session_id: str) -> Live:
        with collector_paused():
            journal, contents = Journal.open(self.path_of(session_id), self._sealer())
        try:
            with collector_paused():
                tree = read_tree(contents.records, journal.blob, strict=False)
            if tree.workspace != "scratch":
                self._check_apart(Path(tree.workspace))
            live = self._live(journal, tree, contents.records)
            self._tell(live, contents)
        except BaseException:
            # The descriptor holds the lock; whoever can't open the session must not keep it.
            journal.abandon()
            raise
        return live

    def _live(self, journal: Journal, tree: Tree, records: list[Record]) -> Live:
        return Live(journal, tree, self._clock, records)

    def _migrate(self, live: Live) -> None:
        """Note that another version of this program goes on here, if it is one: verification starts anew from there."""
        tree = live.tree
        if tree.format != FORMAT or tree.outdated:
            models = {name: role.terms() for name, role in tree.roles.items()}
            live.record(Migrate(from_=tree.format, to=FORMAT, models=models), "/")

    def _tell(self, live: Live, contents: Contents) -> None:
        self._migrate(live)
        if contents.torn:
            text = (
                f"The last {contents.torn} bytes of the journal were an unfinished append and were dropped."
            )
            live.notice("/", "torn", text)
        self._renew_policy(live)
        known = set(live.tree.roles)
        for name in self._models.roles():
            live.tree.roles[name] = live.tree.roles.get(name) or Role.of(self._models.profile(name))
        missing = known - set(self._models.roles())
        if missing:
            text = f"The roles {', '.join(sorted(missing))} of this session are served by “smart” now."
            live.notice("/", "roles", text)

    def _renew_policy(self, live: Live) -> None:
        """What a person wrote into the policy since the session was last open holds from here on."""
        known = live.tree.policy
        try:
            policy = self._policies().chosen("+".join(sorted(known.names)))
        except UsageError as error:
            text = f"{error} The session goes on under the policy that it had."
            live.notice("/", "policy", text)
            return
        if policy != known:
            live.record(SetPolicy(by="user", policy=policy_json(policy)), "/")
