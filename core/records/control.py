"""What a person does with a running session, at any depth of its tree; and one thing that the core notes in their place."""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from iact.core.ports import JSON
from iact.core.records.content import Content
from iact.core.records.mark import OUTCOME, Derived, Mark, Outcome, Since
from iact.core.records.parts import Listed, PlanTerms, RoleTerms
from iact.core.records.person import PersonContent

By: TypeAlias = Literal["user"]
"""Who did it."""

InjectMode: TypeAlias = Literal["queue", "deliver", "interrupt"]
"""When a message is read: at the next turn, before the next call, or at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(PersonContent):
    """The agent is paused: at it and below it no call to a model or a tool starts."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "pause"

    by: Outcome[By]
    node: Outcome[str] = ""
    """Of a plan: this step alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(PersonContent):
    """The agent's pause ends."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "resume"

    by: Outcome[By]
    node: Outcome[str] = ""
    """Of a plan: this step alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inject(PersonContent):
    """A person writes into the agent's dialogue."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "inject"
    BODY: ClassVar[Mark | None] = OUTCOME

    by: Outcome[By]
    mode: Outcome[InjectMode]
    node: Outcome[str] = ""
    """Of a plan: it is about this step alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendNow(PersonContent):
    """A message that waits is to be read as soon as the agent can read one."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "send"

    by: Outcome[By]
    of: Outcome[int]
    """The record of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reword(PersonContent):
    """A person says a message in other words that nobody has read yet."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "reword"
    BODY: ClassVar[Mark | None] = OUTCOME

    by: Outcome[By]
    of: Outcome[int]
    """The record of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw(PersonContent):
    """A person takes a message back that nobody has read yet."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "withdraw"

    by: Outcome[By]
    of: Outcome[int]
    """The record of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCalls(PersonContent):
    """A person ends the calls that run for the agent and below it; the agents go on with what these have given."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "stop"

    by: Outcome[By]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(PersonContent):
    """The work of the agent and of all below it ends. The body says why, where the core ends a plan."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "cancel"
    BODY: ClassVar[Mark | None] = OUTCOME

    by: Outcome[Literal["user", "core"]]
    node: Outcome[str] = ""
    """Of a plan: this step alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIntent(PersonContent):
    """How much the session may do from now on."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "intent"

    by: Outcome[By]
    value: Outcome[float]
    """From 0 (observe) to 2 (override)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseBudget(PersonContent):
    """The session may use more tokens or more money from now on; what waited for them is answered."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "budget"

    by: Outcome[By]
    tokens: Outcome[int]
    """How many more."""
    money: Annotated[Outcome[float], Since("1.2")] = 0.0
    """And how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lockdown(PersonContent):
    """Every call is denied from now on, or that ends."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "lockdown"

    by: Outcome[By]
    value: Outcome[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPolicy(Content):
    """What a person wrote into the policy since holds from now on."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "policy"

    by: Outcome[By]
    policy: Outcome[Mapping[str, JSON]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowHosts(PersonContent):
    """What hosts a person allows modules to reach from now on, beside what the policy lists: all of it."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "hosts"

    by: Outcome[By]
    always: Outcome[Mapping[str, tuple[str, ...]]]
    """In every session, by module."""
    session: Outcome[Mapping[str, tuple[str, ...]]]
    """In this one, by module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetModels(Content):
    """Other models play the roles from here on, as a person chose. No model is writing; dialogues go on with the others."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "models"

    by: Outcome[By]
    models: Outcome[Mapping[str, RoleTerms]]
    """All of them, by role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declassify(PersonContent):
    """A person vouches for a variable of the agent's, or for all that it has read."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "declassify"

    by: Outcome[By]
    variable: Outcome[str] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPlan(PersonContent):
    """A person starts a plan; the record's agent is the plan, and the body is what they wrote."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "plan"
    BODY: ClassVar[Mark | None] = OUTCOME

    by: Outcome[By]
    plan: Annotated[Outcome[PlanTerms | None], Since("1.2")] = None
    """How they want it run: as its `spawn` says, the record before."""
    budget: Derived[int]
    """Tokens that are reserved for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginPlan(PersonContent):
    """A plan that waited to be looked at may begin."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "start"

    by: Outcome[By]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPlan(PersonContent):
    """A person writes other steps for what has not started of a plan; the body is the whole plan as they want it."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "edit"
    BODY: ClassVar[Mark | None] = OUTCOME

    by: Outcome[By]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryStep(PersonContent):
    """A person lets a step of a plan that came to nothing run once more, with what needed it."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "retry"

    by: Outcome[By]
    node: Outcome[str]
    """The step."""
    budget: Derived[int]
    """Tokens that are reserved for the plan, if it had ended; else 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(PersonContent):
    """The files of the workspace are put back to what they were."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "restore"

    by: Outcome[By]
    version: Outcome[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyChanges(PersonContent):
    """A person lets changes become real that wait in the overlay of a live directory."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "apply"

    by: Outcome[By]
    paths: Outcome[Listed[str]]
    force: Outcome[bool] = False
    """In spite of conflicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropChanges(PersonContent):
    """A person drops changes that wait in the overlay of a live directory."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "drop"

    by: Outcome[By]
    paths: Outcome[Listed[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UseOverlay(Content):
    """From now on modules see the live directory through an overlay, or do not any more."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "overlay"

    by: Derived[Literal["core"]]
    value: Outcome[bool]
