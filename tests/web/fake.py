"""An in-memory runtime with the shape of `web.ports`, for tests of the web room alone.

Its sessions keep records in a list and do nothing by themselves: a test appends what it wants to
be seen. Its watch is as strict as the real one: a bounded queue that raises when it overflows.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from iact.core.errors import IactError, JournalLocked, UsageError
from iact.core.ports import JSON, AppliedChange, CatalogueEntry, Memory, ModuleSource
from iact.core.records.control import InjectMode, MemorySwitch
from iact.core.records.kinds import BY_NAME
from iact.core.records.record import Record
from iact.core.records.ways import Way
from iact.core.session.distilling import DistilOutcome
from iact.core.session.effects import SeenChanges, SettledChanges
from iact.core.session.hosts import HostRow
from iact.core.session.models import Tried
from iact.core.session.status_watch import StatusWatcher
from iact.core.stored.deletion import DeletionOutcome
from iact.core.stored.index import SearchHit
from iact.core.stored.store import SessionStore
from iact.core.stored.templates import OfferedValue, Template, read_template
from iact.core.tree.agent import AgentState
from iact.core.tree.live_folder import PendingChange
from iact.core.tree.tree import Tree
from iact.core.views.consent import change_digest
from iact.core.views.events import Delta, Event, OutputEvent, RecordAppended, TreeChanged
from iact.core.views.figures import Figures, Workload
from iact.core.views.known_modules import KnownModule
from iact.core.views.review import PendingRow, rows
from iact.core.views.status import SessionState, SessionStatus
from iact.core.views.view import NodeView, View
from iact.examples import EXAMPLES
from iact.models.board import Board
from iact.models.presets import PRESETS
from iact.web.ports import (
    AddedEndpointView,
    Finding,
    FirstMessage,
    ModelFileView,
    Preset,
    Prices,
    Recorded,
    RoleChoice,
    RoleView,
)
from tests.records import least, raw_record

LABEL = "Qwen2.5-Coder-1.5B-Instruct, the small model on board: often wrong."


class FellBehind(IactError):
    """The watcher was too slow."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found."""

    rows: tuple[tuple[FakeInfo, SearchHit | None], ...]
    behind: int


@dataclass(frozen=True, slots=True)
class FakeInfo:
    id: str
    title: str
    created: str
    changed: str
    records: int
    open: bool
    foreign: bool = False
    state: SessionState = "idle"
    since: str = ""
    what: str = ""
    pinned: bool = False
    named: bool = False
    source: str = ""
    at: int = 0


def node(
    path: str, state: AgentState = "idle", *, doing: str = "", paused: bool = False, used: int = 0
) -> NodeView:
    """A node of the tree; `used` prompt tokens, three quarters of them cached."""
    parent, _, name = path.rpartition("/")
    caller = "user" if path == "/" else parent or "/"
    return NodeView(
        path=path,
        name=name or "/",
        caller=caller,
        kind="agent",
        state=state,
        paused=paused,
        doing=doing,
        turns=used // 1000,
        model="scripted",
        prompt_tokens=used,
        cached_tokens=used * 3 // 4,
        completion_tokens=used // 8,
        record=1,
    )


class FakeEffects:
    """What waits, in memory. `diffs`: the text of each path's diff. What is applied or dropped is noted in `calls`."""

    folder = None

    def __init__(self) -> None:
        self.waiting: dict[str, PendingChange] = {}
        self.diffs: dict[str, str] = {}
        self.left: tuple[AppliedChange, ...] = ()
        self.calls: list[tuple[str, Sequence[str] | None, bool, int | None]] = []

    async def rows(self, *, fresh: bool = True) -> Sequence[PendingRow]:
        return rows(self.waiting, Path("/nowhere"))

    async def patch(self, path: str) -> str:
        if path not in self.waiting:
            raise UsageError(f"No change is waiting at {path!r}.")
        return self.diffs.get(path, "")

    def digest(self, path: str) -> str:
        return change_digest(self.waiting[path])

    async def apply(
        self,
        paths: Sequence[str] | None,
        *,
        force: bool = False,
        since: int | None = None,
        seen: SeenChanges | None = None,
    ) -> SettledChanges:
        if seen is not None:
            chosen = self.waiting if paths is None else {path: self.waiting[path] for path in paths}
            seen.check(chosen)
        return self._settle("apply", paths, force, since)

    async def drop(
        self, paths: Sequence[str] | None, *, since: int | None = None, seen: SeenChanges | None = None
    ) -> SettledChanges:
        return self._settle("drop", paths, False, since)

    def _settle(self, op: str, paths: Sequence[str] | None, force: bool, since: int | None) -> SettledChanges:
        self.calls.append((op, paths, force, since))
        kept = {one.path for one in self.left}
        done = [path for path in (self.waiting if paths is None else paths) if path not in kept]
        for path in done:
            self.waiting.pop(path, None)
        return SettledChanges(raw_record(1, "", "settle", "/", 1), tuple(done), self.left)


class _View(View):
    """A view that is told what is open."""

    def __init__(self, tree: Tree, ends: tuple[int, ...]) -> None:
        super().__init__(tree)
        self._ends = ends

    @property
    def open_ends(self) -> tuple[int, ...]:
        return self._ends


@dataclass(eq=False)
class FakeSession:
    """One session. `calls` lists what was asked of it; `queue` bounds each watcher."""

    id: str
    queue: int = 256
    intent: float = 1
    levels: Mapping[str, float] = field(default_factory=dict)
    model_label: str = LABEL
    journal: Path = Path("/data/sessions/x/journal.md")
    calls: list[tuple[str, ...]] = field(default_factory=list)
    drafts: dict[str, str] = field(default_factory=dict)
    fail: Exception | None = None
    failure: IactError | None = None
    modules_running: int = 0
    hosts: list[HostRow] = field(default_factory=list)
    effects: FakeEffects = field(default_factory=lambda: FakeEffects())
    state: Tree = field(default_factory=lambda: Tree(strict=False, blobs=lambda digest: b""))
    """What `view` shows."""
    ends: tuple[int, ...] = ()
    """Records on which something hangs."""
    on_watch: Callable[[], object] | None = None
    _records: list[Record] = field(default_factory=list)
    _nodes: tuple[NodeView, ...] = (node("/"),)
    _watchers: list[asyncio.Queue[Event | None]] = field(default_factory=list)
    _late: set[int] = field(default_factory=set)
    _entered: asyncio.Event = field(default_factory=asyncio.Event)
    _noted: asyncio.Event = field(default_factory=asyncio.Event)

    # --- what a test does

    def append(self, kind: str, agent: str = "/", body: str = "", **fields: JSON) -> Record:
        n = len(self._records) + 1
        at = f"2026-05-04T03:{n // 60 % 60:02d}:{n % 60:02d}.000000Z"
        op = str(fields.get("op", ""))
        said = {**least(kind, op), **fields} if (kind, op) in BY_NAME else fields
        if op == "lockdown":
            self.state.lockdown = fields["value"] is True
        record = raw_record(n, at, kind, agent, n, body, said)
        self._records.append(record)
        if kind in ("turn", "reply", "discard"):
            self.drafts.pop(agent, None)
        self.emit(RecordAppended(record))
        return record

    def write(self, agent: str, text: str) -> None:
        """The model of `agent` writes on."""
        self.drafts[agent] = self.drafts.get(agent, "") + text
        self.emit(Delta(agent, text))

    def print(self, agent: str, call: int, text: str) -> None:
        self.emit(OutputEvent(agent, call, text))

    def show(self, *nodes: NodeView) -> None:
        self._nodes = nodes
        self.emit(TreeChanged(nodes))

    def emit(self, event: Event) -> None:
        for queue in self._watchers:
            if queue.full():
                self._late.add(id(queue))
            else:
                queue.put_nowait(event)

    def end(self) -> None:
        for queue in self._watchers:
            queue.put_nowait(None)

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    async def watched(self, count: int = 1) -> None:
        """Wait until that many watch."""
        async with asyncio.timeout(300):
            while len(self._watchers) < count:
                self._entered.clear()
                await self._entered.wait()

    async def called(self, name: str) -> None:
        """Wait until a method of this name was called last."""
        async with asyncio.timeout(300):
            while not self.calls or self.calls[-1][0] != name:
                self._noted.clear()
                await self._noted.wait()

    # --- what the server asks

    def message_named(self, once: str) -> Record | None:
        return None

    async def say(
        self, text: str, *, mode: Way = "dialogue", plan_first: bool = False, once: str = ""
    ) -> Record:
        self._note(
            "say", text, *([mode] if mode != "dialogue" else []), *(["plan first"] if plan_first else [])
        )
        return self.append("say", body=text)

    async def foresee(self, text: str) -> tuple[Way, str]:
        self._note("foresee", text)
        return "dialogue", "It is one action."

    async def send_now(self, path: str, message: int) -> Record:
        self._note("send", path, str(message))
        return self.append("control", path, op="send", by="user", of=message)

    async def reword(self, path: str, message: int, text: str) -> Record:
        self._note("reword", path, str(message), text)
        return self.append("control", path, text, op="reword", by="user", of=message)

    async def withdraw(self, path: str, message: int) -> Record:
        self._note("withdraw", path, str(message))
        return self.append("control", path, op="withdraw", by="user", of=message)

    async def stop_calls(self, path: str) -> Record:
        self._note("stop", path)
        return self.append("control", path, op="stop", by="user")

    async def inject(
        self, path: str, text: str, mode: InjectMode, step: str = "", *, calls: bool = True, once: str = ""
    ) -> Record:
        self._note("inject", path, text, mode, *([step] if step else []))
        return self.append("control", path, text, op="inject", by="user", mode=mode, node=step)

    async def pause(self, path: str, step: str = "") -> Record:
        return self._control("pause", path, step)

    async def resume(self, path: str, step: str = "") -> Record:
        return self._control("resume", path, step)

    async def cancel(self, path: str, step: str = "") -> Record:
        return self._control("cancel", path, step)

    def plan_digest(self, path: str) -> str:
        return "0" * 64

    async def start_plan(self, path: str, *, seen: str | None = None) -> Record:
        return self._control("start", path, "")

    async def edit_plan(self, path: str, text: str) -> Record:
        self._note("edit", path, text)
        return self.append("control", path, text, op="edit", by="user")

    async def retry_step(self, path: str, step: str) -> Record:
        self._note("retry", path, step)
        return self.append("control", path, op="retry", by="user", node=step, budget=0)

    def plan_text(self, path: str) -> str:
        return "goal: g\nsteps:\n- id: a\n  call: shell.run\n"

    def plan_offers(self, path: str) -> Sequence[OfferedValue]:
        return (OfferedValue("file", "may.csv"), OfferedValue("number", "3"))

    def save_plan(self, path: str, name: str, parameters: Mapping[str, str] | None = None) -> Path:
        self._note("save", path, name, *(f"{one}={value}" for one, value in (parameters or {}).items()))
        return Path(f"/data/plans/{name}.yaml")

    async def begin_plan(self, text: str, *, name: str, mode: str, plan_first: bool) -> Record:
        self._note("plan", name, mode, str(plan_first), text)
        return self.append("control", f"/{name}", text, op="plan", by="user", budget=1)

    async def raise_budget(self, tokens: int = 0, money: float = 0.0) -> Record:
        self._note("budget", str(tokens))
        return self.append("control", op="budget", by="user", tokens=tokens)

    async def compress(self) -> Record:
        self._note("compress")
        return self.append("compress", body="So far.", by="user")

    async def summary(self) -> str:
        self._note("summary")
        return "So far."

    async def set_intent(self, value: float) -> Record:
        self._note("intent", f"{value:g}")
        self.intent = value
        return self.append("control", op="intent", by="user", value=value)

    async def clear(
        self,
        call: int,
        allow: bool,
        remember: JSON = None,
        *,
        also: Sequence[int] = (),
        why: str = "",
        seen: Sequence[str] | None = None,
    ) -> Record:
        said = [why] if why else []
        self._note("clear", str(call), str(allow), str(remember), *map(str, also), *said)
        for one in also:
            self.append("clearance", op="answer", ask=one, allow=allow, by="user")
        return self.append("clearance", op="answer", ask=call, allow=allow, by="user")

    async def clear_host(
        self,
        ask: int,
        allow: bool,
        lasts: Literal["once", "session", "always"] = "once",
        *,
        why: str = "",
        seen: str | None = None,
    ) -> Record:
        self._note("clear_host", str(ask), str(allow), lasts)
        return self.append("host", op="answer", ask=ask, allow=allow, by="user", lasts=lasts)

    async def answer_form(
        self,
        ask: int,
        action: Literal["accept", "decline"],
        values: Mapping[str, JSON] | None = None,
        *,
        seen: str | None = None,
    ) -> Record:
        self._note("answer_form", str(ask), action, str(dict(values or {})))
        given = dict(values) if action == "accept" and values else None
        return self.append("form", op="answer", ask=ask, decision=action, by="user", values=given)

    def offers_skill(self, record: int) -> bool:
        return False

    def asks_host(self, record: int) -> bool:
        asked = self._records[record - 1 : record]
        return any(one.kind == "host" and one.text("op") == "ask" for one in asked)

    async def allow_hosts(
        self, module: str, hosts: Sequence[str], *, always: bool = False, remove: bool = False
    ) -> None:
        self._note("allow_hosts", module, *hosts, str(always), str(remove))
        changed: list[HostRow] = [
            {"module": module, "host": one, "by": "always" if always else "session"} for one in hosts
        ]
        self.hosts = [one for one in self.hosts if one not in changed] + ([] if remove else changed)

    def reading(self, path: str) -> tuple[frozenset[str], str]:
        return frozenset({"tool:web.fetch"}), "0" * 64

    async def declassify(self, path: str, variable: str | None = None, *, seen: str | None = None) -> Record:
        self._note("declassify", path, str(variable))
        return self.append("control", path, op="declassify", by="user")

    async def restore(self, version: str, path: str = "") -> Record:
        self._note("restore", version, *filter(None, [path]))
        only = {"path": path} if path else {}
        return self.append("control", op="restore", by="user", version=version, **only)

    memory_off: frozenset[MemorySwitch] = frozenset()

    async def switch_memory(self, value: bool) -> None:
        self.memory_off = frozenset() if value else frozenset({"session"})
        self.append("control", op="memory", by="user", of="session", value=value)

    async def lockdown(self, value: bool) -> Record:
        self._note("lockdown", str(value))
        return self.append("control", op="lockdown", by="user", value=value)

    async def upload(self, name: str, media: str, content: bytes) -> Record:
        self._note("upload", name, media, content.decode("utf-8", "replace"))
        blob: JSON = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        return self.append(
            "upload", "/", f"The file {name}.", file=name, var="file_1", media=media, blob=blob
        )

    @property
    def view(self) -> View:
        return _View(self.state, self.ends)

    def records(self, since: int = 0) -> Sequence[Record]:
        return self._records[since:]

    def tree(self) -> tuple[NodeView, ...]:
        return self._nodes

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[Event]]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue(self.queue)
        for agent, text in self.drafts.items():
            queue.put_nowait(Delta(agent, text, restart=True))
        self._watchers.append(queue)
        self._entered.set()
        if self.on_watch is not None:
            self.on_watch()
        try:
            yield self._events(queue)
        finally:
            self._watchers.remove(queue)
            self._late.discard(id(queue))

    async def _events(self, queue: asyncio.Queue[Event | None]) -> AsyncIterator[Event]:
        while True:
            if id(queue) in self._late:
                raise FellBehind("This watcher fell behind; start over from the journal.")
            event = await queue.get()
            if event is None:
                return
            yield event

    def _control(self, op: str, path: str, step: str) -> Record:
        self._note(op, path, *([step] if step else []))
        if path not in {view.path for view in self._nodes}:
            raise UsageError(f"There is no agent {path} in this session.")
        return self.append("control", path, op=op, by="user", node=step)

    def _note(self, *call: str) -> None:
        if self.fail is not None:
            raise self.fail
        self.calls.append(call)
        self._noted.set()


class FakeTemplates:
    """Two kept plans, one of them with parameters."""

    def names(self) -> list[str]:
        return ["monthly", "weekly"]

    def usable(self) -> dict[str, Template]:
        return {"monthly": read_template(MONTHLY), "weekly": read_template(WEEKLY)}

    def filled(self, name: str, values: Mapping[str, str]) -> str:
        return self.usable()[name].fill(values, name=name)


WEEKLY: Final = "steps: [{id: a, call: shell.run, params: {command: ls}}]"
MONTHLY: Final = """\
parameters: {file: may.csv, count: 3, sorted: {default: true, about: whether it is sorted}}
goal: Say the {{count}} longest lines of {{file}}.
steps: [{id: a, call: shell.run, params: {command: "head -n {{count}} {{file}} # {{sorted}}"}}]
"""


class FakeRuntime:
    """Sessions by id; `open(None)` makes `new-1`, `new-2`, …"""

    model_label = LABEL
    small_models = frozenset({"qwen2.5-coder-1.5b"})

    def __init__(self, *sessions: FakeSession, memory: Memory | None = None) -> None:
        self.hosts: list[HostRow] = []
        self.figures = Figures()
        self.memory = memory
        self.templates = FakeTemplates()
        self.store = SessionStore(Path("/data"))
        self.known = {session.id: session for session in sessions}
        self.opened: list[str | None] = []
        self.catalogue: dict[str, KnownModule] = {}
        self.standings: set[StatusWatcher] = set()
        self.hits: dict[str, SearchHit] = {}
        """What a search finds in the text of sessions."""
        self.infos: dict[str, FakeInfo] = {}
        """What lists show of sessions that are to be shown otherwise, or that nobody opens."""
        self.done: list[tuple[str, ...]] = []

    at_work = False
    why_unready = ""

    def workload(self) -> Workload:
        return Workload()

    async def distil_each(self, sessions: Sequence[str]) -> DistilOutcome:
        return DistilOutcome(1, dict.fromkeys(sessions[1:], "It has unfinished work."))

    async def switch_memory(self, value: bool) -> None:
        assert self.memory is not None
        self.memory.switch(value)

    async def unready(self) -> str:
        return self.why_unready

    def is_open(self, session_id: str) -> bool:
        return True

    def tell(self, session: str, now: SessionStatus | None) -> None:
        """A session changed."""
        for watcher in self.standings:
            watcher.offer(session, now)

    def watch_sessions(self) -> StatusWatcher:
        return StatusWatcher(self.standings)

    async def search_sessions(self, query: str, limit: int) -> Found:
        words = query.lower()
        rows = [(one, self.hits.get(one.id)) for one in self.sessions()]
        return Found(tuple((one, hit) for one, hit in rows if hit or words in one.title.lower()), 0)

    async def rename(self, session_id: str, title: str) -> str:
        self.done.append(("rename", session_id, title))
        return title

    async def pin(self, session_id: str, pinned: bool) -> None:
        self.done.append(("pin", session_id, str(pinned)))

    async def delete(self, sessions: Sequence[str]) -> DeletionOutcome:
        return self._did("delete", sessions)

    async def restore_sessions(self, sessions: Sequence[str]) -> DeletionOutcome:
        return self._did("restore", sessions)

    async def purge(self, sessions: Sequence[str]) -> DeletionOutcome:
        return self._did("purge", sessions)

    def _did(self, what: str, sessions: Sequence[str]) -> DeletionOutcome:
        self.done.append((what, *sessions))
        return DeletionOutcome(tuple(sessions), {})

    def sessions(self) -> Sequence[FakeInfo]:
        shown = [self.infos.get(one.id, one) for one in self._known()]
        return sorted(
            [*shown, *(one for key, one in self.infos.items() if key not in self.known)],
            key=lambda one: one.changed,
            reverse=True,
        )

    def _known(self) -> Sequence[FakeInfo]:
        return [
            FakeInfo(
                one.id,
                next((record.body for record in one.records() if record.kind == "say"), "Untitled"),
                "2026-05-04T03:00:00Z",
                f"2026-05-04T03:0{index % 10}:00Z",
                len(one.records()),
                True,
            )
            for index, one in enumerate(self.known.values())
        ]

    async def begun_with(self, once: str) -> str | None:
        return None

    async def open(self, session_id: str | None) -> FakeSession:
        self.opened.append(session_id)
        if session_id == "locked":
            raise JournalLocked("Another process has this session open.")
        if session_id is None:
            session_id = f"new-{len(self.known) + 1}"
            self.known[session_id] = FakeSession(session_id)
        if session_id not in self.known:
            raise UsageError(f"There is no session {session_id}.")
        return self.known[session_id]

    async def fork(self, source: str | Path, at: int, *, run: bool = False) -> str:
        raise UsageError("Sessions in memory can't be forked.")

    async def adopt(self, source: str | Path, at: int | None = None) -> str:
        raise UsageError("Sessions in memory can't be adopted.")

    async def modules(self) -> Sequence[KnownModule]:
        return list(self.catalogue.values())

    async def add_module(self, source: ModuleSource) -> KnownModule:
        entry = CatalogueEntry(source.name, "0" * 64, "user", source.summary, None)
        self.catalogue[source.name] = KnownModule(entry, None, frozenset())
        return self.catalogue[source.name]

    async def refresh_modules(self) -> None:
        """No session looks at the catalogue."""

    async def remove_module(self, name: str) -> None:
        if self.catalogue.pop(name, None) is None:
            raise UsageError(f"There is no module {name!r}.")

    async def approve_module(self, name: str, functions: Sequence[str], *, digest: str) -> KnownModule:
        if name not in self.catalogue:
            raise UsageError(f"There is no module {name!r}.")
        known = self.catalogue[name]
        offered = [one.name for one in known.manifest.functions] if known.manifest else []
        wanted = {function.removeprefix(f"{name}.") for function in functions or offered}
        self.catalogue[name] = KnownModule(known.entry, known.manifest, known.approved | wanted)
        return self.catalogue[name]


class FakeChoices:
    """What a person chose, in memory; no model can be tried."""

    def __init__(self) -> None:
        self.played = {
            name: RoleView(role=name, url="", model="", context=8192, key=False, own=False)
            for name in ("smart", "fast")
        }
        self.kept: dict[str, str] = {}

    def roles(self) -> Sequence[RoleView]:
        return list(self.played.values())

    async def try_role(self, choice: RoleChoice) -> Tried:
        return Tried(fault="Nobody is there.")

    async def choose_role(self, choice: RoleChoice) -> None:
        self.played[choice.role] = RoleView(
            role=choice.role, url=choice.url, model=choice.model, context=choice.context or 8192,
            key=bool(choice.key), own=True, terms=choice.terms,
        )  # fmt: skip

    async def forget_role(self, name: str) -> None:
        raise UsageError("Nothing is forgotten here.")

    def presets(self) -> Sequence[Preset]:
        return PRESETS

    def model_files(self) -> Sequence[ModelFileView]:
        return []

    def added_endpoints(self) -> Sequence[AddedEndpointView]:
        return []

    async def use_endpoint(self, name: str) -> None:
        raise NotImplementedError

    async def use_on_board(self, name: str) -> None:
        for role in ("smart", "fast"):
            self.played[role] = RoleView(role=role, url="", model="", context=8192, key=False, own=False)

    def first_messages(self) -> Sequence[FirstMessage]:
        return [FirstMessage(name, text) for name, text in sorted(self.kept.items())]

    def keep_first_message(self, message: FirstMessage) -> None:
        self.kept[message.name] = message.text

    def forget_first_message(self, name: str) -> None:
        del self.kept[name]


@dataclass
class FakeSecrets:
    """A user's secrets by name, their own and those that they lend."""

    own: dict[str, str] = field(default_factory=dict)
    lent: dict[str, str] = field(default_factory=dict)

    def names(self, *, lent: bool) -> Sequence[str]:
        return sorted(self.lent if lent else self.own)

    def store(self, name: str, value: str, *, lent: bool) -> None:
        (self.lent if lent else self.own)[name] = value

    def remove(self, name: str, *, lent: bool) -> None:
        if (self.lent if lent else self.own).pop(name, None) is None:
            raise UsageError(f"There is no secret {name!r}.")


class FakeAround:
    """A product around the server in which one thing does not work."""

    def __init__(self) -> None:
        self.choices = FakeChoices()
        self.board = Board()
        self.secrets = FakeSecrets()

    def prices(self) -> Prices:
        return Prices(prompt=2.0, cached=0.5, completion=10.0)

    def settings(self) -> Sequence[tuple[str, str]]:
        return [("Sandbox", "auto")]

    def checks(self) -> Sequence[Finding]:
        return [
            Finding("python", True, "Python 3.11", ""),
            Finding("engine", False, "It is not there.", "apt-get install docker.io"),
        ]

    def examples(self) -> Sequence[Recorded]:
        return [Recorded(one.name, one.title, one.about, one.folder) for one in EXAMPLES]

    def export(self, journal: Path, at: int | None) -> str:
        raise UsageError("Sessions in memory can't be exported.")
