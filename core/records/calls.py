"""What becomes of an action: asked about, decided, dispatched, ended; and what it changed.

`turn` and `action` name the action: the record of the turn that holds it, and its place among that turn's actions. Of a
plan's firings, `turn` is the record that handed the plan over, and `action` counts them.
"""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from iact.core.ports import JSON
from iact.core.records.content import Content
from iact.core.records.mark import OUTCOME, Derived, Mark, Outcome, Since
from iact.core.records.parts import (
    Artifact,
    AttachedValue,
    Blob,
    ClearanceRule,
    Listed,
    MemorySource,
    ModuleState,
    PathChange,
    PathOutcome,
)
from iact.core.records.person import PersonContent

GateRule: TypeAlias = Literal["scope", "impact", "provenance", "clearance", "lockdown", "rate"]
"""Which of the gate's questions had the last word."""

ResultStatus: TypeAlias = Literal[
    "ok", "error", "incomplete", "cancelled", "skipped", "interrupted", "forked"
]
"""How an action ended: well; with an error; it did not complete (or was denied); it was cancelled; a message took its
place; a crash cut it off; or it was not carried out, because the session was forked before it had ended."""

Held: TypeAlias = Literal["", "impact", "provenance", "conflict", "pending", "lockdown", "unasked", "failed"]
"""Why changes are not applied: they do more than the agent may; it has read content from outside; somebody changed
the directory meanwhile; they build on something that waits; everything is locked down; no call that ended accounts
for them; applying them failed. Empty: nothing keeps them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Content):
    """An action is about to be dispatched: what was intended is on disk before it is done."""

    KIND: ClassVar[str] = "call"

    turn: Derived[int]
    action: Derived[int]
    function: Derived[str]
    """The function, or the action of the core."""
    to: Derived[str] = ""
    """The child or the plan that it calls."""
    impact: Derived[float | None] = None
    """Its impact, as the gate rated it."""
    args: Derived[str]
    """The digest over its arguments."""
    budget: Derived[int | None] = None
    """Tokens that it reserves for whom it calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Content):
    """The gate's decision about a call. It never enters a context."""

    KIND: ClassVar[str] = "gate"

    turn: Derived[int]
    action: Derived[int]
    function: Derived[str]
    allow: Derived[bool]
    """Whether it may be made."""
    by: Annotated[
        Derived[Literal["", "scope", "impact", "provenance", "clearance", "lockdown", "rate"]], Since("1.1")
    ] = ""
    """Who denied it, or which question was asked last."""
    impact: Derived[float]
    """Its impact here."""
    reason: Derived[str] = ""
    """Why, for people."""
    endpoint: Derived[bool] = False
    """Whether an endpoint had its say."""
    ask: Derived[int] = 0
    """The question that it waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceAsk(Content):
    """Somebody is asked about a call. It never enters a context."""

    KIND: ClassVar[str] = "clearance"
    OP: ClassVar[str] = "ask"

    turn: Derived[int]
    action: Derived[int]
    function: Derived[str]
    to: Outcome[Literal["person", "endpoint"]]
    """Who is asked: a setting."""
    rule: Derived[Literal["provenance", "clearance"]]
    """Why it must be asked: for where its arguments come from, or because the policy wants it."""
    impact: Derived[float]
    """Its impact here."""
    why: Derived[str]
    """Why it has that impact."""
    reason: Derived[str]
    """Why it is asked, for people."""
    user: Derived[str]
    """On whose behalf it would be made."""
    params: Derived[Mapping[str, JSON]]
    """The call in full."""
    provenance: Derived[Mapping[str, tuple[str, ...]]]
    """Labels of what each argument was made of."""
    read: Derived[tuple[str, ...]]
    """Labels of what the agent has read."""
    attached: Derived[Mapping[str, AttachedValue] | None] = None
    """Arguments that were passed by value."""
    seconds: Outcome[float | None] = None
    """How long a person has: a setting. A person without: as long as it takes, for nobody was there to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceAnswer(PersonContent):
    """What they said."""

    KIND: ClassVar[str] = "clearance"
    OP: ClassVar[str] = "answer"

    turn: Derived[int]
    action: Derived[int]
    function: Derived[str]
    ask: Derived[int]
    """The record of the question."""
    allow: Outcome[bool]
    """Whether the call may be made."""
    by: Outcome[Literal["user", "endpoint", "time", "policy"]]
    """Who said so; "time" if nobody did in time, "policy" what it says where nobody is there to ask."""
    reason: Outcome[str]
    """Why: an endpoint's words."""
    then: Outcome[Literal["", "person"]] = ""
    """A person is to be asked as well."""
    remember: Outcome[Literal["call"] | ClearanceRule | None] = None
    """Of a yes: it holds for exactly this call from now on, or for all that a rule covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Content):
    """An action has its outcome. The body is its output, unless that is a blob."""

    KIND: ClassVar[str] = "result"
    BODY: ClassVar[Mark | None] = OUTCOME

    turn: Derived[int]
    action: Derived[int]
    function: Derived[str]
    call: Derived[int] = 0
    """The record of the call; 0 if it was not made."""
    ms: Outcome[int | None] = None
    """Milliseconds that it took."""
    version: Outcome[str] = ""
    """The version of the workspace behind a call that may have written."""
    beside: Annotated[Derived[tuple[int, ...]], Since("1.2")] = ()
    """The other calls that may have written since the version before: what they had done by then is in this one, too."""
    copied: Annotated[Derived[bool], Since("1.2")] = False
    """It was made in a copy of the workspace, and `version` is of that."""
    unkept: Outcome[bool] = False
    """It may have written, and no version could be kept."""
    unchanged: Outcome[int] = 0
    """The last record before a look at the overlay that saw nothing new."""
    status: Outcome[ResultStatus]
    """How it ended."""
    kind_of: Derived[str] = ""
    """Of REMEMBER: what kind of memory it is."""
    supersedes: Derived[str] = ""
    """Of REMEMBER: the memory that it replaces."""
    media: Outcome[str | None] = None
    """The type of its output; none or empty: plain text."""
    data: Outcome[Mapping[str, JSON] | None] = None
    """What is not text for the agent: an exit status, the type of an error."""
    blob: Outcome[Blob | None] = None
    """Its output, if it is long or no text."""
    artifacts: Outcome[tuple[Artifact, ...]] = ()
    """What it brought forth beside its output."""
    cached: Annotated[Outcome[Artifact | None], Since("1.2")] = None
    """What later calls of its module are given that have the same key, which is its name here."""
    state: Outcome[ModuleState | None] = None
    """The state to which its module came for this agent."""
    rows: Outcome[tuple[MemorySource, ...]] = ()
    """Of RECALL: where each memory comes from; the body as that of a `recall`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Content):
    """WAIT or QUERY ends, and takes replies that children have sent."""

    KIND: ClassVar[str] = "select"

    turn: Derived[int]
    action: Derived[int]
    function: Derived[str]
    took: Derived[tuple[int, ...]]
    """Their records, in the order in which they came."""
    timed_out: Outcome[bool] = False
    """Whether its time was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State(Content):
    """A module came to another state for an agent by itself, outside of a call."""

    KIND: ClassVar[str] = "state"

    function: Outcome[str]
    """The function by which the agent has to do with it."""
    state: Outcome[ModuleState]
    node: Annotated[Outcome[str], Since("1.2")] = ""
    """Of a plan: the step whose part of the module it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects(Content):
    """Somebody looked at the overlay of a live directory, and something was new. It never enters a context."""

    KIND: ClassVar[str] = "effects"

    after: Outcome[Literal["call", "person", "open"]]
    """What it was looked at after: a call, a person's wish to see, or opening the session."""
    seen: Outcome[int]
    """The last record before the look."""
    changes: Outcome[Listed[PathChange]]
    """What differs from the directory in another way than before."""
    gone: Outcome[Listed[str]] = ()
    """What waited, and is now as in the directory."""
    calls: Derived[tuple[int, ...]]
    """The calls that could write and that ran since the last look."""
    impact: Derived[float | None] = None
    """The highest impact of what is new."""
    why: Derived[str | None] = None
    """Why it has that impact."""
    apply: Derived[bool | None] = None
    """Whether it is applied at once; this is written ahead."""
    held: Derived[Held] = ""
    """What keeps it from being applied."""
    reason: Derived[str] = ""
    """The same in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle(Content):
    """What became of changes that were to be applied or dropped."""

    KIND: ClassVar[str] = "settle"

    of: Derived[int]
    """The record that meant to."""
    left: Outcome[Listed[PathOutcome]] = ()
    """What was not done; all else was."""
    notes: Outcome[Listed[PathOutcome]] = ()
    """What there is to know of some that were applied."""
