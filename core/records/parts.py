"""Values in the fields of several kinds of records: objects in the header, without fields that have their default."""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias, TypeVar

from iact.core.ports import ChangeKind, FileType, Medium, MemoryKind, Usage
from iact.core.records.mark import Since

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens that one answer of a model took. `estimated`: its endpoint reported none, so characters were counted."""

    prompt: int
    cached: int
    completion: int
    estimated: bool = False

    @classmethod
    def of(cls, usage: Usage) -> Self:
        """The counts of a model call as a record has them."""
        return cls(
            prompt=usage.prompt_tokens,
            cached=usage.cached_tokens,
            completion=usage.completion_tokens,
            estimated=usage.estimated,
        )


WaitState: TypeAlias = Literal["limited", "retrying", "stalled", "slot"]
"""Why a model's reply was delayed: its endpoint limits requests, failed, sent nothing, or serves others first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A period in which an agent waited for its model's endpoint, in milliseconds, and the reason, for people."""

    state: WaitState
    why: str
    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Content that is stored next to the journal under its SHA-256. `size`: in bytes."""

    sha256: str
    size: int


Listed: TypeAlias = tuple[_T, ...] | Blob
"""A list, or a blob that contains it if it is long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """What a call produced in addition to its result: a file's name and type, and the blob with its content."""

    name: str
    media: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """Where one recalled memory comes from and how it was found.

    `id`: session and record. `untrusted`: labels of the outside sources of its text. `contradicts`: ids of memories
    that contradict it.
    """

    id: str
    kind: MemoryKind
    score: float
    at: str
    session: str
    agent: str
    why: str
    untrusted: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleState:
    """The state that a module entered. `offers`: functions that it offers now, if they differ from its manifest's."""

    name: str
    offers: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptExample:
    """One message of the examples in a static prompt."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrompt:
    """The static prompt that comes with a model."""

    system: str
    examples: tuple[PromptExample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTerms:
    """What a million tokens of a model cost: newly read, read from a cache, and written."""

    prompt: float
    cached: float
    completion: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTerms:
    """The model of one role: its name, its window in tokens, the digest of its static prompt, and the media it takes.

    `static`: the prompt itself, if it is not the standard one. `price`: the price of its tokens, if it is known.
    """

    model: str
    context: int
    prompt: str
    takes: tuple[Medium, ...] = ()
    static: OwnPrompt | None = None
    price: Annotated[PriceTerms | None, Since("1.2")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantTerms:
    """How much a session may do, and for which user.

    `allow`: lists of patterns of functions; a function must match at least one pattern of each list. `caps`: the
    highest impact, by pattern.
    """

    scope: str
    allow: tuple[tuple[str, ...], ...]
    caps: Mapping[str, float]
    intent: float
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTerms:
    """How many calls per second are allowed, and how many at once after a period without calls."""

    per_second: float
    burst: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBounds:
    """The bounds and thresholds of the plans of a session. Each is a setting in `[plans]`, which explains its origin.

    `calls`: model calls about one plan. `seconds`: elapsed time. `confidence`: the least confidence at which an
    analysis is accepted. `planner`, `judge`, `patcher`, `reporter`: roles of the models that do this, "" for the usual
    ones. `risk_weights`: of schema, planning, method, scale and history. `guarded_from`, `repair_from`, `trust_below`:
    thresholds of a profile's risk and trust. `trust_penalties`: for a step that failed, returned nothing, returned next
    to nothing, was branched, was recovered, and for a condition that was met. `report`: modes that judge end with a
    report in words. `rates`: of the calls that steps make, by the name of a module or function.
    """

    WHOLE: ClassVar[bool] = True

    concurrency: int = 16
    nodes: int = 256
    calls: int = 60
    patches: int = 8
    replans: int = 2
    seconds: float = 3600.0
    confidence: float = 0.8
    planner: str = ""
    judge: str = ""
    patcher: str = ""
    reporter: str = ""
    risk_weights: tuple[float, ...] = (0.25, 0.25, 0.2, 0.15, 0.15)
    guarded_from: float = 0.25
    repair_from: float = 0.55
    trust_below: float = 0.6
    trust_penalties: tuple[float, ...] = (0.3, 0.15, 0.05, 0.02, 0.05, 0.1)
    report: bool = True
    rates: Mapping[str, RateTerms] | None = None
    recoveries: Annotated[int, Since("1.3")] = 1
    """How often one step may be tried again by the recovery rules of a profile."""
    agent_seconds: Annotated[float, Since("1.3")] = 600.0
    """The time of an agent step that states none."""
    rounds: Annotated[int, Since("1.3")] = 3
    """The most analyses of a plan in the mode `analyze`, if its author says no number."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a session (law 9). Each is a setting; a bound that is hit is a reported outcome.

    Depths and counts are inclusive; times are in seconds; `shown`: characters of a result in a context. All of them are
    written, because today's defaults may change.
    """

    WHOLE: ClassVar[bool] = True

    depth: int = 8
    agents: int = 256
    turns: int = 40
    tokens: int = 2_000_000
    activation: float = 3600.0
    tool: float = 120.0
    shown: int = 6000
    reply_tokens: int | None = None
    plans: PlanBounds = PlanBounds()
    money: Annotated[float | None, Since("1.2")] = None
    """What its model calls may cost, where prices are known. None: no limit."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file of the workspace. `path`: as in a `FileChange`, relative to the workspace; `size`: in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class SeenFiles:
    """What an agent is told about the workspace's files.

    `new`: files that are new or changed since it was last told, newest first. `more`: how many of these are not named.
    `gone`: paths that no longer exist; `more_gone`: how many of these are not named.
    """

    new: tuple[SeenFile, ...] = ()
    more: int = 0
    gone: tuple[str, ...] = ()
    more_gone: int = 0


MINUTE: Final = "%Y-%m-%d %H:%M UTC"
"""How `Seen.now` is written."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The facts about the world that an agent is shown in one turn.

    `now`: to the minute, UTC. `running`: children at work. `tokens_left`: of the agent's budget, once few are left.
    `catalogue`: the record that last changed the functions that its context names, if it names any. `files`: set if
    there is something to report about them.
    """

    now: str
    directory: str = ""
    running: tuple[str, ...] = ()
    tokens_left: int | None = None
    catalogue: int | None = None
    files: SeenFiles | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why a step of a plan failed, in a model's judgement, and what is done about it: `replace`, `skip` or `give_up`.

    `failure`: the observed failure. `confidence`: in the cause and the action, from 0 to 1.
    """

    failure: str
    cause: str
    action: Literal["replace", "skip", "give_up"]
    confidence: float


Reached: TypeAlias = Literal["yes", "partly", "no", "unknown"]
"""Whether a goal was reached."""

VerdictBy: TypeAlias = Literal["judge", "person", "steps", "check", "bound", "nobody"]
"""What a verdict rests on: a model or a person that judged the goal, what became of the steps, a check in code, a bound
that ended the work; or nobody judged it."""


Outcome: TypeAlias = Literal["reached", "partly", "unknown", "not_reached", "stopped"]
"""A verdict in one word. `stopped`: a person or a bound ended the work before its goal was reached."""

_OUTCOMES: Final[Mapping[Reached, Outcome]] = {
    "yes": "reached",
    "partly": "partly",
    "unknown": "unknown",
    "no": "not_reached",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How the work on a goal ended."""

    reached: Reached
    because: str = ""
    """The reason, in a sentence."""
    missing: Mapping[str, str] | None = None
    """What is lacking, by step, and why."""
    replaced: Mapping[str, tuple[str, ...]] | None = None
    """Steps that others were carried out in place of, and which."""
    unchecked: tuple[str, ...] = ()
    """Steps that changed something and whose results nothing but the absence of an error speaks for."""
    by: VerdictBy = "nobody"

    @property
    def outcome(self) -> Outcome:
        """The verdict in one word."""
        if self.by in ("person", "bound") and self.reached != "yes":
            return "stopped"
        return _OUTCOMES[self.reached]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTerms:
    """How a plan is run. `thinks`: whether models may be asked about it.

    `chosen`: why this mode was chosen, if the core chose it. `first`: the plan is written and then waits for a person.
    """

    mode: str
    options: Mapping[str, str | int]
    thinks: bool = True
    chosen: str = ""
    first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedValue:
    """A parameter that was passed by value. `sha256`: its blob, if it is too long to be among the parameters."""

    media: str
    size: int
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceRule:
    """Which calls a person allows from now on: patterns of the function and of arguments."""

    function: str
    arguments: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathState:
    """What is at one path of a directory: a type and permission bits; for a file also its size and content digest.

    `content`: the SHA-256 of a file's content. A user's file is not a blob, so the field is not called `sha256`.
    `target`: of a link, or which special file it is.
    """

    type: FileType
    mode: int
    size: int = 0
    content: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathChange:
    """One path that differs from a live directory: what was there, and what is in the overlay now.

    `conflict`: somebody changed it in the directory in the meantime.
    """

    path: str
    kind: ChangeKind
    was: PathState | None = None
    now: PathState | None = None
    conflict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOutcome:
    """The outcome for one path, and the reason, for people."""

    path: str
    outcome: Literal["applied", "conflict", "failed"]
    why: str
