"""What the web package needs of the runtime, as Protocols; the implementations are in `core.session`.

They are defined here so that the package can be tested with an in-memory session, and so that the interface between web
and core stays as narrow as this file.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
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
from iact.accounts.rights import LinkView, Principal, Role, Scope, Words
from iact.core.errors import IactError
from iact.core.ports import JSON, Medium, Memory, ModuleSource
from iact.core.records.control import InjectMode, MemorySwitch
from iact.core.records.record import Record
from iact.core.records.ways import Way
from iact.core.session.distilling import DistilOutcome
from iact.core.session.effects import SeenChanges, SettledChanges
from iact.core.session.hosts import HostRow
from iact.core.session.models import Tried
from iact.core.stored.deletion import DeletionOutcome
from iact.core.stored.index import SearchHit
from iact.core.stored.store import SessionStore
from iact.core.stored.templates import OfferedValue, Template
from iact.core.views.events import Event
from iact.core.views.figures import Figures, Workload
from iact.core.views.known_modules import KnownModule
from iact.core.views.review import PendingRow
from iact.core.views.status import SessionState, SessionStatus
from iact.core.views.view import NodeView, View
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
        """Whether another installation made it; then it can only be viewed, or adopted."""
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
        """Whether a person gave it its title."""
        ...

    @property
    def source(self) -> str:
        """For a fork, the session that it comes from."""
        ...

    @property
    def at(self) -> int:
        """For a fork, the last record that both have."""
        ...


class Found(Protocol):
    """The result of a search: sessions, and where their text matches. `behind`: how many sessions are not indexed
    yet."""

    @property
    def rows(self) -> Sequence[tuple[SessionInfo, SearchHit | None]]: ...
    @property
    def behind(self) -> int: ...


class SessionChanges(Protocol):
    """Yields sessions that change, with their new status (None: read the list again), until the context exits."""

    async def __aenter__(self) -> SessionChanges: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def __aiter__(self) -> SessionChanges: ...
    async def __anext__(self) -> tuple[str, SessionStatus | None]: ...


class Effects(Protocol):
    """The part of a session that handles pending changes of a live directory; implemented in `core.session.effects`."""

    @property
    def folder(self) -> Path | None:
        """The agents' view of the directory, if that is an overlay."""
        ...

    async def rows(self, *, fresh: bool = True) -> Sequence[PendingRow]: ...
    async def patch(self, path: str) -> str: ...
    def digest(self, path: str) -> str:
        """The digest of the pending change of a path."""
        ...

    async def apply(
        self,
        paths: Sequence[str] | None,
        *,
        force: bool = False,
        since: int | None = None,
        seen: SeenChanges | None = None,
    ) -> SettledChanges: ...
    async def drop(
        self, paths: Sequence[str] | None, *, since: int | None = None, seen: SeenChanges | None = None
    ) -> SettledChanges: ...


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
        """The session's current state."""
        ...

    @property
    def effects(self) -> Effects:
        """The pending changes of a live directory."""
        ...

    @property
    def modules_running(self) -> int:
        """How many modules run for it now."""
        ...

    def message_named(self, once: str) -> Record | None:
        """The message that the acting user sent under this name."""
        ...

    async def say(
        self, text: str, *, mode: Way = "dialogue", plan_first: bool = False, once: str = ""
    ) -> Record: ...
    async def foresee(self, text: str) -> tuple[Way, str]:
        """How `auto` would work on a message, and why."""
        ...

    async def inject(
        self, path: str, text: str, mode: InjectMode, step: str = "", *, calls: bool = True, once: str = ""
    ) -> Record: ...
    async def send_now(self, path: str, message: int) -> Record: ...
    async def reword(self, path: str, message: int, text: str) -> Record: ...
    async def withdraw(self, path: str, message: int) -> Record: ...
    async def stop_calls(self, path: str) -> Record: ...
    async def pause(self, path: str, step: str = "") -> Record: ...
    async def resume(self, path: str, step: str = "") -> Record: ...
    async def cancel(self, path: str, step: str = "") -> Record: ...
    async def start_plan(self, path: str, *, seen: str | None = None) -> Record: ...

    def plan_digest(self, path: str) -> str: ...
    async def edit_plan(self, path: str, text: str) -> Record: ...
    async def retry_step(self, path: str, step: str) -> Record: ...
    def plan_text(self, path: str) -> str:
        """A plan as a person would write it."""
        ...

    def save_plan(self, path: str, name: str, parameters: Mapping[str, str] | None = None) -> Path:
        """Keep a plan as a template, with `parameters` left open."""
        ...

    def plan_offers(self, path: str) -> Sequence[OfferedValue]:
        """What could be left open in a plan."""
        ...

    async def begin_plan(self, text: str, *, name: str, mode: str, plan_first: bool) -> Record:
        """Begin a plan that a person wrote or kept."""
        ...

    async def raise_budget(self, tokens: int = 0, money: float = 0.0) -> Record: ...
    async def compress(self) -> Record:
        """Have the root's history summarized and cut."""
        ...

    async def summary(self) -> str:
        """What a new session must know to continue from this one."""
        ...

    async def set_intent(self, value: float) -> Record: ...
    async def clear(
        self,
        call: int,
        allow: bool,
        remember: JSON = None,
        *,
        also: Sequence[int] = (),
        why: str = "",
        seen: Sequence[str] | None = None,
    ) -> Record: ...
    async def clear_host(
        self,
        ask: int,
        allow: bool,
        lasts: Literal["once", "session", "always"] = "once",
        *,
        why: str = "",
        seen: str | None = None,
    ) -> Record: ...
    def offers_skill(self, record: int) -> bool:
        """Whether the record is an open question about a skill that an agent offers."""
        ...

    async def answer_form(
        self,
        ask: int,
        action: Literal["accept", "decline"],
        values: Mapping[str, JSON] | None = None,
        *,
        seen: str | None = None,
    ) -> Record: ...
    def asks_host(self, record: int) -> bool:
        """Whether the record is an open question about a host."""
        ...

    async def allow_hosts(
        self, module: str, hosts: Sequence[str], *, always: bool = False, remove: bool = False
    ) -> None: ...
    @property
    def hosts(self) -> Sequence[HostRow]:
        """The hosts that modules may reach without asking."""
        ...

    async def declassify(
        self, path: str, variable: str | None = None, *, seen: str | None = None
    ) -> Record: ...

    def reading(self, path: str) -> tuple[frozenset[str], str]: ...
    async def lockdown(self, value: bool) -> Record: ...
    @property
    def memory_off(self) -> Collection[MemorySwitch]:
        """Whose switches of memory are off here."""
        ...

    async def switch_memory(self, value: bool) -> None:
        """Switch memory off or on for this session."""
        ...

    async def restore(self, version: str, path: str = "") -> Record:
        """Put the files of the workspace, or the one at `path`, back to a version."""
        ...

    async def upload(self, name: str, media: str, content: bytes) -> Record:
        """Give the root a file; the record's `var` names the variable."""
        ...

    def records(self, since: int = 0) -> Sequence[Record]:
        """All durable records with a number above `since`, in order."""
        ...

    def watch(self) -> AbstractAsyncContextManager[AsyncIterable[Event]]:
        """Events from the moment of entering.

        For every agent that is writing at that moment, the stream begins with a `Delta` that has `restart` set and
        contains its text so far. The stream raises an `IactError` if the watcher was too slow for its bounded queue,
        and ends when the session is closed.
        """
        ...

    def tree(self) -> tuple[NodeView, ...]: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of the machine. `remedy`: what to do about it, "" if nothing."""

    check: str
    ok: bool
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded session that comes with the product. `id`: opens it; `about`: a sentence about it."""

    id: str
    title: str
    about: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Prices:
    """The price of a million tokens, in the user's currency: uncached input, cached input, and output.

    `models`: models with other prices, by name.
    """

    prompt: float
    cached: float
    completion: float
    models: Mapping[str, Prices] = field(default_factory=dict)


class Templates(Protocol):
    """Plans that people kept, by name."""

    def names(self) -> list[str]: ...
    def usable(self) -> Mapping[str, Template]: ...
    def filled(self, name: str, values: Mapping[str, str]) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTerms:
    """How to talk to a model, and its prices; None: as for all. `dialect`: "tools" if it insists on function calls.

    Prices are for a million tokens of uncached input, cached input, and output.
    """

    dialect: Literal["text", "tools"] | None = None
    takes: tuple[Medium, ...] | None = None
    price_prompt: float | None = None
    price_cached: float | None = None
    price_completion: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleView:
    """Which model plays a role. `url`: "" for the embedded one. `key`: whether it has one. `own`: it was chosen for
    this role, and is not the default for all."""

    role: str
    url: str
    model: str
    context: int
    key: bool
    own: bool
    terms: RoleTerms = RoleTerms()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChoice:
    """The model that a person chooses for a role. `model`: "" if the endpoint has only one. `context`: None: as for
    all. `key`: None: the stored one, if it is for this address; "": none."""

    role: str
    url: str
    model: str = ""
    context: int | None = None
    key: str | None = field(default=None, repr=False)
    terms: RoleTerms = RoleTerms()


@dataclass(frozen=True, slots=True)
class FirstMessage:
    """A message that sessions often begin with, saved by a person under a name."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFileView:
    """A model in a file, which runs on the machine of the server."""

    name: str
    """As the setting `embedded` names it."""
    title: str
    """How people name it."""
    size: int
    """In bytes."""
    present: bool
    """Whether it need not be downloaded first."""
    in_use: bool
    """Whether it is the one that answers."""


@dataclass(frozen=True, slots=True)
class AddedEndpointView:
    """A model behind an endpoint, which was added with `iact model add`."""

    name: str
    """As it was added."""
    model: str
    """How its endpoint names it."""
    url: str
    in_use: bool
    """Whether it is the one that answers."""


class Choices(Protocol):
    """Choices that a person makes and the product stores. Methods that are not `async` block.

    Every method raises UsageError if it fails, and then changes nothing.
    """

    def roles(self) -> Sequence[RoleView]: ...
    async def try_role(self, choice: RoleChoice) -> Tried: ...
    async def choose_role(self, choice: RoleChoice) -> None: ...
    async def forget_role(self, name: str) -> None: ...
    async def use_on_board(self, name: str) -> None: ...
    def model_files(self) -> Sequence[ModelFileView]: ...
    def added_endpoints(self) -> Sequence[AddedEndpointView]: ...
    async def use_endpoint(self, name: str) -> None: ...
    def presets(self) -> Sequence[Preset]: ...
    def first_messages(self) -> Sequence[FirstMessage]: ...
    def keep_first_message(self, message: FirstMessage) -> None: ...
    def forget_first_message(self, name: str) -> None: ...


class Preset(Protocol):
    """A provider, or a program of the user's, whose models can be connected."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str:
        """How people name it."""
        ...

    @property
    def url(self) -> str: ...
    @property
    def needs_key(self) -> bool: ...
    @property
    def keys(self) -> str:
        """Where a person gets a key, or ""."""
        ...

    @property
    def about(self) -> str:
        """What a person must know before it works, as a sentence, or ""."""
        ...


class BoardState(Protocol):
    """How far the model on board is."""

    @property
    def phase(self) -> Literal["waiting", "downloading", "checking", "loading", "ready", "failed"]: ...
    @property
    def done(self) -> int:
        """The bytes of its file that are here, while they are downloaded."""
        ...

    @property
    def total(self) -> int: ...
    @property
    def why(self) -> str:
        """Why it can't come, as a sentence, or ""."""
        ...


class Board(Protocol):
    """The model on board that is in use, if there is one."""

    def watch(self) -> AbstractAsyncContextManager[AsyncIterator[BoardState | None]]:
        """Its state now, and whenever it changes; None: none is in use."""
        ...


class OwnSecrets(Protocol):
    """The secrets of one user, for modules. Values are never returned. Everything blocks.

    `lent`: secrets that replace the common ones in modules that are set for all users; otherwise, secrets for the
    user's own modules.
    """

    def names(self, *, lent: bool) -> Sequence[str]: ...
    def store(self, name: str, value: str, *, lent: bool) -> None:
        """Store a secret, replacing one of the same name; raises UsageError if that fails."""
        ...

    def remove(self, name: str, *, lent: bool) -> None:
        """Remove a secret; raises UsageError if there is none."""
        ...


class Product(Protocol):
    """What the rest of the product provides. `checks` and `export` block; methods only raise what they document."""

    @property
    def choices(self) -> Choices:
        """The choices that a person made, to be read and changed."""
        ...

    @property
    def board(self) -> Board:
        """How far the model on board is."""
        ...

    @property
    def secrets(self) -> OwnSecrets:
        """This user's secrets."""
        ...

    def settings(self) -> Sequence[tuple[str, str]]:
        """The settings in effect, as names and values for people; secrets are not among them."""
        ...

    def prices(self) -> Prices | None:
        """What tokens cost, if known."""
        ...

    def checks(self) -> Sequence[Finding]:
        """What works on this machine and what doesn't."""
        ...

    def examples(self) -> Sequence[Recorded]:
        """Recorded sessions to view."""
        ...

    def export(self, journal: Path, at: int | None) -> str:
        """A journal up to record `at` (None: all) as one self-contained HTML page.

        Raises:
            JournalError: it can't be read.
            UsageError: there is no such record.
        """
        ...


class Runtime(Protocol):
    """Opens sessions. Opening one that is already open returns the same object."""

    @property
    def model_label(self) -> str:
        """Which model a new session would get, in words for people."""
        ...

    @property
    def small_models(self) -> frozenset[str]:
        """The names of the models that would answer in a new session and are small: often wrong."""
        ...

    @property
    def templates(self) -> Templates:
        """The plans that people kept."""
        ...

    @property
    def memory(self) -> Memory | None:
        """The memory of sessions; None if memory is disabled."""
        ...

    async def switch_memory(self, value: bool) -> None:
        """Switch memory off or on for the user, in all sessions."""
        ...

    async def distil_each(self, sessions: Sequence[str]) -> DistilOutcome:
        """Ask a model what of these sessions is worth remembering. What can't be asked about is left out."""
        ...

    @property
    def store(self) -> SessionStore:
        """The sessions on disk."""
        ...

    @property
    def at_work(self) -> bool:
        """Whether an agent of an open session has work to do, even if it only waits for a person."""
        ...

    @property
    def figures(self) -> Figures:
        """Counters of what sessions have done so far."""
        ...

    def workload(self) -> Workload:
        """The current workload."""
        ...

    async def refresh_modules(self) -> None:
        """Notify open sessions of the current catalogue."""
        ...

    async def unready(self) -> str:
        """Why no new work is accepted, in one word; empty if it is."""
        ...

    def is_open(self, session_id: str) -> bool:
        """Whether the session is open, so that opening it costs nothing."""
        ...

    def sessions(self) -> Sequence[SessionInfo]:
        """The stored sessions, the most recently changed first. Blocks."""
        ...

    async def search_sessions(self, query: str, limit: int) -> Found:
        """Sessions that hold all these words."""
        ...

    def watch_sessions(self) -> SessionChanges:
        """The sessions that change, with their status."""
        ...

    async def rename(self, session_id: str, title: str) -> str: ...
    async def pin(self, session_id: str, pinned: bool) -> None: ...

    async def delete(self, sessions: Sequence[str]) -> DeletionOutcome:
        """Move sessions to the trash, closing open ones first."""
        ...

    async def restore_sessions(self, sessions: Sequence[str]) -> DeletionOutcome: ...
    async def purge(self, sessions: Sequence[str]) -> DeletionOutcome: ...

    async def open(self, session_id: str | None) -> Session: ...

    async def begun_with(self, once: str) -> str | None:
        """The session that the acting user lately began with the message of this name."""
        ...

    async def fork(self, source: str | Path, at: int, *, run: bool = False) -> str:
        """Make a session that shares records 1…`at` of a stored one. Returns its id, and does not open it.

        `source`: a session's id, or the directory of any journal.
        """
        ...

    async def adopt(self, source: str | Path, at: int | None = None) -> str:
        """Make the user's own session from records 1…`at` of a foreign one. Returns its id, and does not open it."""
        ...

    async def modules(self) -> Sequence[KnownModule]:
        """The catalogue of modules, with what is approved of each."""
        ...

    async def add_module(self, source: ModuleSource) -> KnownModule:
        """Add a module for a person. Open sessions find its functions when their context matches."""
        ...

    async def remove_module(self, name: str) -> None: ...

    async def approve_module(self, name: str, functions: Sequence[str], *, digest: str) -> KnownModule:
        """Approve functions of a module (none named: its whole manifest) for a person, as it is in the catalogue."""
        ...


# --- several users --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tenant:
    """What one user has: the sessions of their runtime, and what the product provides for them."""

    runtime: Runtime
    product: Product | None = None


class Tenants(Protocol):
    """Opens what users have. Users are fully separate, so no query can forget to filter by user."""

    @property
    def figures(self) -> Figures:
        """Counters of what the sessions of all users have done so far, including closed ones."""
        ...

    def workload(self) -> Workload:
        """The current workload of all users."""
        ...

    def lease(self, user: str) -> AbstractAsyncContextManager[Tenant]:
        """What a user has, open until the context exits.

        Raises:
            UsageError: too many users are active.
        """
        ...


@dataclass(frozen=True, slots=True)
class Used:
    """How much of a resource a user used in a month. `most`: their quota, or None if there is none."""

    user: str
    period: str
    resource: str
    used: float
    most: float | None = None


class PeopleRegister(Protocol):
    """The accounts and grants that people see and change. Everything blocks, and raises UsageError if it fails. `who`
    makes the request, for the audit; the caller has already checked that they may."""

    @property
    def public_links(self) -> bool:
        """Whether links that work without an account can be made."""
        ...

    def shared_with(self, who: Principal) -> Sequence[SharedSession]: ...
    def grants(self, who: Principal, session: str) -> Sequence[tuple[str, SessionGrant]]:
        """The roles on one of their sessions, each with the name of the user or group."""
        ...

    def links(self, who: Principal, session: str) -> Sequence[ShareLink]: ...
    def share(self, who: Principal, session: str, name: str, role: Role, *, group: bool) -> None: ...
    def unshare(self, who: Principal, session: str, name: str, *, group: bool) -> None: ...
    def create_link(
        self, who: Principal, session: str, view: LinkView, days: float, *, public: bool
    ) -> Shown: ...
    def revoke_link(self, who: Principal, link: str) -> None: ...
    def tokens(self, who: Principal) -> Sequence[ApiToken]: ...
    def create_token(
        self, who: Principal, name: str, scopes: Sequence[Scope], days: float, words: Words
    ) -> Shown: ...
    def revoke_token(self, who: Principal, token: str) -> None: ...
    def sign_ins(self, who: Principal) -> Sequence[SignIn]: ...
    def sign_out(self, who: Principal, sign_in: str | None) -> None: ...
    def usage(self, who: Principal | None) -> Sequence[Used]:
        """The usage of one user, or of all."""
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
        """A function that returns the requested part of the audit, including sessions, as lines of JSON made while it
        is fetched."""
        ...

    def tell(self, who: Principal, kind: AuditKind, about: Mapping[str, str]) -> None:
        """Add what a user did to the audit."""
        ...


class SharedSetup(Protocol):
    """What administrators set for all users. The caller has already checked that they may."""

    async def modules(self) -> Sequence[KnownModule]: ...
    async def add_module(self, source: ModuleSource) -> KnownModule:
        """Add a module; adding it approves nothing of it."""
        ...

    async def remove_module(self, name: str) -> None: ...
    async def approve_module(self, name: str, functions: Sequence[str], *, digest: str) -> KnownModule: ...
    def secrets(self) -> Sequence[str]:
        """The names of the secrets; values are never returned. Blocks, like everything below."""
        ...

    def store_secret(self, name: str, value: str) -> None: ...
    def remove_secret(self, name: str) -> None: ...
    def policy(self) -> str:
        """The policy, as its file has it."""
        ...

    def change_policy(self, text: str, was: str) -> None:
        """Replace the policy. `was`: the policy that the administrator saw; raises UsageError if it has changed
        since."""
        ...


class People(Protocol):
    """Who makes a request, and what was granted to them. Everything reads the current database, and blocks only for
    that."""

    def identify(self, asked: Asked) -> Principal | None:
        """Who a request comes from, or None if it is from no one known."""
        ...

    def holds(self, who: Principal) -> bool:
        """Whether a principal is still valid: not signed out, disabled, expired or revoked."""
        ...

    def grant(self, who: Principal, session: str | None) -> SharedSession | None:
        """What a principal may do with another user's session. None for `session`: the one that their link leads to."""
        ...


class Entrance(Protocol):
    """Where people sign in and out, and where links lead."""

    def answer(self, asked: Asked) -> HttpReply:
        """Answer a request for one of those routes. It blocks: a password takes a moment, a provider a second."""
        ...
