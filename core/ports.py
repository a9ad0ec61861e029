"""What the core needs from the outer rooms, as Protocols.

The core knows nothing of Docker, Chroma, websockets or HTTP: `iact` passes it objects of these types. An implementation
of a port must pass the conformance tests in `tests/` for that port.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, get_args

from typing_extensions import TypedDict

JSON: TypeAlias = bool | int | float | str | list["JSON"] | dict[str, "JSON"] | None
"""Any JSON value."""

# --- models ---------------------------------------------------------------------------------

Speaker = Literal["system", "user", "assistant"]


Medium = Literal["image", "audio"]
"""Media that a model may take in addition to text."""

MEDIA: Final[tuple[Medium, ...]] = get_args(Medium)


@dataclass(frozen=True, slots=True)
class Part:
    """A variable inside a message, for models that take its medium. Parts with equal content are equal.

    `load` returns its bytes.
    """

    name: str = field(compare=False)
    media: str
    medium: Medium
    sha256: str
    load: Callable[[], bytes] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a context, as the model's endpoint receives it. `parts` follow its text."""

    role: Speaker
    content: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one model call. `estimated`: the endpoint reported none."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False

    def to_json(self) -> dict[str, int]:
        """Return the counts in the form for commands and clients."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
        }


@dataclass(frozen=True, slots=True)
class StaticPrompt:
    """Layer 1 of every context: one system text, then fixed example messages (user, assistant, …)."""

    system: str
    examples: tuple[ChatMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in any currency: newly read, read from a cache, and written."""

    prompt: float
    cached: float
    completion: float

    def of(self, prompt: int, cached: int, completion: int) -> float:
        """Return the cost of a call. `cached` of the `prompt` tokens came from the cache."""
        anew = max(0, prompt - cached)
        return (anew * self.prompt + cached * self.cached + completion * self.completion) / 1_000_000


@dataclass(frozen=True, slots=True)
class Spending:
    """What model calls used or may use: tokens, read and written, and money."""

    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(self.tokens + other.tokens, self.money + other.money)

    def __sub__(self, other: Spending) -> Spending:
        return Spending(self.tokens - other.tokens, self.money - other.money)

    @property
    def price(self) -> str:
        """The money, with enough digits that a small sum is not shown as zero."""
        return f"{self.money:.2f}" if self.money >= 0.01 or not self.money else f"{self.money:.2g}"


class Reservation(Protocol):
    """A reserved amount for one model call."""

    async def settle(self, used: Spending) -> None:
        """Report that the call ended and took `used`; the rest is released. Must be called exactly once."""
        ...


class ModelQuota(Protocol):
    """What may still be used of models. Asked before each call."""

    async def reserve(self, most: Spending) -> Reservation:
        """Reserve room for a call that takes at most `most`.

        Waits while running calls hold what this one needs, because they may take less.

        Raises:
            QuotaExceeded: it would be too much even if they took nothing.
        """
        ...


@dataclass(frozen=True, slots=True)
class AtOnce:
    """How many sessions or containers may run at once for one user. `most`: how many of this user's, at present.

    `group`: the name of a group whose members share `shared` of them. Empty: the bound is the user's own, and `shared`
    is the bound for all hosts together, or 0 if that is `most`.
    """

    most: int
    group: str = ""
    shared: int = 0


class ConcurrencyLimits(Protocol):
    """How many sessions and containers may run at once; None: any number.

    Asked before each one that begins. The answer is valid until the caller next awaits.
    """

    async def sessions(self, *, begun: bool = False) -> AtOnce | None:
        """The limit for sessions whose agents are at work. `begun`: the session that asks is already at work."""
        ...

    async def containers(self) -> AtOnce | None:
        """The limit for module instances, each of which has a container if there is an engine."""
        ...

    def count(self, kind: Literal["sessions", "containers"], taken: Callable[[], int]) -> None:
        """Register a counter of how many run for this user, for users who share a bound with them."""
        ...


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What the core must know about a model. `context`: window in tokens. `label`: one sentence for people.

    `takes`: media that it understands in addition to text. `price`: the price of its tokens, if known. `static`
    replaces the standard static prompt for models that are too small for it.
    """

    name: str
    context: int
    label: str = ""
    takes: tuple[Medium, ...] = ()
    static: StaticPrompt | None = None
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply, in order."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning before its reply, for people only. It is not part of the reply.

    No action in it is carried out.
    """

    text: str


@dataclass(frozen=True, slots=True)
class StreamRestart:
    """The reply starts over (a retry): the pieces so far are void. `reason` is for people.

    `attempt`: the number of the next attempt, of at most `of`, after a wait of `seconds`; the next event shows that it
    has begun. `limited`: the endpoint limits requests, and this one was over the limit.
    """

    reason: str
    attempt: int
    of: int = 0
    seconds: float = 0.0
    limited: bool = False


@dataclass(frozen=True, slots=True)
class StreamRetry:
    """The wait of a `StreamRestart` is over: the endpoint is asked again."""


@dataclass(frozen=True, slots=True)
class StreamWait:
    """The model is not ready yet: its file is being downloaded, or it is being loaded. `why`: which, for people."""

    why: str


@dataclass(frozen=True, slots=True)
class StreamRecast:
    """The pieces so far were of the wrong kind, text or thought. They are void and are sent again as the right kind."""


@dataclass(frozen=True, slots=True)
class StreamUnproven:
    """It is not known yet whether this model marks the beginning of its thoughts. Sent before the text.

    Text may turn out to be thought, so nothing in it counts before the stream ends.
    """


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Usage so far, as the endpoint reports it. A later report replaces an earlier one."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The reply is complete, or was cut off by the length limit."""

    finish: Literal["stop", "length"]


ModelEvent = (
    TextDelta
    | ReasoningDelta
    | StreamRestart
    | StreamRetry
    | StreamRecast
    | StreamUnproven
    | UsageReport
    | StreamWait
    | StreamEnd
)


class Model(Protocol):
    """A language model. One implementation speaks the OpenAI protocol; local models use it as well."""

    @property
    def profile(self) -> ModelProfile: ...

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent]:
        """Stream one reply. The stream ends with exactly one `StreamEnd`.

        The consumer may close the iterator at any time, which ends the request at the endpoint.

        Raises:
            ModelError: after all sensible retries failed.
        """
        ...

    async def warm(self) -> None:
        """Get ready, if that saves a person from waiting later. Quick if there is nothing to do.

        Raises:
            ModelError: it can't get ready; a later `stream` would raise the same.
        """
        ...

    async def close(self) -> None: ...


# --- modules and their sandbox ----------------------------------------------------------------

Report = Callable[[str], None]
"""Takes one line of progress for a person ("building the base image: 3 of 5")."""


Origin = Literal["shipped", "user", "agent"]
"""Where a module comes from: shipped with the product, brought by a person, or written by an agent."""

Right = Literal["look", "try", "work"]
"""What a module instance may do with the workspace: read it (mounted read-only), write in a layer over it that is
thrown away, or write in it."""


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """A module to be stored. `files`: the content of its folder, by relative path; `module.py` is what runs.

    `summary`: one line for people. `requirements`: "name==version". `egress`, `secrets`, `workspace`: what it declares
    to need; a `module.toml` among the files contains all of this and takes precedence. `image`: the name or digest of
    an engine's image, whose program is then the module, instead of files.
    """

    name: str
    files: Mapping[str, bytes]
    summary: str = ""
    requirements: tuple[str, ...] = ()
    egress: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    workspace: str = "none"
    image: str = ""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A module that can be started. `digest`: SHA-256 hex of all of its source.

    `manifest`: the serialized `iact.ext_module.v1.Manifest` with which this digest described itself, or None if it has
    never run here. `shared`: an administrator set it for all users, and only administrators change or approve it.
    """

    name: str
    digest: str
    origin: Origin
    summary: str
    manifest: bytes | None
    shared: bool = False


Permit: TypeAlias = Callable[[str, int], Awaitable[bool]]
"""Whether a module may now connect to a host (a name or an address, in lower case) at a port. It may take long."""


class ModuleInstance(Protocol):
    """One running module of one session."""

    @property
    def name(self) -> str: ...

    @property
    def target(self) -> str:
        """The gRPC target to dial. The host has checked that it is the module's own socket."""
        ...

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secrets that it was given, by name, so that its output can be searched for them."""
        ...

    @property
    def serves_apps(self) -> bool:
        """Whether people type into it what no agent may read. Then it is used only until it holds nothing any more."""
        ...

    async def why_lost(self) -> str | None:
        """Return a sentence if it can no longer serve ("the kernel killed it for lack of memory")."""
        ...

    async def freeze(self) -> None:
        """Stop all its execution at once; `stop` ends it. Harmless where this is not possible."""
        ...

    async def stop(self) -> None: ...


class ModuleHost(Protocol):
    """Starts modules in isolation. Implemented by `sandbox`."""

    @property
    def backend(self) -> Literal["docker", "bubblewrap", "kubernetes", "off"]: ...
    @property
    def running(self) -> int:
        """How many module instances are running."""
        ...

    async def answers(self) -> bool:
        """Whether the backend that runs modules is available. One that is disabled on purpose counts as available."""
        ...

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        """Return the modules that can be started.

        Raises:
            SandboxUnavailable: there is no sandbox here; the message says what to install or run.
        """
        ...

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        """Store a module's source, so that it can be started by its digest. Runs nothing; the catalogue stays as it is.

        Raises:
            UsageError: it can't be a module; the message says what is wrong.
        """
        ...

    async def adopt(self, name: str, digest: str, origin: Origin) -> None:
        """Make a version that was added the catalogue's entry for its name."""
        ...

    async def files(self, name: str, digest: str) -> Mapping[str, bytes]:
        """Return the content of a version's folder, by relative path.

        Raises:
            SandboxUnavailable: there is no such version.
        """
        ...

    async def remove(self, name: str) -> None:
        """Remove a module from the catalogue.

        Raises:
            UsageError: there is none, or it ships with the product.
        """
        ...

    async def start(
        self,
        name: str,
        *,
        session: str,
        workspace: Path,
        report: Report,
        digest: str | None = None,
        egress: Sequence[str] = (),
        secrets: Sequence[str] = (),
        right: Right = "work",
        agent: str = "",
        copy: str = "",
        permit: Permit | None = None,
    ) -> ModuleInstance:
        """Start module `name` for `session`, with its workspace mounted. Returns once its health service serves.

        `right`: what it may do with the workspace; with "try", `workspace` is a layer over it. `agent`: the only agent that the instance serves; empty: it
        serves all agents of the session. `copy`: which copy of the session's workspace `workspace` is; empty: it is the
        workspace itself. There is at most one instance for each (session, name, right, agent, copy). `digest`: which
        version; None: the one in the catalogue. `egress`: "host:port" targets that it may reach, granted by a person.
        `permit`: asked about every other target, if the module declares that it needs any. An instance that may not
        write in the workspace, or that works in a copy of the workspace, reaches none of these. `secrets`: names of the secrets that its
        process receives. An instance of this session with another version or grant is stopped first.

        Raises:
            SandboxUnavailable: with what to install or run.
            ModuleLost: it did not come up.
        """
        ...

    async def remember_manifest(self, digest: str, manifest: bytes) -> None:
        """Store the manifest with which the module of this digest described itself, for `catalogue()`."""
        ...

    async def end_session(self, session: str) -> None:
        """Stop and remove everything that belongs to `session`."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of taking over the changes made in a copy. `version`: of the workspace after it, empty if nothing was.

    `conflicts`: paths that somebody else changed in the meantime, only some of them if they are many.
    """

    version: str
    conflicts: tuple[str, ...] = ()


class ObjectStore(Protocol):
    """Named bytes that several machines can reach. Methods block, and raise `StoreUnavailable` without an answer.

    `create` is the only way to write: nothing is changed under its name, except what is deleted for good. After
    `StoreUnavailable`, the request may have been carried out, or may still be.
    """

    @property
    def address(self) -> str:
        """The store's address, for people."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Write `data` under `name`, whole or not at all. False: the name already exists and is unchanged."""
        ...

    def get(self, name: str) -> bytes | None:
        """Return the bytes under `name`, or None if there are none."""
        ...

    def names(self, prefix: str, *, after: str = "") -> Iterator[str]:
        """Iterate over all names that begin with `prefix` and come after `after`, in order."""
        ...

    def remove(self, name: str) -> None:
        """Remove the bytes under `name`, if any. For data that is no longer needed, and never for a segment."""
        ...

    def overwrite(self, name: str, data: bytes) -> None:
        """Replace the bytes under `name`, which exists at every moment. For deleted data that keeps its name."""
        ...


class Versions(Protocol):
    """Keeps versions of a workspace in a store next to it, which nothing that works in the workspace can reach.

    Every method blocks, and raises `WorkspaceError`. One store is used by one caller at a time.
    """

    def keep(self, workspace: Path, store: Path, *, whole: bool = False) -> str:
        """Keep the present state of `workspace`. Returns the version's id, the last one's only if nothing was touched.

        `whole`: refuse if there is a file or folder that no version can hold.
        """
        ...

    def restore(self, workspace: Path, store: Path, version: str, *, path: str = "") -> None:
        """Restore `workspace`, or only what is at `path`, to `version`. Refuses if something would be lost that no
        version has."""
        ...

    def with_file(self, workspace: Path, store: Path, path: str, version: str) -> str:
        """Keep the present state of `workspace`, but with the file at `path` as it is, or is missing, in `version`.

        Returns the id of that version. The workspace stays as it is. Refuses if nothing would change.
        """
        ...

    def take_over(self, workspace: Path, store: Path, base: str, copy: str) -> Taken:
        """Apply the differences between two versions of a copy to `workspace`, or nothing if there is a conflict."""
        ...

    def forget(self, workspace: Path, store: Path) -> None:
        """Note that a copy, of which versions were kept, is gone."""
        ...

    def changes(self, store: Path, old: str, new: str) -> str:
        """Return what changed from one version to another, as a patch."""
        ...

    def files(self, store: Path, version: str) -> Sequence[KeptFile]:
        """Return the files of a version, by path."""
        ...

    def contents(self, store: Path, files: Sequence[KeptFile]) -> Iterator[bytes]:
        """Iterate over the contents of these files, in order; for a link, its target. Holds only a part in memory."""
        ...

    def steps(self, store: Path, versions: Sequence[str]) -> Sequence[Sequence[PathStep]]:
        """Return what changed from each version to the next, by path: one row less than there are versions."""
        ...

    def patch(self, store: Path, old: KeptFile | None, new: KeptFile | None) -> str:
        """Return the differences of two contents, as hunks of a unified diff; None: there was, or is, no such file."""
        ...

    def share(self, store: Path, target: Path) -> None:
        """Create the store `target` with everything that one of our stores holds, if possible without copying data."""
        ...

    def bring(self, store: Path, target: Path) -> int:
        """Create the store `target` from the readable parts of a foreign store. Returns how many objects were left out.

        No program reads the foreign store, and everything in it is treated only as the content of objects.
        """
        ...

    def missing(self, store: Path, versions: Sequence[str]) -> Sequence[str]:
        """Those of the versions that the store does not have, in order."""
        ...

    def pack(self, store: Path, versions: Sequence[str], known: Sequence[str] = ()) -> bytes:
        """Return everything that these versions hold and the `known` ones don't, for `unpack` on another machine."""
        ...

    def unpack(self, store: Path, pack: bytes) -> None:
        """Store what `pack` returned. Each object is named by its content, so nothing can pose as a version."""
        ...


FileType = Literal["file", "folder", "link", "other"]
ChangeKind = Literal["add", "modify", "delete"]
"""`modify`: the content, target, type or mode differs from before."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """One path that differs between two versions. `path`: as a `FileChange` has it."""

    path: str
    kind: ChangeKind


@dataclass(frozen=True, slots=True)
class KeptFile:
    """One file, link or empty folder of a version. `path`: as a `FileChange` has it; `size`: in bytes.

    `id`: distinguishes contents, and finds one where the version is kept.
    """

    path: str
    type: FileType
    size: int
    id: str


@dataclass(frozen=True, slots=True)
class FileState:
    """What is at one path. `mode`: permission bits; `target`: of a link, or which special file it is.

    `sha256`: of a file's content; "" if the file is too large to read on every check (over 1 GiB, or one of many that
    are deleted together).
    """

    type: FileType
    mode: int
    size: int = 0
    sha256: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path that differs from a live directory.

    `path`: relative, with "/" as separator; "%XX" for bytes that are not UTF-8, for control characters and for "%".
    `was`: in the directory, None for an addition; `now`: in the overlay, None for a deletion. `conflict`: somebody
    changed it in the directory after the overlay's copy was made.
    """

    path: str
    kind: ChangeKind
    was: FileState | None
    now: FileState | None
    conflict: bool = False


AppliedAs = Literal["applied", "conflict", "failed"]


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """The outcome for one path. `why`: a sentence for people; for an applied change only if there is a note."""

    path: str
    outcome: AppliedAs
    why: str = ""


class LiveFiles(Protocol):
    """A user's directory that modules see through an overlay: what they write takes effect only when it is applied.

    Every method blocks, and raises `WorkspaceError`. One object is used by one caller at a time.
    """

    @property
    def folder(self) -> Path:
        """The overlay, which modules get as their workspace."""
        ...

    @property
    def written(self) -> Path:
        """Where changes are stored that are not applied, or are applied but still in use: the space that they take."""
        ...

    def refresh(self, *, works: bool = True) -> Sequence[str]:
        """Before a call, while no other is running: let modules see what changed in the directory.

        Returns the paths that modules can't see in their present state, because a background job holds the earlier one.
        `works`: the call can write, so the time is recorded: it may not know about changes made from now on.
        """
        ...

    def changes(self) -> Sequence[FileChange]:
        """Return everything that differs from the directory now, by path; parents before their contents."""
        ...

    def patch(self, path: str, *, most: int = 200_000) -> str:
        """Return one path's change as a unified diff for people, or a note if it is binary or longer than `most`."""
        ...

    def texts(self, path: str) -> tuple[str, str] | None:
        """Return the text of one path before and after its change, for programs that show a diff themselves; "" where
        there is none.

        None where texts don't show the change: it is binary, large, a link, of rights, or changed again.
        """
        ...

    def apply(self, paths: Sequence[str], *, force: Sequence[str] = ()) -> Sequence[AppliedChange]:
        """Apply these changes to the directory, each path atomically; a conflicting path only if it is in `force`.

        Applies exactly what `changes()` last returned. If a background job has changed a path since, that path fails,
        and must be reviewed again. A path without a change (any more) counts as applied. Repeating it after a crash is
        harmless.
        """
        ...

    def drop(self, paths: Sequence[str]) -> None:
        """Reset these paths to their state in the directory. A new folder is removed with everything in it."""
        ...

    def close(self) -> None:
        """Remove the overlay. Changes that were not applied are kept for the next time."""
        ...


OpenLive = Callable[[Path, Path], LiveFiles]


class ThrownAwayLayer(Protocol):
    """A layer over a folder: anyone who works in it sees the folder, and nothing that they write reaches it.

    Every method blocks.
    """

    @property
    def folder(self) -> Path:
        """What a module gets as its workspace."""
        ...

    def renew(self) -> None:
        """Before a call, while no other is running: let modules see what changed in the folder below."""
        ...

    def changes(self) -> Mapping[str, Hashable]:
        """What in it differs from the folder: files, links and deletions, by path as `core.path_names` writes it.

        The value changes whenever the entry does. Folders don't count, only what is in them. Does not raise.
        """
        ...

    def close(self) -> None:
        """Throw it away, with everything that was written. Does not raise."""
        ...


OpenLayer = Callable[[Path], ThrownAwayLayer]
"""Makes a layer over a folder. Blocks, and raises `WorkspaceError`."""

"""Opens the overlay of a directory (first), with the written changes kept in one of our stores (second).

Raises `WorkspaceError` if no overlay is possible; the message says why, and what to do.
"""


# --- time ---------------------------------------------------------------------------------------


class Clock(Protocol):
    """Wall-clock time and waiting. Tests use a virtual clock."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary point."""
        ...

    async def sleep(self, seconds: float) -> None: ...


# --- memory -------------------------------------------------------------------------------------

StatementKind = Literal["preference", "decision", "fact", "lesson"]
"""What a statement is: a wish or constraint of its person, what was decided, what is so, or what was learnt."""

MemoryKind = Literal["goal", "preference", "decision", "fact", "lesson", "result"]
"""What a line of memory can be: a statement, or the goal of the session that reads it. There are results only in
journals before format 1.3."""

StatementScope = Literal["person", "project", "session"]
"""Where a statement holds: for its person everywhere, in one directory, or in one session."""

WantedScope = Literal["", "person", "project", "session"]
"""Where an agent says that a statement holds. Empty: it did not say."""

StatementOrigin = Literal["said", "distilled", "remembered"]
"""How a statement came: in a person's message that an agent has read, found there by plain rules or by a model that was
asked, or by an agent's REMEMBER."""

LONGEST_STATEMENT: Final = 240
"""The most characters of a statement, no matter who makes it; about 60 tokens."""


@dataclass(frozen=True, slots=True)
class NewStatement:
    """A statement that a record of a session has brought: one clause, never a whole message."""

    session: str
    record: int
    """The record of the message, or of the REMEMBER."""
    agent: str
    at: str
    """Since when it is known: ISO 8601, UTC, from the journal."""
    text: str
    """The clause, in one line."""
    kind: StatementKind
    scope: StatementScope
    origin: StatementOrigin
    ordinal: int = 0
    """Its number among the statements of its record."""
    withdraws: bool = False
    """Whether it says that something no longer holds."""
    untrusted: tuple[str, ...] = ()
    """Labels of the outside sources of its text; empty if there are none."""
    project: str = ""
    """The directory that groups sessions; empty if nothing does."""
    replaces: str = ""
    """The id of the statement that it replaces, as its agent said."""


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """The question to memory for one turn. `input`: what the agent reads now; `recent`: its task first.

    `history`: texts that are in the agent's context, which need not be recalled. `tokens`: the budget.
    """

    session: str
    agent: str
    input: str
    now: datetime
    recent: Sequence[str] = ()
    history: Sequence[str] = ()
    project: str = ""
    tokens: int = 200


@dataclass(frozen=True, slots=True)
class StandingQuestion:
    """The question for the statements that a new session's agents are told from the start."""

    now: datetime
    project: str = ""
    tokens: int = 120


class MemoryRow(TypedDict):
    """A statement that a search found. `why`: how it was found. If it is not `current`, it has been replaced or
    withdrawn."""

    id: str
    text: str
    subject: str
    kind: MemoryKind
    scope: StatementScope
    score: float
    since: str
    session: str
    agent: str
    why: str
    untrusted: list[str]
    contradicts: list[str]
    current: bool


class MemoryDetails(TypedDict):
    """Everything that is known about one statement.

    `source`: the session and the record from which it was made. `replaces`, `replaced_by`: statements that it replaced,
    and the one that replaced it, if any. `withdraws`: it says that something no longer holds.
    """

    id: str
    text: str
    subject: str
    kind: StatementKind
    scope: StatementScope
    since: str
    source: str
    session: str
    agent: str
    origin: StatementOrigin
    untrusted: list[str]
    replaces: list[str]
    replaced_by: str
    withdraws: bool
    contradicts: list[str]


@dataclass(frozen=True, slots=True)
class Recalled:
    """One statement that memory found. `line`: as an agent reads it, with kind, age, origin and warnings.

    `why`: how it was found, for people. `contradicts`: ids of statements that contradict it. `current`: False if a newer
    one replaced or withdrew it; only a search returns such statements.
    """

    id: str
    text: str
    kind: MemoryKind
    score: float
    at: str
    session: str
    agent: str
    line: str
    why: str
    untrusted: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    current: bool = True
    subject: str = ""
    scope: StatementScope = "person"

    def to_json(self) -> MemoryRow:
        """Return all fields except `line`, which contains the same in words."""
        return {
            "id": self.id,
            "text": self.text,
            "subject": self.subject,
            "kind": self.kind,
            "scope": self.scope,
            "score": self.score,
            "since": self.at,
            "session": self.session,
            "agent": self.agent,
            "why": self.why,
            "untrusted": list(self.untrusted),
            "contradicts": list(self.contradicts),
            "current": self.current,
        }


@dataclass(frozen=True, slots=True)
class Recollection:
    """The answer to one `MemoryQuestion`, best first.

    `notice`: a sentence for people, the first time that something is wrong.
    """

    rows: tuple[Recalled, ...] = ()
    notice: str = ""


class Memory(Protocol):
    """One user's memory. Implemented by `hippocampus`."""

    @property
    def on(self) -> bool:
        """Whether the person lets memory be used. Read each time it is asked for: any process can switch it.

        Sessions follow it with a record, and obey their journals; the other methods don't ask for it.
        """
        ...

    def switch(self, value: bool) -> None:
        """Switch it off or on. While it is off, sessions note nothing and tell agents nothing; people can see and change it.

        Blocks.

        Raises:
            MemoryUnavailable: the switch can't be stored.
        """
        ...

    def wake(self) -> None:
        """Get ready in the background. Called when there is time for it; otherwise this happens at the first use."""
        ...

    def remember(self, statement: NewStatement) -> None:
        """Note a statement. It is written later; this never blocks and never raises. Repeating it has no effect."""
        ...

    async def standing(self, ask: StandingQuestion) -> Recollection:
        """Return what every agent of a new session is told: its person's wishes and constraints, the project's decisions.

        Nothing untrusted, and nothing of another project. Nothing at all if memory is slow or down.
        """
        ...

    async def recall(self, ask: MemoryQuestion) -> Recollection:
        """Return what helps this agent in this turn, within the time budget; nothing if memory is slow or down."""
        ...

    async def search(
        self, query: str, *, limit: int = 20, project: str | None = None, session: str | None = None
    ) -> Sequence[Recalled]:
        """Return what memory holds about `query`, best first.

        For a person, searches everything of the user's; for an agent's `RECALL`, only what its `project` and `session`
        can see.

        Raises:
            MemoryUnavailable: memory can't answer; the message says why.
        """
        ...

    async def show(self, identity: str) -> MemoryDetails | None:
        """Return everything that is known about one statement; None if there is none.

        Raises:
            MemoryUnavailable: memory can't answer.
        """
        ...

    async def rebuild(self) -> int:
        """Empty this memory and fill it from all journals. Returns how many statements it then has.

        Raises:
            MemoryUnavailable: memory can't be written to now.
        """
        ...

    async def forget(self, ids: Sequence[str]) -> int:
        """Remove statements, with all others of their records, for good. Returns how many there were.

        Raises:
            MemoryUnavailable: memory can't be written to now; nothing was forgotten.
        """
        ...

    async def forget_all(self) -> int:
        """Remove every statement for good, and all that journals of before now would bring. Returns how many there were.

        Raises:
            MemoryUnavailable: memory can't be written to now; nothing was forgotten.
        """
        ...

    async def drop_sessions(self, sessions: Sequence[str], *, for_good: bool) -> int:
        """Remove everything that came from these sessions. Returns the number of statements.

        If one of their journals is read later, its contents are remembered again, including a person's decisions about
        them, unless it was `for_good` and nothing of these sessions is left anywhere.

        Raises:
            MemoryUnavailable: memory can't be written to now; nothing was removed.
        """
        ...

    async def edit(self, identity: str, text: str) -> None:
        """Replace the text of a statement for good, with one line. Nothing of the old text is left.

        Raises:
            MemoryUnavailable: there is no such statement, the text is empty or too long, or memory can't be
                written to now; nothing was changed.
        """
        ...


class Embedder(Protocol):
    """Turns texts into vectors of unit length, whose dot product measures how near two texts are in meaning."""

    @property
    def name(self) -> str:
        """The name of the model and its dimensions. Vectors of different names can't be compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector for each text; all zeros for a text without content.

        Raises:
            MemoryUnavailable: the model can't be reached.
        """
        ...
