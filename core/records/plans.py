"""What becomes of a plan. Its beginning is a `spawn` and a `call` (or `control`), its end a `reply`."""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from iact.core.ports import JSON
from iact.core.records.content import Content
from iact.core.records.mark import DERIVED, OUTCOME, Derived, Mark, Outcome, Since
from iact.core.records.parts import Diagnosis, Tokens, Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Content):
    """A version of a plan begins. The body tells its steps in words."""

    KIND: ClassVar[str] = "plan"
    BODY: ClassVar[Mark | None] = DERIVED

    version: Derived[int]
    """Its number, from 1."""
    parent: Derived[int | None]
    """The version that it follows on."""
    reason: Derived[str]
    """Why it was made."""
    add: Derived[tuple[Mapping[str, JSON], ...]]
    """Steps that it adds: id, kind, call, task, params, refs, after, join, …; what has its default is left out."""
    drop: Derived[tuple[str, ...]]
    """Steps that it drops."""
    rewire: Derived[tuple[Mapping[str, JSON], ...]]
    """Steps that now build on others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extend(Content):
    """Steps join the present version, without a decision: more of a plan that is being written, or a thought about it.

    The body tells them in words.
    """

    KIND: ClassVar[str] = "extend"
    BODY: ClassVar[Mark | None] = DERIVED

    version: Derived[int]
    """The version that they join."""
    reason: Derived[str]
    """What they are."""
    add: Derived[tuple[Mapping[str, JSON], ...]]
    """As those of `plan`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Content):
    """A step's state changed."""

    KIND: ClassVar[str] = "node"

    node: Derived[str]
    """The step."""
    version: Derived[int]
    """The version that governs it."""
    cause: Derived[str]
    """What happened."""
    from_: Derived[str]
    to: Derived[str]
    """Its state before, and now."""
    attempt: Derived[int]
    """How often it was carried out."""
    detail: Derived[str] = ""
    """The error, or why."""
    output: Derived[JSON] = None
    """What it gave, where no other record holds it."""
    labels: Derived[tuple[str, ...]] = ()
    """Where that comes from."""
    validation: Derived[str | None] = None
    """What passed its result."""
    t: Derived[float]
    """Seconds since the plan's start."""
    result: Derived[int] = 0
    """The record that holds what it gave."""
    diagnosis: Annotated[Derived[Diagnosis | None], Since("1.2")] = None
    """Of a step that stands for the replacement of another: why that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRisk(Content):
    """A profile of a plan is judged before it runs."""

    KIND: ClassVar[str] = "profile"
    OP: ClassVar[str] = "risk"

    risk: Derived[float]
    """From 0 to 1."""
    components: Derived[Mapping[str, float]]
    """What it is made of: schema, planning, method, scale, history."""
    route: Derived[str]
    """How the plan runs: pure, guarded or repair_eligible."""
    confidence: Derived[float]
    """Its author's."""
    assumptions: Derived[tuple[str, ...]] = ()
    """What it takes for granted."""
    fragile: Derived[tuple[str, ...]] = ()
    """Where it may break."""
    rules: Derived[tuple[str, ...]] = ()
    """What is to be done in which case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRule(Content):
    """A rule of a profile changed a step, without a model's word."""

    KIND: ClassVar[str] = "profile"
    OP: ClassVar[str] = "rule"

    node: Derived[str]
    """The step."""
    what: Derived[Literal["auto", "branch", "recovery"]]
    """What kind of rule it is: it gave an argument, it branched, or the step failed and is tried once more."""
    rule: Derived[str]
    """The rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTrust(Content):
    """What a profile gave is judged, before it is reported."""

    KIND: ClassVar[str] = "profile"
    OP: ClassVar[str] = "trust"

    trust: Derived[float]
    """From 0 to 1."""
    penalties: Derived[Mapping[str, float]]
    """What it lost, by the kind of trouble."""
    verification: Derived[Literal["sound", "degraded", "unsound"]]
    """Whether what is there supports a report."""
    issues: Derived[tuple[str, ...]] = ()
    """The trouble, in words."""
    flags: Derived[tuple[str, ...]] = ()
    """What the report must say of it."""
    repair: Derived[bool] = False
    """It is repaired once."""
    climbs: Derived[str] = ""
    """The mode that judges the plan from here on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire(Content):
    """A step is about to be carried out. The body: its arguments, if they are not what its refs resolve to."""

    KIND: ClassVar[str] = "fire"
    BODY: ClassVar[Mark | None] = DERIVED

    node: Derived[str]
    """The step."""
    attempt: Derived[int]
    """How often it was carried out, this time included."""
    turn: Derived[int]
    """The record that handed the plan over."""
    action: Derived[int]
    """The firing; its gate, call and result name the same."""
    function: Derived[str]
    """What it calls."""
    to: Derived[str] = ""
    """The child that it calls."""
    race: Annotated[Derived[str], Since("1.2")] = ""
    """The step for which it races in a copy of the workspace; empty: it works in the workspace itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeCopy(Content):
    """A step that races has a copy of the workspace, or there can be none."""

    KIND: ClassVar[str] = "copy"
    OP: ClassVar[str] = "make"

    node: Derived[str]
    """The step."""
    action: Derived[int]
    """The firing that works in it."""
    base: Outcome[str] = ""
    """The version of the workspace that it is made of."""
    why: Outcome[str] = ""
    """Why there is none: the steps of the race take turns in the workspace itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver(Content):
    """What a step wrote in its copy of the workspace was taken over into the workspace, or could not be.

    It is all that differs between `base` and `copy`, or nothing.
    """

    KIND: ClassVar[str] = "copy"
    OP: ClassVar[str] = "take"

    node: Derived[str]
    """The step, which has won the race by this."""
    call: Derived[int]
    """The record of its call."""
    base: Derived[str]
    """The version that its copy was made of."""
    copy: Derived[str]
    """The version of its copy behind its call."""
    version: Outcome[str] = ""
    """The version of the workspace behind this; empty: nothing was taken over."""
    beside: Derived[tuple[int, ...]] = ()
    """The calls that may have written in the workspace since the version before: what they had done is in this one, too."""
    conflicts: Outcome[tuple[str, ...]] = ()
    """What somebody else changed in the workspace meanwhile, and what kept it from being taken over."""
    why: Outcome[str] = ""
    """What else kept it from that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Content):
    """A model answered a question about a plan, or could not. The body is the answer."""

    KIND: ClassVar[str] = "ask"
    BODY: ClassVar[Mark | None] = OUTCOME

    thought: Annotated[Derived[int], Since("1.2")] = 0
    """Which of the plan's questions it is, in the order in which they were asked."""
    question: Derived[str]
    """Its kind."""
    role: Derived[str]
    """The role of the model."""
    model: Derived[str]
    """The model's name."""
    digest: Derived[str]
    """The digest over the question."""
    usage: Outcome[Tokens]
    """The tokens that it took."""
    node: Derived[str] = ""
    """The step that it is about."""
    failed: Annotated[Outcome[str], Since("1.2")] = ""
    """Why there is no answer."""
    waits: Annotated[Outcome[tuple[Wait, ...]], Since("1.2")] = ()
    """What kept the model's endpoint from answering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Content):
    """A planner has written more of its plan, whose complete steps begin at once. The body is what it wrote since."""

    KIND: ClassVar[str] = "draft"
    BODY: ClassVar[Mark | None] = OUTCOME

    thought: Derived[int]
    """The question that it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake(Content):
    """Something of a plan was due by itself: a retry, the end of its time. Or the session goes on after it had stopped."""

    KIND: ClassVar[str] = "wake"

    reopened: Outcome[bool] = False
    """The session goes on: the time in between does not count."""
