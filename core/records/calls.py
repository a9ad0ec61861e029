"""What happens to an action: it is cleared, decided, dispatched and ended, and what it changed.

`turn` and `action` name the action: the record of the turn that contains it, and its position among that turn's
actions. For the firings of a plan, `turn` is the record that handed over the plan, and `action` counts the firings.
"""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from iact.core.ports import JSON, WantedScope
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
"""The gate's rule that decided."""

ResultStatus: TypeAlias = Literal[
    "ok", "error", "incomplete", "cancelled", "skipped", "interrupted", "forked"
]
"""How an action ended: well; with an error; it did not complete (or was denied); it was cancelled; it was skipped
because a message was delivered instead; a crash interrupted it; or it was not carried out, because the session was
forked before the action ended."""

Held: TypeAlias = Literal["", "impact", "provenance", "conflict", "pending", "lockdown", "unasked", "failed"]
"""Why changes are not applied: they do more than the agent may; the agent has read content from outside; somebody
changed the directory in the meantime; they build on a change that waits; everything is locked down; no call that
ended accounts for them; applying them failed. Empty: nothing holds them back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Content):
    """An action is about to be dispatched. The record is on disk before the action begins."""

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
    """The digest of its arguments."""
    budget: Derived[int | None] = None
    """Tokens that it reserves for the agent or plan that it calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Content):
    """The gate's decision about a call. It never enters a context."""

    KIND: ClassVar[str] = "gate"

    turn: Derived[int]
    action: Derived[int]
    function: Derived[str]
    allow: Derived[bool]
    """Whether the call may be made."""
    by: Annotated[
        Derived[Literal["", "scope", "impact", "provenance", "clearance", "lockdown", "rate"]], Since("1.1")
    ] = ""
    """The authority that denied the call, or the question that was asked last."""
    impact: Derived[float]
    """The impact of the call here."""
    reason: Derived[str] = ""
    """The reason, for people."""
    endpoint: Derived[bool] = False
    """Whether a clearance endpoint was asked."""
    ask: Derived[int] = 0
    """The record of the question that the call waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceAsk(Content):
    """A person or an endpoint is asked about a call. The question never enters a context."""

    KIND: ClassVar[str] = "clearance"
    OP: ClassVar[str] = "ask"

    turn: Derived[int]
    action: Derived[int]
    function: Derived[str]
    to: Outcome[Literal["person", "endpoint"]]
    """Who is asked: a setting."""
    rule: Derived[Literal["provenance", "clearance"]]
    """Why clearance is needed: because of where the arguments come from, or because the policy requires it."""
    impact: Derived[float]
    """The impact of the call here."""
    why: Derived[str]
    """Why the call has that impact."""
    reason: Derived[str]
    """Why the question is asked, for people."""
    user: Derived[str]
    """The user on whose behalf the call would be made."""
    params: Derived[Mapping[str, JSON]]
    """The call in full."""
    provenance: Derived[Mapping[str, tuple[str, ...]]]
    """The labels of each argument's sources."""
    read: Derived[tuple[str, ...]]
    """The labels of what the agent has read."""
    attached: Derived[Mapping[str, AttachedValue] | None] = None
    """The arguments that were passed by value."""
    seconds: Outcome[float | None] = None
    """How long a person has: a setting. If a person is asked and this is missing, there is no limit, because no
    person was available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceAnswer(PersonContent):
    """The answer to a clearance question."""

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
    """Who answered: "time" if nobody answered in time, "policy" if the policy decides when no person is available."""
    reason: Outcome[str]
    """The reason that an endpoint gave."""
    then: Outcome[Literal["", "person"]] = ""
    """Whether a person must be asked as well."""
    remember: Outcome[Literal["call"] | ClearanceRule | None] = None
    """What a yes also covers from now on: exactly this call, or every call that matches a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Content):
    """An action has ended. The body is its output, unless the output is a blob."""

    KIND: ClassVar[str] = "result"
    BODY: ClassVar[Mark | None] = OUTCOME

    turn: Derived[int]
    action: Derived[int]
    function: Derived[str]
    call: Derived[int] = 0
    """The record of the call; 0 if the call was not made."""
    ms: Outcome[int | None] = None
    """How many milliseconds it took."""
    version: Outcome[str] = ""
    """The version of the workspace after a call that may have written."""
    beside: Annotated[Derived[tuple[int, ...]], Since("1.2")] = ()
    """Other calls that may have written since the previous version. What they had written by then is in this
    version, too."""
    copied: Annotated[Derived[bool], Since("1.2")] = False
    """Whether the call ran in a copy of the workspace; `version` is then a version of that copy."""
    unkept: Outcome[bool] = False
    """Whether the call may have written but no version could be kept."""
    unchanged: Outcome[int] = 0
    """The last record before a check of the overlay that found nothing new."""
    fresh: Annotated[Outcome[bool], Since("1.3")] = False
    """Whether another instance of its module had served its agent before, and this one was started since. What that
    one held is gone."""
    aside: Annotated[Outcome[tuple[str, ...]], Since("1.3")] = ()
    """For an agent that may only read: paths that the call changed in the agent's throw-away layer. More than are named
    to the agent are not kept."""
    changed: Annotated[Outcome[tuple[str, ...]], Since("1.3")] = ()
    """Where several agents share the files: the first 200 paths by which `version` differs from the version before,
    without what tools keep beside the work."""
    status: Outcome[ResultStatus]
    """How it ended."""
    kind_of: Derived[str] = ""
    """For REMEMBER: the kind of memory."""
    supersedes: Derived[str] = ""
    """For REMEMBER: the memory that it replaces."""
    scope: Annotated[Derived[WantedScope], Since("1.3")] = ""
    """For REMEMBER: where it holds, as its agent said. Empty: it did not say."""
    media: Outcome[str | None] = None
    """The media type of the output. Missing or empty: plain text."""
    data: Outcome[Mapping[str, JSON] | None] = None
    """Data that is not text for the agent: an exit status, the type of an error."""
    blob: Outcome[Blob | None] = None
    """The output, if it is long or not text."""
    artifacts: Outcome[tuple[Artifact, ...]] = ()
    """Files that the call produced in addition to its output."""
    cached: Annotated[Outcome[Artifact | None], Since("1.2")] = None
    """What later calls of the module with the same key receive. The artifact's name is that key."""
    state: Outcome[ModuleState | None] = None
    """The state that the module entered for this agent."""
    rows: Outcome[tuple[MemorySource, ...]] = ()
    """For RECALL: where each memory comes from. The body is like that of a `recall`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Content):
    """WAIT or QUERY ends and takes replies that children have sent."""

    KIND: ClassVar[str] = "select"

    turn: Derived[int]
    action: Derived[int]
    function: Derived[str]
    took: Derived[tuple[int, ...]]
    """The records of the replies, in the order in which they arrived."""
    timed_out: Outcome[bool] = False
    """Whether it timed out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State(Content):
    """A module changed its state for an agent on its own, outside of a call."""

    KIND: ClassVar[str] = "state"

    function: Outcome[str]
    """The function by which the agent uses the module."""
    state: Outcome[ModuleState]
    node: Annotated[Outcome[str], Since("1.2")] = ""
    """For a plan: the step whose part of the module changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects(Content):
    """The overlay of a live directory was checked, and something was new. The record never enters a context."""

    KIND: ClassVar[str] = "effects"

    after: Outcome[Literal["call", "person", "open"]]
    """What prompted the check: a call, a person's request, or opening the session."""
    seen: Outcome[int]
    """The last record before the check."""
    changes: Outcome[Listed[PathChange]]
    """Paths whose difference from the directory is new or has changed."""
    gone: Outcome[Listed[str]] = ()
    """Paths that waited and no longer differ from the directory."""
    calls: Derived[tuple[int, ...]]
    """The calls that could write and that ran since the previous check."""
    impact: Derived[float | None] = None
    """The highest impact of the new changes."""
    why: Derived[str | None] = None
    """Why they have that impact."""
    apply: Derived[bool | None] = None
    """Whether they are applied at once. This record is written before that happens."""
    held: Derived[Held] = ""
    """Why they are not applied."""
    reason: Derived[str] = ""
    """The same reason in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle(Content):
    """The results of applying or dropping changes."""

    KIND: ClassVar[str] = "settle"

    of: Derived[int]
    """The record that ordered it."""
    left: Outcome[Listed[PathOutcome]] = ()
    """Paths for which it was not done. It was done for all others."""
    notes: Outcome[Listed[PathOutcome]] = ()
    """Notes about some of the paths that were applied."""
