"""What a person does with a running session, anywhere in its tree; and one note that the core writes itself."""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from iact.core.ports import JSON
from iact.core.records.content import Content
from iact.core.records.mark import OUTCOME, Derived, Mark, Outcome, Since
from iact.core.records.parts import Listed, PlanTerms, RoleTerms
from iact.core.records.person import PersonContent, PersonMessage

By: TypeAlias = Literal["user"]
"""Who did it."""

MemorySwitch: TypeAlias = Literal["person", "session"]
"""What memory can be switched off for: everything that a person does, or one session."""

InjectMode: TypeAlias = Literal["queue", "deliver", "interrupt"]
"""When a message is read: at the next turn, before the next call, or at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(PersonContent):
    """The agent is paused: neither it nor any agent below it starts a call to a model or a tool."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "pause"

    by: Outcome[By]
    node: Outcome[str] = ""
    """For a plan: only this step is paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(PersonContent):
    """The agent's pause ends."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "resume"

    by: Outcome[By]
    node: Outcome[str] = ""
    """For a plan: only this step resumes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inject(PersonMessage):
    """A person writes into the agent's dialogue."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "inject"
    BODY: ClassVar[Mark | None] = OUTCOME

    by: Outcome[By]
    mode: Outcome[InjectMode]
    node: Outcome[str] = ""
    """For a plan: the message is only about this step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendNow(PersonContent):
    """A waiting message is to be read as soon as the agent can read one."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "send"

    by: Outcome[By]
    of: Outcome[int]
    """The record of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reword(PersonContent):
    """A person replaces the text of a message that has not been read yet."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "reword"
    BODY: ClassVar[Mark | None] = OUTCOME

    by: Outcome[By]
    of: Outcome[int]
    """The record of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw(PersonContent):
    """A person withdraws a message that has not been read yet."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "withdraw"

    by: Outcome[By]
    of: Outcome[int]
    """The record of the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCalls(PersonContent):
    """A person ends the running calls of the agent and of those below it. Agents continue with the results so far."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "stop"

    by: Outcome[By]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(PersonContent):
    """The work of the agent and of all agents below it ends. The body is the reason, where the core ends a plan."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "cancel"
    BODY: ClassVar[Mark | None] = OUTCOME

    by: Outcome[Literal["user", "core"]]
    node: Outcome[str] = ""
    """For a plan: only this step ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIntent(PersonContent):
    """Sets how much the session may do from now on."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "intent"

    by: Outcome[By]
    value: Outcome[float]
    """From 0 (observe) to 2 (override)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseBudget(PersonContent):
    """The session may use more tokens or more money from now on. Requests that waited for them are answered."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "budget"

    by: Outcome[By]
    tokens: Outcome[int]
    """How many more tokens."""
    money: Annotated[Outcome[float], Since("1.2")] = 0.0
    """How much more money."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchMemory(PersonContent):
    """Memory is switched off or on. While it is off, the session brings no statements and is told none."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "memory"

    by: Outcome[By]
    of: Outcome[MemorySwitch]
    """Whose switch it is. Memory is on where both are on."""
    value: Outcome[bool]
    """Whether it is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lockdown(PersonContent):
    """Lockdown begins or ends. While it lasts, every call is denied."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "lockdown"

    by: Outcome[By]
    value: Outcome[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPolicy(Content):
    """A person edited the policy. The new version applies from now on."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "policy"

    by: Outcome[By]
    policy: Outcome[Mapping[str, JSON]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowHosts(PersonContent):
    """Hosts that a person allows modules to reach from now on, in addition to the policy's. The lists are complete."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "hosts"

    by: Outcome[By]
    always: Outcome[Mapping[str, tuple[str, ...]]]
    """Hosts allowed in every session, by module."""
    session: Outcome[Mapping[str, tuple[str, ...]]]
    """Hosts allowed in this session, by module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetModels(Content):
    """Other models, or models with other windows, play the roles; dialogues continue with them.

    A person chooses models while none is writing. The core lowers a window when its endpoint says that it is smaller.
    """

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "models"

    by: Outcome[Literal["user", "core"]]
    models: Outcome[Mapping[str, RoleTerms]]
    """All models, by role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declassify(PersonContent):
    """A person vouches for a variable of the agent, or for everything that it has read."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "declassify"

    by: Outcome[By]
    variable: Outcome[str] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPlan(PersonContent):
    """A person starts a plan. The record's agent is the plan, and the body is the text that the person wrote."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "plan"
    BODY: ClassVar[Mark | None] = OUTCOME

    by: Outcome[By]
    plan: Annotated[Outcome[PlanTerms | None], Since("1.2")] = None
    """How the person wants it run, as in the `spawn` record before this one."""
    budget: Derived[int]
    """Tokens that are reserved for the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginPlan(PersonContent):
    """A plan that waited for review may begin."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "start"

    by: Outcome[By]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPlan(PersonContent):
    """A person rewrites the steps of a plan that have not started. The body is the whole plan as it should be."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "edit"
    BODY: ClassVar[Mark | None] = OUTCOME

    by: Outcome[By]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryStep(PersonContent):
    """A person has a step of a plan that produced nothing run again, with the steps that needed it."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "retry"

    by: Outcome[By]
    node: Outcome[str]
    """The step."""
    budget: Derived[int]
    """Tokens that are reserved for the plan, if it had ended; otherwise 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore(PersonContent):
    """The workspace's files, or one of them, are restored to an earlier version."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "restore"

    by: Outcome[By]
    version: Outcome[str]
    """The version of all files that results."""
    path: Annotated[Outcome[str], Since("1.3")] = ""
    """The only file that was restored; empty: all files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyChanges(PersonContent):
    """A person applies changes that wait in the overlay of a live directory."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "apply"

    by: Outcome[By]
    paths: Outcome[Listed[str]]
    force: Outcome[bool] = False
    """Whether to apply them despite conflicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropChanges(PersonContent):
    """A person drops changes that wait in the overlay of a live directory."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "drop"

    by: Outcome[By]
    paths: Outcome[Listed[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UseOverlay(Content):
    """From now on, modules see the live directory through an overlay, or no longer do."""

    KIND: ClassVar[str] = "control"
    OP: ClassVar[str] = "overlay"

    by: Derived[Literal["core"]]
    value: Outcome[bool]
