"""What the core needs from the outer rooms, as Protocols.

The core knows no Docker, no Chroma, no websocket and no HTTP: `iact` hands it objects of these
shapes. An implementation of a port must pass the conformance tests in `tests/` for that port.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, get_args

from typing_extensions import TypedDict

JSON: TypeAlias = bool | int | float | str | list["JSON"] | dict[str, "JSON"] | None
"""What JSON can hold."""

# --- models ---------------------------------------------------------------------------------

Speaker = Literal["system", "user", "assistant"]


Medium = Literal["image", "audio"]
"""What a model may take beside text."""

MEDIA: Final[tuple[Medium, ...]] = get_args(Medium)


@dataclass(frozen=True, slots=True)
class Part:
    """A variable inside a message, for models that take its medium; `load` gives its bytes. Equal if the content is."""

    name: str = field(compare=False)
    media: str
    medium: Medium
    sha256: str
    load: Callable[[], bytes] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a context, as the model's endpoint gets it. `parts` stand behind its text."""

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
        """The counts as commands and clients are given them."""
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
    """What a million tokens cost, in whatever currency people count: read anew, read from a cache, and written."""

    prompt: float
    cached: float
    completion: float

    def of(self, prompt: int, cached: int, completion: int) -> float:
        """What a call cost. `cached` of the `prompt` tokens came from the cache."""
        anew = max(0, prompt - cached)
        return (anew * self.prompt + cached * self.cached + completion * self.completion) / 1_000_000


@dataclass(frozen=True, slots=True)
class Spending:
    """What calls of models took or may take: tokens, read and written, and money."""

    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(self.tokens + other.tokens, self.money + other.money)

    def __sub__(self, other: Spending) -> Spending:
        return Spending(self.tokens - other.tokens, self.money - other.money)

    @property
    def price(self) -> str:
        """The money, with so many digits that a small sum is not nothing."""
        return f"{self.money:.2f}" if self.money >= 0.01 or not self.money else f"{self.money:.2g}"


class Reservation(Protocol):
    """Room that is held for one call of a model."""

    async def settle(self, used: Spending) -> None:
        """The call is over and took `used`; the rest is free again. To be called exactly once."""
        ...


class ModelQuota(Protocol):
    """What may still be used of models; asked before each call."""

    async def reserve(self, most: Spending) -> Reservation:
        """Hold room for a call that takes `most` at most.

        Waits while calls that are under way hold what this one needs: they may take less.

        Raises:
            QuotaExceeded: it would be too much even if they took nothing.
        """
        ...


@dataclass(frozen=True, slots=True)
class AtOnce:
    """How many of something may go on at once for one user. `most`: of theirs, now.

    `group`: the name of a group whose members share `shared` of them; empty: the bound is the user's own, and `shared` what
    it is for all hosts together, 0 where that is `most`.
    """

    most: int
    group: str = ""
    shared: int = 0


class ConcurrencyLimits(Protocol):
    """How much of something may go on at once; None: any number. Asked before each that begins, and true until whoever
    asked awaits something else."""

    async def sessions(self, *, begun: bool = False) -> AtOnce | None:
        """Sessions whose agents are at work. `begun`: the one that asks is at work already."""
        ...

    async def containers(self) -> AtOnce | None:
        """Instances of modules, each of which has a container where there is an engine."""
        ...

    def count(self, kind: Literal["sessions", "containers"], taken: Callable[[], int]) -> None:
        """Have it known how many go on for this user, for those who share a bound with them."""
        ...


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What the core must know about a model. `context`: window in tokens. `label`: one sentence for people.

    `takes`: media that it understands beside text. `price`: what its tokens cost, if that is known.

    `static` replaces the standard static prompt for models that are too small for it.
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
    """A piece of what the model thinks before it replies: for people alone. No reply, and nothing in it acts."""

    text: str


@dataclass(frozen=True, slots=True)
class StreamRestart:
    """The reply starts over (a retry): what came so far is void. `reason` is for people.

    `attempt`: the one that comes next, of at most `of`, after a wait of `seconds`; the next event says that it has
    begun. `limited`: the endpoint counts requests, and this was one too many.
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
class StreamRecast:
    """What came so far was of the other kind, text or thought: all of it is void, and comes again as what it is."""


@dataclass(frozen=True, slots=True)
class StreamUnproven:
    """It is not known yet whether this model says where its thoughts begin: what comes as text may turn out to be thought,
    so nothing in it counts before the stream ends. Sent ahead of the text."""


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Usage as far as the endpoint knows it now; a later report replaces an earlier one."""

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
    | StreamEnd
)


class Model(Protocol):
    """A language model. One implementation speaks the OpenAI protocol, local models through the same."""

    @property
    def profile(self) -> ModelProfile: ...

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent]:
        """Stream one reply; ends with exactly one `StreamEnd`.

        The consumer may close the iterator at any time, which ends the request at the endpoint.

        Raises:
            ModelError: after the retries that make sense ran out.
        """
        ...

    async def warm(self) -> None:
        """Get ready, where that saves a person from waiting later; quick if there is nothing to do.

        Raises:
            ModelError: it can't get ready; a later `stream` would say the same.
        """
        ...

    async def close(self) -> None: ...


# --- modules and their sandbox ----------------------------------------------------------------

Report = Callable[[str], None]
"""Takes one line of progress for a person ("building the base image: 3 of 5")."""


Origin = Literal["shipped", "user", "agent"]
"""Who brought a module: we, a person, or an agent that wrote it."""

Right = Literal["look", "work"]
"""What a module instance may do with the workspace: read it (mounted read-only), or write in it."""


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """A module that is to be kept. `files`: what its folder holds, by relative path; `module.py` is what is run.

    `summary`: one line for people. `requirements`: "name==version". `egress`, `secrets`, `workspace`: what it
    declares to need; a `module.toml` among the files says all of this itself, and then counts. `image`: the name
    or digest of an image of the engine's, whose program is then the module, instead of files.
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
    """A module that can be started. `digest`: SHA-256 hex over all of its source.

    `manifest`: the serialized `iact.ext_module.v1.Manifest` that this digest described itself with,
    or None if it has never run here. `shared`: an administrator set it for everybody, and they alone change or approve it.
    """

    name: str
    digest: str
    origin: Origin
    summary: str
    manifest: bytes | None
    shared: bool = False


Permit: TypeAlias = Callable[[str, int], Awaitable[bool]]
"""Whether a module may connect to a host (a name or an address, in lower case) at a port now. It may take long."""


class ModuleInstance(Protocol):
    """One running module of one session."""

    @property
    def name(self) -> str: ...

    @property
    def target(self) -> str:
        """The gRPC target to dial, checked by the host to be the module's own socket."""
        ...

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secrets that it was given, by name, so that what it says can be searched for them."""
        ...

    async def why_lost(self) -> str | None:
        """A sentence if the instance is no longer able to serve ("the kernel killed it for lack of memory")."""
        ...

    async def freeze(self) -> None:
        """Let nothing of it run any more, at once; `stop` ends it. Harmless where it can't be done."""
        ...

    async def stop(self) -> None: ...


class ModuleHost(Protocol):
    """Starts modules in isolation. Implemented by `sandbox`."""

    @property
    def backend(self) -> Literal["docker", "bubblewrap", "kubernetes", "off"]: ...
    @property
    def running(self) -> int:
        """How many instances of modules run."""
        ...

    async def answers(self) -> bool:
        """Whether what runs modules is there. One that is off on purpose counts as such."""
        ...

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        """The modules that can be started.

        Raises:
            SandboxUnavailable: there is no sandbox here; says what to install or run.
        """
        ...

    async def add(self, source: ModuleSource, origin: Origin) -> CatalogueEntry:
        """Keep a module's source; it can be started by its digest. Nothing of it runs, and the catalogue is as before.

        Raises:
            UsageError: it can't be a module; says what is wrong.
        """
        ...

    async def adopt(self, name: str, digest: str, origin: Origin) -> None:
        """Make a version that was added the one of its name in the catalogue."""
        ...

    async def files(self, name: str, digest: str) -> Mapping[str, bytes]:
        """What the folder of a version holds, by relative path.

        Raises:
            SandboxUnavailable: there is none such.
        """
        ...

    async def remove(self, name: str) -> None:
        """Take a module out of the catalogue.

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
        """Start module `name` for `session`, its workspace mounted; returns when its health service serves.

        `right`: whether it may write in the workspace. `agent`: whose alone the instance is; empty: it serves all
        agents of the session. `copy`: which copy of the session's workspace `workspace` is; empty: it is that itself.
        There is at most one instance for each (session, name, right, agent, copy).

        `digest`: which version; None: the one in the catalogue. `egress`: "host:port" that it may reach, granted by
        a person. `permit`: asked about every other target, if the module says that it needs any; a viewer and what works
        in a copy of the workspace reach none of these. `secrets`: names of those that its process is told. What runs for this session with another version or grant is stopped first.

        Raises:
            SandboxUnavailable: with what to install or run.
            ModuleLost: it did not come up.
        """
        ...

    async def remember_manifest(self, digest: str, manifest: bytes) -> None:
        """Keep what the module of this digest described itself with, for `catalogue()`."""
        ...

    async def end_session(self, session: str) -> None:
        """Stop and remove everything that belongs to `session`."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of taking over what was changed in a copy. `version`: of the workspace behind it, empty if nothing was.

    `conflicts`: paths that somebody else changed meanwhile, some of them if they are many.
    """

    version: str
    conflicts: tuple[str, ...] = ()


class ObjectStore(Protocol):
    """Named bytes that several machines can reach. Every method blocks, and raises `StoreUnavailable` without an answer.

    `create` is the only way to write: nothing is changed under its name, but for what is deleted for good. After
    `StoreUnavailable` it may have been carried out, or still be.
    """

    @property
    def address(self) -> str:
        """What people call it."""
        ...

    def create(self, name: str, data: bytes) -> bool:
        """Write `data` under `name`, whole or not at all; False: there is something already, and it stays."""
        ...

    def get(self, name: str) -> bytes | None:
        """What is under `name`; None: nothing."""
        ...

    def names(self, prefix: str, *, after: str = "") -> Iterator[str]:
        """Every name that begins with `prefix` and comes after `after`, in order."""
        ...

    def remove(self, name: str) -> None:
        """Remove what is under `name`, if there is anything; for what nobody needs any more, and never a segment."""
        ...

    def overwrite(self, name: str, data: bytes) -> None:
        """Put `data` in place of what is under `name`, which is there at every moment; for what is deleted and keeps its name."""
        ...


class Versions(Protocol):
    """Keeps versions of a workspace in a store beside it, which nothing that works in it can reach.

    Every method blocks, and raises `WorkspaceError`; one store is used by one caller at a time.
    """

    def keep(self, workspace: Path, store: Path, *, whole: bool = False) -> str:
        """Keep what stands in `workspace` now; gives the version's id, the last one's only if nothing at all was touched.

        `whole`: refuses if there is a file or folder that no version can hold.
        """
        ...

    def restore(self, workspace: Path, store: Path, version: str) -> None:
        """Make `workspace` what it was at `version`; refuses if something would be lost that no version has."""
        ...

    def take_over(self, workspace: Path, store: Path, base: str, copy: str) -> Taken:
        """Change in `workspace` what differs between two versions of a copy, or nothing where somebody else changed it since."""
        ...

    def forget(self, workspace: Path, store: Path) -> None:
        """A copy is gone that versions were kept of."""
        ...

    def changes(self, store: Path, old: str, new: str) -> str:
        """What changed from one version to another, as a patch."""
        ...

    def files(self, store: Path, version: str) -> Sequence[KeptFile]:
        """What a version holds, by path."""
        ...

    def contents(self, store: Path, files: Sequence[KeptFile]) -> Iterator[bytes]:
        """What these hold, in order; of a link, where it leads. No more than some of it is in memory at a time."""
        ...

    def steps(self, store: Path, versions: Sequence[str]) -> Sequence[Sequence[PathStep]]:
        """What changed from each version to the next, by path: one row less than there are versions."""
        ...

    def patch(self, store: Path, old: KeptFile | None, new: KeptFile | None) -> str:
        """What two contents differ in, as hunks of a unified diff; None: there was, or is, no such file."""
        ...

    def share(self, store: Path, target: Path) -> None:
        """Make the store `target` with all that one of ours holds, without what it takes to copy it where possible."""
        ...

    def bring(self, store: Path, target: Path) -> int:
        """Make the store `target` of what can be read of one from elsewhere; how many objects were left out.

        No program reads the other store, and nothing in it is taken for anything but the content of objects.
        """
        ...

    def missing(self, store: Path, versions: Sequence[str]) -> Sequence[str]:
        """Those of the versions that the store does not have, in order."""
        ...

    def pack(self, store: Path, versions: Sequence[str], known: Sequence[str] = ()) -> bytes:
        """All that these versions hold and the `known` ones don't, for `unpack` on another machine."""
        ...

    def unpack(self, store: Path, pack: bytes) -> None:
        """Take in what `pack` gave. Each object is named by its content, so that nothing can pass for a version."""
        ...


FileType = Literal["file", "folder", "link", "other"]
ChangeKind = Literal["add", "modify", "delete"]
"""`modify`: another content, target, type or mode than before."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """One path that differs between two versions. `path`: as a `FileChange` has it."""

    path: str
    kind: ChangeKind


@dataclass(frozen=True, slots=True)
class KeptFile:
    """One file, link or empty folder of a version. `path`: as a `FileChange` has it; `size`: in bytes.

    `id`: tells contents apart, and gets one from where the version is kept.
    """

    path: str
    type: FileType
    size: int
    id: str


@dataclass(frozen=True, slots=True)
class FileState:
    """What is at one path. `mode`: permission bits; `target`: of a link, or which special file it is.

    `sha256`: of a file's content; "" of one that is too large to read on every look (over 1 GiB, or one of many that
    are deleted together).
    """

    type: FileType
    mode: int
    size: int = 0
    sha256: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path that differs from a live directory. `path`: relative, with "/" between; "%XX" for bytes that are no
    UTF-8, for control characters and for "%".

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
    """What became of one path. `why`: a sentence for people; of what was applied only if there is something to know."""

    path: str
    outcome: AppliedAs
    why: str = ""


class LiveFiles(Protocol):
    """A directory of the user's that modules see through an overlay: what they write is real only when it is applied.

    Every method blocks, and raises `WorkspaceError`; one object is used by one caller at a time.
    """

    @property
    def folder(self) -> Path:
        """The overlay: what modules get as their workspace."""
        ...

    @property
    def written(self) -> Path:
        """What was written there and is not applied, or is but still in use: the room that it takes."""
        ...

    def refresh(self, *, works: bool = True) -> Sequence[str]:
        """Before a call, when no other is under way: let modules see what changed in the directory.

        Gives the paths that modules can't see as they are now, because a background job holds what was there before.
        `works`: the call can write, so remember the moment: what changes from now on may be unknown to it.
        """
        ...

    def changes(self) -> Sequence[FileChange]:
        """All that differs from the directory now, by path; parents before what is in them."""
        ...

    def patch(self, path: str, *, most: int = 200_000) -> str:
        """The change of one path as a unified diff for people; says so where it is binary, or longer than `most` characters."""
        ...

    def apply(self, paths: Sequence[str], *, force: Sequence[str] = ()) -> Sequence[AppliedChange]:
        """Make these changes real, each path atomically; one that changed below meanwhile only if it is in `force`.

        Exactly what `changes()` told of last: what a background job changed after that has failed, and is to be looked at
        again. A path that is no change (any more) counts as applied. Doing it again after a crash is harmless.
        """
        ...

    def drop(self, paths: Sequence[str]) -> None:
        """Let these paths be again what they are in the directory; a folder that is new goes with all that is in it."""
        ...

    def close(self) -> None:
        """Take the overlay away; what was not applied is kept for the next time."""
        ...


OpenLive = Callable[[Path, Path], LiveFiles]
"""Opens the overlay of a directory (first), with what was written kept in a store of ours (second).

Raises `WorkspaceError` where there can be none: says why, and what to do.
"""


# --- time ---------------------------------------------------------------------------------------


class Clock(Protocol):
    """Wall-clock time and waiting; tests bring a virtual one."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary point."""
        ...

    async def sleep(self, seconds: float) -> None: ...


# --- memory -------------------------------------------------------------------------------------

FragmentKind = Literal["goal", "preference", "fact", "lesson", "result"]
Occasion = Literal["say", "remember", "reply", "failure", "correction", "cut"]


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """Something in a session that may be worth remembering, reduced from one journal record by the tree.

    `at`: ISO 8601, UTC, as in the record. `occasion`: a user's message, a `REMEMBER`, a reply to a caller,
    a failure, a person's correction, or what a compression cut. `first`: it opens the session. `kind`,
    `supersedes` (ids of fragments): as an agent asked for it. `untrusted`: labels of the outside sources that
    the text came from; empty if none. `project`: what groups sessions (a live workspace), empty if nothing does.
    """

    session: str
    record: int
    agent: str
    at: str
    occasion: Occasion
    text: str
    first: bool = False
    kind: FragmentKind | None = None
    untrusted: tuple[str, ...] = ()
    project: str = ""
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """What memory is asked for one turn. `input`: what the agent reads now; `recent`: its task, first of all.

    `history`: texts that the agent has before it, which need not be recalled. `tokens`: the budget.
    """

    session: str
    agent: str
    input: str
    now: datetime
    recent: Sequence[str] = ()
    history: Sequence[str] = ()
    project: str = ""
    tokens: int = 200


class MemoryRow(TypedDict):
    """A fragment that a search found. `why`: what it was found by. One that is not `current` was replaced since."""

    id: str
    text: str
    kind: FragmentKind
    score: float
    at: str
    session: str
    agent: str
    why: str
    untrusted: list[str]
    contradicts: list[str]
    current: bool


class MemoryDetails(TypedDict):
    """All that is known of one fragment.

    `record`: the record of its session that it was made from. `sources`: fragments that it was made of. `supersedes`,
    `superseded_by`: those that it replaced, and the one that replaced it, if any.
    """

    id: str
    text: str
    scope: Literal["user", "project", "session"]
    kind: FragmentKind
    session: str
    agent: str
    at: str
    record: int
    occasion: str
    untrusted: list[str]
    supersedes: list[str]
    sources: list[str]
    superseded_by: str
    contradicts: list[str]


@dataclass(frozen=True, slots=True)
class Recalled:
    """One fragment that memory found. `line`: as an agent reads it, with kind, age, origin and warnings.

    `why`: for people, what it was found by. `contradicts`: ids of fragments that say otherwise.
    `current`: False for what a newer fragment replaced, which only a search shows.
    """

    id: str
    text: str
    kind: FragmentKind
    score: float
    at: str
    session: str
    agent: str
    line: str
    why: str
    untrusted: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    current: bool = True

    def to_json(self) -> MemoryRow:
        """All but `line`, which says the same in words."""
        return {
            "id": self.id,
            "text": self.text,
            "kind": self.kind,
            "score": self.score,
            "at": self.at,
            "session": self.session,
            "agent": self.agent,
            "why": self.why,
            "untrusted": list(self.untrusted),
            "contradicts": list(self.contradicts),
            "current": self.current,
        }


@dataclass(frozen=True, slots=True)
class Recollection:
    """The answer to one `MemoryQuestion`, best first. `notice`: a sentence for people, the first time that something is wrong."""

    rows: tuple[Recalled, ...] = ()
    notice: str = ""


class Memory(Protocol):
    """One user's memory. Implemented by `hippocampus`."""

    def wake(self) -> None:
        """Get ready in the background; asked when there is time for it, and done at the first use otherwise."""
        ...

    def remember(self, happening: MemoryEvent) -> None:
        """Take note of something; written behind, never blocks and never raises. Twice is as good as once."""
        ...

    async def recall(self, ask: MemoryQuestion) -> Recollection:
        """What helps this agent with this turn, within the time budget; nothing if memory is slow or down."""
        ...

    async def search(
        self, query: str, *, limit: int = 20, project: str | None = None, session: str | None = None
    ) -> Sequence[Recalled]:
        """What memory holds about `query`, best first.

        Everything of the user's, for a person; for an agent's `RECALL` only what its `project` and `session`
        can see.

        Raises:
            MemoryUnavailable: memory can't answer; the message says why.
        """
        ...

    async def about(self, text: str, documents: Mapping[str, str]) -> Sequence[str]:
        """Names of the documents that `text` is about, in meaning and the nearest first.

        None, if that can't be told within the time budget: as `recall`, it never stands in a turn's way.
        """
        ...

    async def show(self, identity: str) -> MemoryDetails | None:
        """All that is known of one fragment; None if there is none.

        Raises:
            MemoryUnavailable: memory can't answer.
        """
        ...

    async def rebuild(self) -> int:
        """Empty this memory and fill it from all journals; gives how many fragments there are then.

        Raises:
            MemoryUnavailable: memory can't be written to now.
        """
        ...

    async def forget(self, ids: Sequence[str]) -> int:
        """Remove fragments, and what was distilled from them, for good; gives how many there were.

        Raises:
            MemoryUnavailable: memory can't be written to now; nothing was forgotten.
        """
        ...

    async def drop_sessions(self, sessions: Sequence[str], *, for_good: bool) -> int:
        """Remove all that came from these sessions, and what was distilled from it; gives how many fragments that were.

        What is read from one of their journals later is remembered again, with what a person decided about it; unless it
        is `for_good`, and nothing of these sessions is left anywhere.

        Raises:
            MemoryUnavailable: memory can't be written to now; nothing was removed.
        """
        ...

    async def edit(self, identity: str, text: str) -> None:
        """Let a fragment read otherwise for good, in one line; nothing is left of the old text.

        Raises:
            MemoryUnavailable: there is no such fragment, the text is empty or too long, or memory can't be
                written to now; nothing was changed.
        """
        ...


class Embedder(Protocol):
    """Turns texts into vectors of unit length, whose dot product says how near two texts are in meaning."""

    @property
    def name(self) -> str:
        """Names the model and its dimensions; vectors of different names can't be compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector for each text; all zero for a text that holds nothing.

        Raises:
            MemoryUnavailable: the model can't be reached.
        """
        ...
