"""The course of a plan. It begins with a `spawn` and a `call` (or `control`) and ends with a `reply`."""

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
    """A version of a plan begins. The body describes its steps in words."""

    KIND: ClassVar[str] = "plan"
    BODY: ClassVar[Mark | None] = DERIVED

    version: Derived[int]
    """Its number, from 1."""
    parent: Derived[int | None]
    """The version that it replaces."""
    reason: Derived[str]
    """Why it was made."""
    add: Derived[tuple[Mapping[str, JSON], ...]]
    """Steps that it adds: id, kind, call, task, params, refs, after, join, …; fields with their default are omitted."""
    drop: Derived[tuple[str, ...]]
    """Steps that it drops."""
    rewire: Derived[tuple[Mapping[str, JSON], ...]]
    """Steps that now build on other steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extend(Content):
    """Steps join the present version without a decision: more of a plan that is being written, or a thought about it.

    The body describes them in words.
    """

    KIND: ClassVar[str] = "extend"
    BODY: ClassVar[Mark | None] = DERIVED

    version: Derived[int]
    """The version that they join."""
    reason: Derived[str]
    """Why they are added."""
    add: Derived[tuple[Mapping[str, JSON], ...]]
    """Steps, as in `plan`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Content):
    """A step's state changed."""

    KIND: ClassVar[str] = "node"

    node: Derived[str]
    """The step."""
    version: Derived[int]
    """The plan version that applies to it."""
    cause: Derived[str]
    """What happened."""
    from_: Derived[str]
    to: Derived[str]
    """Its new state; `from` is the previous one."""
    attempt: Derived[int]
    """How often it has been carried out."""
    detail: Derived[str] = ""
    """The error, or the reason."""
    output: Derived[JSON] = None
    """Its result, if no other record holds it."""
    labels: Derived[tuple[str, ...]] = ()
    """The sources of the result."""
    validation: Derived[str | None] = None
    """What accepted its result."""
    t: Derived[float]
    """Seconds since the plan's start."""
    result: Derived[int] = 0
    """The record that holds its result."""
    diagnosis: Annotated[Derived[Diagnosis | None], Since("1.2")] = None
    """For a step that replaces another: why that one failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRisk(Content):
    """A profile of a plan is judged before it runs."""

    KIND: ClassVar[str] = "profile"
    OP: ClassVar[str] = "risk"

    risk: Derived[float]
    """From 0 to 1."""
    components: Derived[Mapping[str, float]]
    """The parts of the risk: schema, planning, method, scale, history."""
    route: Derived[str]
    """How the plan runs: pure, guarded or repair_eligible."""
    confidence: Derived[float]
    """Its author's confidence."""
    assumptions: Derived[tuple[str, ...]] = ()
    """Its assumptions."""
    fragile: Derived[tuple[str, ...]] = ()
    """Where it may break."""
    rules: Derived[tuple[str, ...]] = ()
    """What to do in which case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRule(Content):
    """A rule of a profile changed a step, without asking a model."""

    KIND: ClassVar[str] = "profile"
    OP: ClassVar[str] = "rule"

    node: Derived[str]
    """The step."""
    what: Derived[Literal["auto", "branch", "recovery"]]
    """The kind of rule: it set an argument, it branched, or it retries a step that failed."""
    rule: Derived[str]
    """The rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTrust(Content):
    """The result of a profile is judged before it is reported."""

    KIND: ClassVar[str] = "profile"
    OP: ClassVar[str] = "trust"

    trust: Derived[float]
    """From 0 to 1."""
    penalties: Derived[Mapping[str, float]]
    """What was deducted, by the kind of problem."""
    verification: Derived[Literal["sound", "degraded", "unsound"]]
    """Whether the results support a report."""
    issues: Derived[tuple[str, ...]] = ()
    """The problems, in words."""
    flags: Derived[tuple[str, ...]] = ()
    """What the report must mention."""
    repair: Derived[bool] = False
    """Whether the plan is repaired, once."""
    climbs: Derived[str] = ""
    """The mode that judges the plan from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire(Content):
    """A step is about to be carried out. The body is its arguments, if they are not what its references resolve to."""

    KIND: ClassVar[str] = "fire"
    BODY: ClassVar[Mark | None] = DERIVED

    node: Derived[str]
    """The step."""
    attempt: Derived[int]
    """How often it has been carried out, including this time."""
    turn: Derived[int]
    """The record that handed over the plan."""
    action: Derived[int]
    """The number of the firing. Its gate, call and result records have the same number."""
    function: Derived[str]
    """The function that it calls."""
    to: Derived[str] = ""
    """The child that it calls."""
    race: Annotated[Derived[str], Since("1.2")] = ""
    """The step for which it races in a copy of the workspace. Empty: it works in the workspace itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeCopy(Content):
    """A step that races receives a copy of the workspace, or no copy can be made."""

    KIND: ClassVar[str] = "copy"
    OP: ClassVar[str] = "make"

    node: Derived[str]
    """The step."""
    action: Derived[int]
    """The firing that works in the copy."""
    base: Outcome[str] = ""
    """The version of the workspace that was copied."""
    why: Outcome[str] = ""
    """Why there is no copy. The steps of the race then take turns in the workspace itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver(Content):
    """What a step wrote in its copy of the workspace is moved to the workspace, or could not be moved.

    It is either everything that differs between `base` and `copy`, or nothing.
    """

    KIND: ClassVar[str] = "copy"
    OP: ClassVar[str] = "take"

    node: Derived[str]
    """The step, which wins the race with this."""
    call: Derived[int]
    """The record of the step's call."""
    base: Derived[str]
    """The version from which the copy was made."""
    copy: Derived[str]
    """The version of the copy after the call."""
    version: Outcome[str] = ""
    """The version of the workspace after this. Empty: nothing was taken over."""
    beside: Derived[tuple[int, ...]] = ()
    """Calls that may have written in the workspace since its previous version. What they had written is in this one,
    too."""
    conflicts: Outcome[tuple[str, ...]] = ()
    """Paths that somebody else changed in the workspace in the meantime, which prevented the takeover."""
    why: Outcome[str] = ""
    """What else prevented the takeover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Content):
    """A model answered a question about a plan, or could not. The body is the answer."""

    KIND: ClassVar[str] = "ask"
    BODY: ClassVar[Mark | None] = OUTCOME

    thought: Annotated[Derived[int], Since("1.2")] = 0
    """The number of the question among the plan's questions, in the order in which they were asked."""
    question: Derived[str]
    """The kind of question."""
    role: Derived[str]
    """The role of the model."""
    model: Derived[str]
    """The model's name."""
    digest: Derived[str]
    """The digest of the question."""
    usage: Outcome[Tokens]
    """The tokens that it took."""
    node: Derived[str] = ""
    """The step that the question is about."""
    failed: Annotated[Outcome[str], Since("1.2")] = ""
    """Why there is no answer."""
    waits: Annotated[Outcome[tuple[Wait, ...]], Since("1.2")] = ()
    """What delayed the answer of the model's endpoint."""
    too_long: Annotated[Outcome[bool], Since("1.3")] = False
    """Whether there is no answer because the question was too long for the endpoint. It is asked once more, smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Content):
    """A planner has written more of its plan; complete steps begin at once. The body is the text since the last one."""

    KIND: ClassVar[str] = "draft"
    BODY: ClassVar[Mark | None] = OUTCOME

    thought: Derived[int]
    """The question that it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake(Content):
    """A timer of a plan expired (a retry, the end of its time), or the session continues after it had stopped."""

    KIND: ClassVar[str] = "wake"

    reopened: Outcome[bool] = False
    """Whether the session continues. The time in between does not count."""
