"""What the web room needs of the runtime, as Protocols; `core.session` has the real ones.

Written down here so that the room can be tested with an in-memory session and so that the seam
between the web and the tree stays as narrow as this file.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol

from iact.accounts.people import (
    ApiToken,
    AuditEvent,
    AuditKind,
    HttpReply,
    SessionGrant,
    SharedSession,
    ShareLink,
    Shown,
    SignIn,
    User,
)
from iact.accounts.rights import LinkView, Principal, Role, Scope
from iact.core.errors import IactError
from iact.core.ports import JSON, Medium, Memory, ModuleSource
from iact.core.records.control import InjectMode
from iact.core.records.record import Record
from iact.core.records.ways import Way
from iact.core.session.catalogue import KnownModule
from iact.core.session.deletion import DeletionOutcome
from iact.core.session.effects import SettledChanges
from iact.core.session.events import Event
from iact.core.session.figures import Figures, Workload
from iact.core.session.hosts import HostRow
from iact.core.session.index import SearchHit
from iact.core.session.models import Tried
from iact.core.session.review import PendingRow
from iact.core.session.status import SessionState, SessionStatus
from iact.core.session.store import SessionStore
from iact.core.session.view import NodeView, View
from iact.web.safety import Asked


class SessionInfo(Protocol):
    """A stored session, as the list of sessions shows it. Times are ISO 8601, UTC."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def created(self) -> str: ...
    @property
    def changed(self) -> str: ...
    @property
    def records(self) -> int: ...
    @property
    def open(self) -> bool: ...
    @property
    def foreign(self) -> bool:
        """This installation did not make it: it can be looked at, or adopted."""
        ...

    @property
    def state(self) -> SessionState: ...
    @property
    def since(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def named(self) -> bool:
        """A person gave it its title."""
        ...

    @property
    def source(self) -> str:
        """Of a fork, the session that it comes from."""
        ...

    @property
    def at(self) -> int:
        """And the last record that both have."""
        ...


class Found(Protocol):
    """What a search found: sessions, with where their text holds it. `behind`: how many are still to be read."""

    @property
    def rows(self) -> Sequence[tuple[SessionInfo, SearchHit | None]]: ...
    @property
    def behind(self) -> int: ...


class SessionChanges(Protocol):
    """Sessions that change, with what they are at (None: read the list again), until it is left."""

    async def __aenter__(self) -> SessionChanges: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def __aiter__(self) -> SessionChanges: ...
    async def __anext__(self) -> tuple[str, SessionStatus | None]: ...


class Effects(Protocol):
    """The part of a session about changes of a live directory that wait; `core.session.effects` has the real one."""

    @property
    def folder(self) -> Path | None:
        """What agents see of the directory, if that is an overlay."""
        ...

    async def rows(self, *, fresh: bool = True) -> Sequence[PendingRow]: ...
    async def patch(self, path: str) -> str: ...
    async def apply(
        self, paths: Sequence[str] | None, *, force: bool = False, since: int | None = None
    ) -> SettledChanges: ...
    async def drop(self, paths: Sequence[str] | None, *, since: int | None = None) -> SettledChanges: ...


class Session(Protocol):
    """A running session. Every control method returns when its record is durable."""

    @property
    def id(self) -> str: ...
    @property
    def intent(self) -> float: ...
    @property
    def levels(self) -> Mapping[str, float]: ...
    @property
    def model_label(self) -> str:
        """Which model answers, in words for people."""
        ...

    @property
    def journal(self) -> Path: ...

    @property
    def failure(self) -> IactError | None:
        """Why the session has stopped, if it has."""
        ...

    @property
    def view(self) -> View:
        """What it is now."""
        ...

    @property
    def effects(self) -> Effects:
        """What waits in a live directory."""
        ...

    @property
    def modules_running(self) -> int:
        """How many modules run for it now."""
        ...

    async def say(self, text: str, *, mode: Way = "dialogue", plan_first: bool = False) -> Record: ...
    async def foresee(self, text: str) -> tuple[Way, str]:
        """How `auto` would have a message worked on, and why."""
        ...

    async def inject(
        self, path: str, text: str, mode: InjectMode, step: str = "", *, calls: bool = True
    ) -> Record: ...
    async def send_now(self, path: str, message: int) -> Record: ...
    async def reword(self, path: str, message: int, text: str) -> Record: ...
    async def withdraw(self, path: str, message: int) -> Record: ...
    async def stop_calls(self, path: str) -> Record: ...
    async def pause(self, path: str, step: str = "") -> Record: ...
    async def resume(self, path: str, step: str = "") -> Record: ...
    async def cancel(self, path: str, step: str = "") -> Record: ...
    async def start_plan(self, path: str) -> Record: ...
    async def edit_plan(self, path: str, text: str) -> Record: ...
    async def retry_step(self, path: str, step: str) -> Record: ...
    def plan_text(self, path: str) -> str:
        """A plan as a person would write it."""
        ...

    def save_plan(self, path: str, name: str) -> Path:
        """Keep a plan as a template."""
        ...

    async def begin_plan(self, text: str, *, name: str, mode: str, plan_first: bool) -> Record:
        """Begin a plan that a person wrote or kept."""
        ...

    async def raise_budget(self, tokens: int = 0, money: float = 0.0) -> Record: ...
    async def compress(self) -> Record:
        """Have the root's history summarized and cut."""
        ...

    async def summary(self) -> str:
        """What a new session must know to go on from this one."""
        ...

    async def set_intent(self, value: float) -> Record: ...
    async def clear(
        self, call: int, allow: bool, remember: JSON = None, *, also: Sequence[int] = ()
    ) -> Record: ...
    async def clear_host(
        self, ask: int, allow: bool, lasts: Literal["once", "session", "always"] = "once"
    ) -> Record: ...
    def offers_skill(self, record: int) -> bool:
        """Whether the record is an open question about a skill that an agent offers."""
        ...

    async def answer_form(
        self, ask: int, action: Literal["accept", "decline"], values: Mapping[str, JSON] | None = None
    ) -> Record: ...
    def asks_host(self, record: int) -> bool:
        """Whether the record is an open question about a host."""
        ...

    async def allow_hosts(
        self, module: str, hosts: Sequence[str], *, always: bool = False, remove: bool = False
    ) -> None: ...
    @property
    def hosts(self) -> Sequence[HostRow]:
        """What modules may reach without a question."""
        ...

    async def declassify(self, path: str, variable: str | None = None) -> Record: ...
    async def lockdown(self, value: bool) -> Record: ...
    async def restore(self, version: str) -> Record:
        """Make the files of the workspace what they were at a version."""
        ...

    async def upload(self, name: str, media: str, content: bytes) -> Record:
        """Hand the root a file; the record's `var` names the variable."""
        ...

    def records(self, since: int = 0) -> Sequence[Record]:
        """All durable records with a number above `since`, in order."""
        ...

    def watch(self) -> AbstractAsyncContextManager[AsyncIterable[Event]]:
        """Events from the moment of entering.

        For every agent that is writing at that moment the stream begins with a `Delta` that has
        `restart` set and carries its text so far. The stream raises an `IactError` when the watcher
        was too slow for its bounded queue, and ends when the session is closed.
        """
        ...

    def tree(self) -> tuple[NodeView, ...]: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """How one check of the machine went; `remedy`: what to do about it, "" if nothing."""

    check: str
    ok: bool
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded session that comes with the product. `id`: under which it is opened; `about`: a sentence."""

    id: str
    title: str
    about: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in whatever money the user counts: read anew, reused, and written.

    `models`: those that cost something else, by the name of the model.
    """

    prompt: float
    cached: float
    completion: float
    models: Mapping[str, Prices] = field(default_factory=dict)


class Templates(Protocol):
    """Plans that people kept, by name."""

    def names(self) -> list[str]: ...
    def read(self, name: str) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTerms:
    """How a model is spoken to, and what it costs; None: as for all. `dialect`: "tools" if it insists on function calls.

    Prices are those of a million tokens: that it reads anew, that its endpoint had in its cache, and that it writes.
    """

    dialect: Literal["text", "tools"] | None = None
    takes: tuple[Medium, ...] | None = None
    price_prompt: float | None = None
    price_cached: float | None = None
    price_completion: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleView:
    """Which model plays a role. `url`: "" for the embedded one. `key`: whether it has one. `own`: it is chosen for this
    role, and not the one for all."""

    role: str
    url: str
    model: str
    context: int
    key: bool
    own: bool
    terms: RoleTerms = RoleTerms()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChoice:
    """What a person wants to play a role. `model`: "" if the endpoint has only one. `context`: None: as for all. `key`:
    None: the one that is kept, if it is for this address; "": none."""

    role: str
    url: str
    model: str = ""
    context: int | None = None
    key: str | None = field(default=None, repr=False)
    terms: RoleTerms = RoleTerms()


@dataclass(frozen=True, slots=True)
class FirstMessage:
    """What sessions often begin with, kept by a person under a name."""

    name: str
    text: str


class Choices(Protocol):
    """What a person chooses and the product keeps. What does not say `async` blocks.

    Everything raises UsageError if it can't be done, and then all is as before.
    """

    def roles(self) -> Sequence[RoleView]: ...
    async def try_role(self, choice: RoleChoice) -> Tried: ...
    async def choose_role(self, choice: RoleChoice) -> None: ...
    async def forget_role(self, name: str) -> None: ...
    def first_messages(self) -> Sequence[FirstMessage]: ...
    def keep_first_message(self, message: FirstMessage) -> None: ...
    def forget_first_message(self, name: str) -> None: ...


class OwnSecrets(Protocol):
    """The secrets of one user, for modules. No value is ever told. Everything blocks.

    `lent`: what they give to the modules that are set for everybody, in place of everybody's; else to their own modules.
    """

    def names(self, *, lent: bool) -> Sequence[str]: ...
    def store(self, name: str, value: str, *, lent: bool) -> None:
        """Store one, in place of one of the same name; raises UsageError if it can't be."""
        ...

    def remove(self, name: str, *, lent: bool) -> None:
        """Remove one; raises UsageError if there is none."""
        ...


class Product(Protocol):
    """What the rest of the product can tell and make. `checks` and `export` block; nothing raises but as said."""

    @property
    def choices(self) -> Choices:
        """What a person chose, to be looked at and changed."""
        ...

    @property
    def secrets(self) -> OwnSecrets:
        """This user's secrets."""
        ...

    def settings(self) -> Sequence[tuple[str, str]]:
        """The settings in force, as names and values for people; secrets are not among them."""
        ...

    def prices(self) -> Prices | None:
        """What tokens cost, if that is known."""
        ...

    def checks(self) -> Sequence[Finding]:
        """What works on this machine and what doesn't."""
        ...

    def examples(self) -> Sequence[Recorded]:
        """Recorded sessions to look at."""
        ...

    def export(self, journal: Path, at: int | None) -> str:
        """A journal up to record `at` (None: all) as one self-contained HTML page.

        Raises:
            JournalError: it can't be read.
            UsageError: there is no such record.
        """
        ...


class Runtime(Protocol):
    """Opens sessions. Opening one that is open already gives the same object."""

    @property
    def model_label(self) -> str:
        """Which model a new session would get, in words for people."""
        ...

    @property
    def templates(self) -> Templates:
        """The plans that people kept."""
        ...

    @property
    def memory(self) -> Memory | None:
        """What sessions remember; None where memory is off."""
        ...

    @property
    def store(self) -> SessionStore:
        """The sessions on disk."""
        ...

    @property
    def at_work(self) -> bool:
        """Whether an agent of an open session has something to do, if only to wait for a person."""
        ...

    @property
    def figures(self) -> Figures:
        """What sessions did so far."""
        ...

    def workload(self) -> Workload:
        """What goes on now."""
        ...

    async def refresh_modules(self) -> None:
        """Let the sessions that are open know what the catalogue holds now."""
        ...

    async def unready(self) -> str:
        """In one word what keeps new work from being taken; empty if nothing does."""
        ...

    def is_open(self, session_id: str) -> bool:
        """Whether opening a session costs nothing, since it is open."""
        ...

    def sessions(self) -> Sequence[SessionInfo]:
        """The stored sessions, the one that changed last first. Blocks."""
        ...

    async def search_sessions(self, query: str, limit: int) -> Found:
        """Sessions that hold all these words."""
        ...

    def watch_sessions(self) -> SessionChanges:
        """Which sessions change, and what they are at."""
        ...

    async def rename(self, session_id: str, title: str) -> str: ...
    async def pin(self, session_id: str, pinned: bool) -> None: ...

    async def delete(self, sessions: Sequence[str]) -> DeletionOutcome:
        """Move sessions to the trash; those that are open are closed first."""
        ...

    async def restore_sessions(self, sessions: Sequence[str]) -> DeletionOutcome: ...
    async def purge(self, sessions: Sequence[str]) -> DeletionOutcome: ...

    async def open(self, session_id: str | None) -> Session: ...

    async def fork(self, source: str | Path, at: int, *, run: bool = False) -> str:
        """Make a session that shares records 1…`at` of a stored one; gives its id, and does not open it.

        `source`: a session's id, or the directory of a journal anywhere.
        """
        ...

    async def adopt(self, source: str | Path, at: int | None = None) -> str:
        """Make a session of our own of records 1…`at` of a foreign one; gives its id, and does not open it."""
        ...

    async def modules(self) -> Sequence[KnownModule]:
        """The catalogue of modules, with what is approved of it."""
        ...

    async def add_module(self, source: ModuleSource) -> KnownModule:
        """A person adds a module; open sessions find its functions when their context matches."""
        ...

    async def remove_module(self, name: str) -> None: ...

    async def approve_module(self, name: str, functions: Sequence[str], *, digest: str) -> KnownModule:
        """A person approves functions of a module (none named: its whole manifest) as it is in the catalogue."""
        ...


# --- several users --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tenant:
    """What is one user's: the sessions of their runtime, and what the product can tell them."""

    runtime: Runtime
    product: Product | None = None


class Tenants(Protocol):
    """Opens what users have. Nobody's things are within reach of another's, so no question can forget whose it asks for."""

    @property
    def figures(self) -> Figures:
        """What the sessions of all users did so far, those that are closed included."""
        ...

    def workload(self) -> Workload:
        """What goes on in all of them now."""
        ...

    def lease(self, user: str) -> AbstractAsyncContextManager[Tenant]:
        """What a user has, for as long as somebody works with it.

        Raises:
            UsageError: too many users are at work.
        """
        ...


@dataclass(frozen=True, slots=True)
class Used:
    """What a user used of something in a month. `most`: of their quota; None: there is none."""

    user: str
    period: str
    resource: str
    used: float
    most: float | None = None


class PeopleRegister(Protocol):
    """What people see and change of accounts, and of what they share. Everything blocks, and raises UsageError if it
    can't be done; `who` is who asks, as the audit has them. That they may ask is certain by then."""

    @property
    def public_links(self) -> bool:
        """Whether a link can be made that works without an account."""
        ...

    def shared_with(self, who: Principal) -> Sequence[SharedSession]: ...
    def grants(self, who: Principal, session: str) -> Sequence[tuple[str, SessionGrant]]:
        """The roles on a session of theirs, each with the name of the user or group."""
        ...

    def links(self, who: Principal, session: str) -> Sequence[ShareLink]: ...
    def share(self, who: Principal, session: str, name: str, role: Role, *, group: bool) -> None: ...
    def unshare(self, who: Principal, session: str, name: str, *, group: bool) -> None: ...
    def create_link(
        self, who: Principal, session: str, view: LinkView, days: float, *, public: bool
    ) -> Shown: ...
    def revoke_link(self, who: Principal, link: str) -> None: ...
    def tokens(self, who: Principal) -> Sequence[ApiToken]: ...
    def create_token(self, who: Principal, name: str, scopes: Sequence[Scope], days: float) -> Shown: ...
    def revoke_token(self, who: Principal, token: str) -> None: ...
    def sign_ins(self, who: Principal) -> Sequence[SignIn]: ...
    def sign_out(self, who: Principal, sign_in: str | None) -> None: ...
    def usage(self, who: Principal | None) -> Sequence[Used]:
        """Of one, or of everybody."""
        ...

    def users(self) -> Sequence[User]: ...
    def add_user(self, who: Principal, name: str, password: str | None, *, admin: bool) -> None: ...
    def change_user(
        self, who: Principal, name: str, *, password: str | None, admin: bool | None, disabled: bool | None,
        groups: Sequence[str] | None,
    ) -> None: ...  # fmt: skip
    def audit(self, most: int) -> Sequence[AuditEvent]: ...
    def audit_file(
        self, since: str | None, who: str | None, what: str | None
    ) -> Callable[[], Iterator[bytes]]:
        """What gives all of the audit that is wanted, of sessions, too: lines of JSON, made while it is fetched."""
        ...

    def tell(self, who: Principal, kind: AuditKind, about: Mapping[str, str]) -> None:
        """Put into the audit what somebody did."""
        ...


class SharedSetup(Protocol):
    """What administrators set for everybody. That they may is certain by then."""

    async def modules(self) -> Sequence[KnownModule]: ...
    async def add_module(self, source: ModuleSource) -> KnownModule:
        """Add one; nothing of it is approved by that."""
        ...

    async def remove_module(self, name: str) -> None: ...
    async def approve_module(self, name: str, functions: Sequence[str], *, digest: str) -> KnownModule: ...
    def secrets(self) -> Sequence[str]:
        """The names of the secrets; no value is ever told. Blocks, as all that follows."""
        ...

    def store_secret(self, name: str, value: str) -> None: ...
    def remove_secret(self, name: str) -> None: ...
    def policy(self) -> str:
        """The policy, as its file has it."""
        ...

    def change_policy(self, text: str, was: str) -> None:
        """Write another one. `was`: what it was when it was looked at; raises UsageError if it isn't that any more."""
        ...


class People(Protocol):
    """Who asks, and what was granted to them. Everything reads what is stored now, and blocks only for that."""

    def identify(self, asked: Asked) -> Principal | None:
        """Who a request comes from; None: nobody that is known."""
        ...

    def holds(self, who: Principal) -> bool:
        """Whether somebody is still who they were: not signed out, disabled, ended or revoked."""
        ...

    def grant(self, who: Principal, session: str | None) -> SharedSession | None:
        """What they may do with a session of another user. None for `session`: with the one of their link."""
        ...


class Entrance(Protocol):
    """Where people sign in and out, and where links lead."""

    def answer(self, asked: Asked) -> HttpReply:
        """Answer a request for one of those routes. It blocks: a password takes a moment, a provider a second."""
        ...
