"""What stands in the fields of several kinds of records. As objects in the header; what has its default is left out."""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias, TypeVar

from iact.core.ports import ChangeKind, FileType, FragmentKind, Medium
from iact.core.records.mark import Since

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What one answer of a model took. `estimated`: its endpoint reported nothing, so the characters were counted."""

    prompt: int
    cached: int
    completion: int
    estimated: bool = False


WaitState: TypeAlias = Literal["limited", "retrying", "stalled", "slot"]
"""Why a model's reply was waited for: its endpoint counts requests, failed, sent nothing, or serves others first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A time in which an agent waited for its model's endpoint, in milliseconds, and why, for people."""

    state: WaitState
    why: str
    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Content that stands beside the journal under its SHA-256; `size` in bytes."""

    sha256: str
    size: int


Listed: TypeAlias = tuple[_T, ...] | Blob
"""A list, or the blob with it if it is long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """What a call brought forth beside its result: a file's name and type, and the blob with its content."""

    name: str
    media: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """Where one recalled memory comes from and what found it.

    `id`: session and record. `untrusted`: labels of the outside sources of what it says. `contradicts`: ids of others
    that say otherwise.
    """

    id: str
    kind: FragmentKind
    score: float
    at: str
    session: str
    agent: str
    why: str
    untrusted: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleState:
    """To which of its states a module came. `offers`: functions that it offers now, if not those of its manifest."""

    name: str
    offers: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptExample:
    """One message of a static prompt's examples."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrompt:
    """The static prompt that a model brings along."""

    system: str
    examples: tuple[PromptExample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTerms:
    """What a million tokens of a model cost: read anew, read from a cache, and written."""

    prompt: float
    cached: float
    completion: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTerms:
    """The model of one role: its name, its window in tokens, the digest of its static prompt, media that it takes.

    `static`: the prompt itself, if it is not the standard one. `price`: what its tokens cost, if that is known.
    """

    model: str
    context: int
    prompt: str
    takes: tuple[Medium, ...] = ()
    static: OwnPrompt | None = None
    price: Annotated[PriceTerms | None, Since("1.2")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantTerms:
    """How much a session may do, for whom. `allow`: patterns of functions; one of each list must match. `caps`: the
    most impact, by pattern."""

    scope: str
    allow: tuple[tuple[str, ...], ...]
    caps: Mapping[str, float]
    intent: float
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTerms:
    """How many calls per second, and how many may come at once after a rest."""

    per_second: float
    burst: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBounds:
    """The bounds and thresholds of the plans of a session; each is a setting, `[plans]`, which says where it comes from.

    `calls`: of models about one plan. `seconds`: on the wall. `confidence`: from here on an analysis stands.
    `planner`, `judge`, `patcher`, `reporter`: roles of the models that do this, "" for the usual ones.
    `risk_weights`: of schema, planning, method, scale and history. `guarded_from`, `repair_from`, `trust_below`: of a
    profile's risk and trust. `trust_penalties`: of a step that failed, gave nothing, gave next to nothing, was branched,
    was recovered, and of a condition that was met. `report`: modes that judge end with a report in words. `rates`: by a module's or a function's name, of the calls that steps make.
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a session (law 9). Each is a setting; a bound that is hit is a reported outcome.

    Depths and counts are inclusive; times in seconds; `shown`: characters of a result in a context. All of them are
    written, since what is the default today may be another one tomorrow.
    """

    WHOLE: ClassVar[bool] = True

    depth: int = 8
    agents: int = 256
    turns: int = 40
    tokens: int = 2_000_000
    activation: float = 3600.0
    tool: float = 120.0
    shown: int = 6000
    reply_tokens: int = 4096
    plans: PlanBounds = PlanBounds()
    money: Annotated[float | None, Since("1.2")] = None
    """What its calls of models may cost, where their prices are known; None: as much as they do."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file of the workspace. `path`: as a `FileChange` has it, below the workspace; `size`: in bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class SeenFiles:
    """What an agent is told of the workspace's files. `new`: new or changed since it was told last, the newest first.

    `more`: how many of these are not named. `gone`: paths that are no more;
    `more_gone`: how many of these are not named.
    """

    new: tuple[SeenFile, ...] = ()
    more: int = 0
    gone: tuple[str, ...] = ()
    more_gone: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What an agent is shown of the world at one turn. `now`: to the minute, UTC. `running`: children at work.

    `tokens_left`: of the agent's budget, once that is short. `catalogue`: the record since which the functions
    are those that its context names, where it names any. `files`: where there is something to say of them.
    """

    now: str
    directory: str = ""
    running: tuple[str, ...] = ()
    tokens_left: int | None = None
    catalogue: int | None = None
    files: SeenFiles | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why a step of a plan failed, as a model sees it, and what is done about it: `replace`, `skip` or `give_up`.

    `failure`: what was observed. `confidence`: in the cause and the action, from 0 to 1.
    """

    failure: str
    cause: str
    action: Literal["replace", "skip", "give_up"]
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTerms:
    """How a plan is run. `thinks`: models may be asked about it. `chosen`: why in this mode, if it was the core's choice.

    `first`: it is written, and then waits for a person.
    """

    mode: str
    options: Mapping[str, str | int]
    thinks: bool = True
    chosen: str = ""
    first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedValue:
    """A parameter that was passed by value. `sha256`: the blob with it, if it is too long to stand among the parameters."""

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
    """What is at one path of a directory: a type, permission bits; of a file its size and the SHA-256 of its content.

    `target`: of a link, or which special file it is. A file of the user's is no blob, so its digest is not named as one.
    """

    type: FileType
    mode: int
    size: int = 0
    content: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathChange:
    """One path that differs from a live directory: what was there, and what is in the overlay now.

    `conflict`: somebody changed it in the directory meanwhile.
    """

    path: str
    kind: ChangeKind
    was: PathState | None = None
    now: PathState | None = None
    conflict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOutcome:
    """What became of one path, and why, for people."""

    path: str
    outcome: Literal["applied", "conflict", "failed"]
    why: str
