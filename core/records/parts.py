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
    """Tokens that one answer of a model took."""

    prompt: int
    """The tokens that were read, with those from a cache."""
    cached: int
    """Those of them that came from a cache."""
    completion: int
    """The tokens that were written."""
    estimated: bool = False
    """Whether the endpoint reported none, so that characters were counted."""

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
    """A period in which an agent waited for its model's endpoint."""

    state: WaitState
    why: str
    """The reason, for people."""
    ms: int
    """How long, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Content that is stored next to the journal."""

    sha256: str
    """Under which it is stored."""
    size: int
    """In bytes."""


Listed: TypeAlias = tuple[_T, ...] | Blob
"""A list, or a blob that contains it if it is long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """What a call produced in addition to its result."""

    name: str
    """The name of its file."""
    media: str
    """Its media type."""
    sha256: str
    """The blob with its content."""
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """Where one recalled memory comes from and how it was found."""

    id: str
    """Its session and record."""
    kind: MemoryKind
    score: float
    """How well it fits what was asked; comparable within one answer."""
    at: str
    """When it was said."""
    session: str
    agent: str
    """The agent that said it."""
    why: str
    """How it was found, for people."""
    untrusted: tuple[str, ...] = ()
    """The labels of the outside sources of its text."""
    contradicts: tuple[str, ...] = ()
    """The ids of memories that contradict it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleState:
    """The state that a module entered."""

    name: str
    offers: tuple[str, ...] = ()
    """The functions that it offers now, if they differ from its manifest's."""
    note: str = ""
    """A sentence of the module about it."""


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
    """What a million tokens of a model cost."""

    prompt: float
    """If they are newly read."""
    cached: float
    """If they are read from a cache."""
    completion: float
    """If they are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTerms:
    """The model of one role."""

    model: str
    """Its name."""
    context: int
    """Its window, in tokens."""
    prompt: str
    """The digest of its static prompt."""
    takes: tuple[Medium, ...] = ()
    """The media that it reads."""
    static: OwnPrompt | None = None
    """The prompt itself, if it is not the standard one."""
    price: Annotated[PriceTerms | None, Since("1.2")] = None
    """The price of its tokens, if it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantTerms:
    """How much a session may do, and for which user."""

    scope: str
    """Patterns of the functions that it has."""
    allow: tuple[tuple[str, ...], ...]
    """Lists of patterns; a function must match at least one pattern of each list."""
    caps: Mapping[str, float]
    """The highest impact, by pattern."""
    intent: float
    """The highest impact of all."""
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTerms:
    """How many calls are allowed in a time."""

    per_second: float
    burst: int = 1
    """How many at once, after a period without calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBounds:
    """The bounds and thresholds of the plans of a session. Each is a setting in `[plans]`, which explains its origin."""

    WHOLE: ClassVar[bool] = True

    concurrency: int = 16
    """Steps that run at the same time."""
    nodes: int = 256
    """Steps over all versions of a plan."""
    calls: int = 60
    """The calls to models about one plan."""
    patches: int = 8
    """How many failed steps may be replaced."""
    replans: int = 2
    """How often a plan may be rewritten."""
    seconds: float = 3600.0
    """How long a plan runs, without pauses."""
    confidence: float = 0.8
    """The least confidence at which an analysis is accepted."""
    planner: str = ""
    """The role of the model that writes plans; as of the next three, empty: the usual one."""
    judge: str = ""
    """The role of the model that judges what came of a plan."""
    patcher: str = ""
    """The role of the model that changes plans."""
    reporter: str = ""
    """The role of the model that reports on plans."""
    risk_weights: tuple[float, ...] = (0.25, 0.25, 0.2, 0.15, 0.15)
    """Of schema, planning, method, scale and history, in a profile's risk."""
    guarded_from: float = 0.25
    """From this risk on, a profile's branches apply."""
    repair_from: float = 0.55
    """From this risk on, a profile is eligible for repair."""
    trust_below: float = 0.6
    """Below this trust, a profile is repaired."""
    trust_penalties: tuple[float, ...] = (0.3, 0.15, 0.05, 0.02, 0.05, 0.1)
    """For a step that failed, returned nothing, returned next to nothing, was branched, was recovered, and for a condition
    that was met."""
    report: bool = True
    """Whether modes that judge end with a report in words."""
    rates: Mapping[str, RateTerms] | None = None
    """Of the calls that steps make, by the name of a module or function."""
    recoveries: Annotated[int, Since("1.3")] = 1
    """How often one step may be tried again by the recovery rules of a profile."""
    agent_seconds: Annotated[float, Since("1.3")] = 600.0
    """The time of an agent step that states none."""
    rounds: Annotated[int, Since("1.3")] = 3
    """The most analyses of a plan in the mode `analyze`, if its author says no number."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a session. Each is a setting; a bound that is hit is a reported outcome.

    Depths and counts are inclusive. All of them are written, because today's defaults may change.
    """

    WHOLE: ClassVar[bool] = True

    depth: int = 8
    """How deep the tree is."""
    agents: int = 256
    """The agents of the tree."""
    turns: int = 40
    """The turns of an agent between two answers."""
    tokens: int = 2_000_000
    """The tokens of all its model calls."""
    activation: float = 3600.0
    """How long an agent works on one message, in seconds."""
    tool: float = 120.0
    """How long a call runs that states no time of its own, in seconds."""
    shown: int = 6000
    """The characters of a result in a context."""
    reply_tokens: int | None = None
    """The tokens of one reply; None: as many as the model writes."""
    plans: PlanBounds = PlanBounds()
    money: Annotated[float | None, Since("1.2")] = None
    """What its model calls may cost, where prices are known. None: no limit."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file of the workspace."""

    path: str
    """Relative to the workspace, as in a `FileChange`."""
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True)
class SeenFiles:
    """What an agent is told about the workspace's files."""

    new: tuple[SeenFile, ...] = ()
    """Files that are new or changed since it was last told, newest first."""
    more: int = 0
    """How many of these are not named."""
    gone: tuple[str, ...] = ()
    """Paths that no longer exist."""
    more_gone: int = 0
    """How many of these are not named."""


MINUTE: Final = "%Y-%m-%d %H:%M UTC"
"""How `Seen.now` is written."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The facts about the world that an agent is shown in one turn."""

    now: str
    """The time to the minute, in UTC."""
    directory: str = ""
    """Where its commands run, if that is not the workspace."""
    running: tuple[str, ...] = ()
    """The children at work."""
    tokens_left: int | None = None
    """Of the agent's budget, once few are left."""
    catalogue: int | None = None
    """The record that last changed the functions that its context names, if it names any."""
    files: SeenFiles | None = None
    """None: there is nothing to report about files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why a step of a plan failed, in a model's judgement, and what is done about it."""

    failure: str
    """The observed failure."""
    cause: str
    """Its cause."""
    action: Literal["replace", "skip", "give_up"]
    confidence: float
    """In the cause and the action, from 0 to 1."""


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
    """How a plan is run."""

    mode: str
    options: Mapping[str, str | int]
    """The options of the mode."""
    thinks: bool = True
    """Whether models may be asked about it."""
    chosen: str = ""
    """Why this mode was chosen, if the core chose it."""
    first: bool = False
    """Whether the plan is written and then waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedValue:
    """A parameter that was passed by value."""

    media: str
    """Its media type."""
    size: int
    """In bytes."""
    sha256: str = ""
    """Its blob, if it is too long to be among the parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceRule:
    """Which calls a person allows from now on: patterns of the function and of arguments."""

    function: str
    arguments: Mapping[str, str] | None = None
    """Patterns by the name of an argument; None: any arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathState:
    """What is at one path of a directory."""

    type: FileType
    mode: int
    """Its permission bits."""
    size: int = 0
    """Of a file, in bytes."""
    content: str = ""
    """The SHA-256 of a file's content. A user's file is not a blob, so the field is not called `sha256`."""
    target: str = ""
    """Of a link, or which special file it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathChange:
    """One path that differs from a live directory."""

    path: str
    kind: ChangeKind
    was: PathState | None = None
    """What was there."""
    now: PathState | None = None
    """What is in the overlay now."""
    conflict: bool = False
    """Whether somebody changed it in the directory in the meantime."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOutcome:
    """What came of the change of one path."""

    path: str
    outcome: Literal["applied", "conflict", "failed"]
    why: str
    """The reason, for people."""
