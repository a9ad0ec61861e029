"""One agent as data: a dialogue with its caller, and the work that it still has to do.

Nothing here runs. An agent's state is the fold of its records (`core.tree.apply`), and its next step follows from that
state alone. An agent can therefore be dropped from memory at any moment and rebuilt from the journal: suspended
dialogues are data, not suspended coroutines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from iact.core.gate.gate import Answer
from iact.core.gate.grant import Grant, Narrowing
from iact.core.gate.installs import Installer
from iact.core.gate.provenance import NOTHING, Labels
from iact.core.language.actions import ActionSpec
from iact.core.language.grammar import Bound
from iact.core.language.variables import Table
from iact.core.ports import Usage
from iact.core.records.dialogue import BoundName
from iact.core.records.parts import Verdict
from iact.core.records.ways import Way
from iact.core.tree.account import Account
from iact.core.tree.agent_context import AgentContext
from iact.core.tree.guards import Guards
from iact.core.tree.mail import Incoming, Mail
from iact.core.tree.plan_run import PlanRun

Rest = Literal["idle", "done", "failed", "cancelled"]
"""How an agent that is not active came to rest."""

AgentState = Literal["idle", "thinking", "acting", "waiting", "paused", "done", "failed", "cancelled"]
"""An agent's state, for people. "paused": the agent or one above it is paused."""


@dataclass(slots=True)
class Pending:
    """An action of the agent's last reply that has no outcome yet."""

    # What was written.
    index: int
    """Its place among the actions of that reply."""
    written: str
    """Its name as the agent wrote it."""
    info: str
    """The first line of its block."""
    body: str
    """The other lines."""
    spec: ActionSpec
    bound: Bound | None = None
    """Its arguments; None until its turn comes, because earlier results may define the names that it uses."""
    call: int = 0
    """The number of its `call` record once it was dispatched, else 0."""
    child: str = ""
    """The agent that a CALL is for."""
    remote: str = ""
    """The dialogue with an agent elsewhere that it is part of (`core.tree.remote`)."""

    # What the gate and people say of it.
    asked: int = 0
    """The number of the `clearance` record that asks about it, else 0."""
    asked_of: str = ""
    """Who was asked."""
    asked_impact: float = 0
    """The impact at which they were asked."""
    seconds: float = 0
    """How long a person has; 0: as long as they want."""
    asked_at: str = ""
    """When they were asked."""
    answer: Answer | None = None
    ahead: Labels | None = None
    """If it was asked about before its turn: the labels of what its agent had read by then."""
    passed: bool = False
    """Whether an endpoint said yes, and a person decides."""
    verdict: Literal["", "allowed", "denied"] = ""
    """The gate's last decision."""
    verdict_impact: float = 0
    """The impact at which that was made."""

    # What it meets and leaves in what agents share.
    files_before: str = ""
    """The version of the workspace when it was dispatched."""
    beside: Labels = NOTHING
    """The labels of what concurrent calls wrote and took away again (`core.tree.apply_shared_state`)."""
    reached: bool = False
    """Whether its module reached the outside since the call was made, so that it may have brought anything."""
    installs: Installer | None = None
    """The installer of packages that it runs and nothing else, if neither its agent nor anything around it had read a
    stranger when it began."""
    hosts: frozenset[str] = frozenset()
    """The hosts that its module reached since the call was made, as far as records name them."""

    # How it ends before its outcome.
    stopped: bool = False
    """Whether it must not begin any more, or the plan no longer wants its result."""
    forked: bool = False
    """Whether the session was forked here, so that it must not be carried out."""

    # As a firing of a plan's step.
    node: str = ""
    """The step."""
    step: str = ""
    """The name under which it calls its module, if not the plan's own (`core.modules.state_names`)."""
    limit: float | None = None
    """Seconds that the step allows it, counted from when its module has it."""
    race: str = ""
    """The step for which it races in a copy of the workspace."""
    copied: int = 0
    """The number of the record about that copy, else 0."""
    base: str = ""
    """The version of the workspace that the copy was made from; empty if there is no copy."""
    puts: Labels = NOTHING
    """The labels of what it writes there."""
    question: str = ""
    """For a plan's step: what its agent has asked, and waits for."""


@dataclass(slots=True)
class RemoteDialogue:
    """A dialogue with a remote agent."""

    at: str
    """Its address."""
    labels: Labels = NOTHING
    """The sources of the address."""
    task: str = ""
    """The other side's name for the task whose question waits for an answer; empty if there is none."""
    context: str = ""
    """The other side's name for the conversation; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a plan ended, as its caller's reply is to say it."""

    status: Literal["ok", "failed", "cancelled", "bound"]
    """The status of the plan's own reply."""
    plan: Literal["", "concluded", "partial", "failed", "stopped"]
    """Its outcome; empty if it did not end on its own."""
    text: str
    """The message."""
    verdict: Verdict | None = None


@dataclass(slots=True)
class Errand:
    """A message that a person wants worked on as a plan; see `core.tree.plan_request`."""

    said: Incoming
    """The message."""
    mode: Way
    """The plan's mode; "auto" until one is chosen."""
    why: str = ""
    """The reason for the mode, if the core chose it."""
    first: bool = False
    """Whether the plan waits for a person before it begins."""
    told: bool = False
    """Whether the person wrote again while it ran."""
    report: Report | None = None
    """How the plan ended; None: it has not."""


@dataclass(frozen=True, slots=True)
class Deliver:
    """Next step: return a text to the caller that was written in an earlier turn."""

    text: str
    of: int
    """The record of that turn."""


@dataclass(slots=True)
class Agent:
    """One agent, or a plan in the place of one."""

    # Who it is.
    path: str
    caller: str
    """The path of its caller, or "user"."""
    role: str
    """Who it is to be, as its caller put it."""
    model: str
    """The role of its model."""
    context: AgentContext
    """What its model has read."""
    narrowing: Narrowing = field(default_factory=Narrowing)
    """How much less than its caller it may do."""

    # What it has.
    mail: Mail = field(default_factory=Mail)
    guards: Guards = field(default_factory=Guards)
    """What keeps it from going round in circles, and from working for ever."""
    account: Account = field(default_factory=Account)
    """Its budget of tokens."""
    table: Table = field(default_factory=Table)
    """Its variables."""
    labels: Labels = NOTHING
    """The sources of everything that it has read (`core.tree.origin`)."""

    # How it is.
    active: bool = False
    """Whether it owes its caller a reply."""
    rest: Rest = "idle"
    """How it came to rest, if it does not."""
    ended: str = ""
    """How its last reply fell short, for people: a plan's outcome, the bound that ended it, or "length"; else empty."""
    forked: bool = False
    """Whether the session was forked during its work, which ends here."""
    stopped: bool = False
    """Whether a person ended its work."""
    writes: bool = False
    """Whether it might change files of the workspace when it began, as its siblings are told."""
    paused: bool = False

    # What it did, and has to do.
    actions: list[Pending] = field(default_factory=list)
    """The actions of its last reply that have no outcome yet; of a plan, the firings in progress."""
    turn: int = 0
    """The record of that reply."""
    woken: int = 0
    """The record that started its current work."""
    all_turns: int = 0
    """How many turns it ever had; a plan has none."""
    step: int = 0
    """How many records it wrote."""
    record: int = 0
    """The last of them."""
    children: dict[str, str] = field(default_factory=dict)
    """The paths of its children, by name."""
    remote: dict[str, RemoteDialogue] = field(default_factory=dict)
    """Its dialogues with remote agents, by name."""
    directory: str = ""
    """The directory in which its last call left it."""
    aside: list[str] = field(default_factory=list)
    """If it may only read: the files that its work has changed in its throw-away layer so far."""
    usage: Usage = field(default_factory=Usage)
    """The tokens that its model calls took."""
    plan: PlanRun | None = None
    """Set if it is a plan and not an agent."""
    errand: Errand | None = None
    """The message that the root has a plan for, instead of turns of its own."""
    answer: Deliver | None = None
    """What it returns to its caller once the actions that it wrote beside its answer are done."""

    def change_aside(self, paths: Iterable[str]) -> None:
        """Note that its work, or that of a step's agent, changed files in a throw-away layer."""
        self.aside += [path for path in paths if path not in self.aside]

    @property
    def interrupted(self) -> bool:
        """Whether a person's message must be read before it answers its caller."""
        return self.caller != "user" and any(message.kind == "intervention" for message in self.mail.inbox)

    @property
    def name(self) -> str:
        """The last part of the path; "root" for the root."""
        return self.path.rsplit("/", 1)[1] or "root"

    @property
    def depth(self) -> int:
        """0 for the root."""
        return 0 if self.path == "/" else self.path.count("/")

    def narrowed(self, caller: Grant) -> Grant:
        """Return this agent's grant, given its caller's."""
        return caller.narrow(patterns=self.narrowing.patterns, intent=self.narrowing.intent)

    @property
    def called(self) -> bool:
        """Whether it waits for the reply to a CALL or a PLAN."""
        if not self.actions or self.plan is not None:
            return False
        return self.actions[0].spec.name in ("CALL", "PLAN") and self.actions[0].call > 0

    @property
    def calls(self) -> list[Pending]:
        """Its function calls in progress."""
        return [pending for pending in self.actions if pending.call and not pending.child]

    @property
    def asks(self) -> bool:
        """Whether its call, or one of a plan's calls, waits for clearance."""
        return any(pending.asked > 0 and pending.answer is None for pending in self.actions)


@dataclass(frozen=True, slots=True)
class Think:
    """Next step: ask the model."""


@dataclass(frozen=True, slots=True)
class Act:
    """Next step: carry out the first pending action (a CALL or a module function)."""

    pending: Pending


@dataclass(frozen=True, slots=True)
class End:
    """Next step: return to the caller with what the agent has, because a bound was hit."""

    bound: BoundName
    """Which bound."""
    sentence: str
    """What is said about it."""


@dataclass(frozen=True, slots=True)
class Execute:
    """Next step of a plan: run it to its end."""


@dataclass(frozen=True, slots=True)
class ChooseWay:
    """Next step: choose how to work on a message that was sent in the mode `auto`."""

    errand: Errand


@dataclass(frozen=True, slots=True)
class Relay:
    """Next step: pass on the result of the plan that a person asked for."""


Step = Think | Act | Deliver | End | Execute | ChooseWay | Relay
