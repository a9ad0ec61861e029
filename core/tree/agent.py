"""One agent as data: a dialogue with its caller, and the work that it still has to do.

Nothing here runs. An agent's state is the fold of its records (`core.tree.apply`), and its next step follows from that
state alone (law 1). An agent can therefore be dropped from memory at any moment and rebuilt from the journal: suspended
dialogues are data, not suspended coroutines.
"""

from __future__ import annotations

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
    """An action of the agent's last reply that has no outcome yet.

    `index`: its place among the actions of that reply. `written`: its name as the agent wrote it. `bound`: its
    arguments; None until its turn comes, because earlier results may define the names that it uses. `call`: the number
    of its `call` record once it was dispatched, else 0. `child`: the agent that a CALL is for. `asked`: the number of
    the `clearance` record that asks about it, else 0; `asked_of`: who was asked; `asked_impact`: at which impact;
    `seconds`: how long a person has (0: no limit); `asked_at`: when they were asked; `answer`: their answer. `ahead`:
    set if it was asked about before its turn: the labels of what its agent had read by then. `passed`: an endpoint said
    yes, and a person decides. `verdict`: the gate's last decision, and `verdict_impact` the impact that it was made at.
    `files_before`: the version of the workspace when it was dispatched. `beside`: labels of what concurrent calls wrote
    and took away again (`core.tree.apply_shared_state`). `node`: the plan step that it is a firing of. `step`: the name
    under which it calls its module, if not the plan's own (`core.modules.state_names`). `limit`: seconds that the step
    allows it, counted from when its module has it. `stopped`: it must not begin any more, or the plan no longer wants
    its result. `forked`: the session was forked here, and it must not be carried out. `race`: the step for which it
    races in a copy of the workspace. `copied`: the number of the record about that copy, else 0. `base`: the version of
    the workspace that the copy was made from; empty if there is no copy. `puts`: labels of what it writes there.
    `remote`: the dialogue with an agent elsewhere that it is part of (`core.tree.remote`).
    """

    index: int
    written: str
    info: str
    body: str
    spec: ActionSpec
    bound: Bound | None = None
    call: int = 0
    child: str = ""
    asked: int = 0
    asked_of: str = ""
    asked_impact: float = 0
    seconds: float = 0
    asked_at: str = ""
    answer: Answer | None = None
    ahead: Labels | None = None
    passed: bool = False
    verdict: Literal["", "allowed", "denied"] = ""
    verdict_impact: float = 0
    files_before: str = ""
    beside: Labels = NOTHING
    node: str = ""
    step: str = ""
    limit: float | None = None
    stopped: bool = False
    forked: bool = False
    race: str = ""
    copied: int = 0
    base: str = ""
    puts: Labels = NOTHING
    reached: bool = False
    """Whether its module reached the outside since the call was made, so that it may have brought anything."""
    installs: Installer | None = None
    """The installer of packages that it runs and nothing else, if neither its agent nor anything around it had read a
    stranger when it began."""
    hosts: frozenset[str] = frozenset()
    """The hosts that its module reached since the call was made, as far as records name them."""
    remote: str = ""
    question: str = ""
    """For a plan's step: what its agent has asked, and waits for."""


@dataclass(slots=True)
class RemoteDialogue:
    """A dialogue with a remote agent. `at`: its address, with the `labels` of the address's sources.

    `task`: the task whose question waits for an answer; `context`: the conversation. Both are the other side's
    identifiers, and empty if there is none.
    """

    at: str
    labels: Labels = NOTHING
    task: str = ""
    context: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """How a plan ended: the status, the outcome and the verdict for its reply, and the message."""

    status: Literal["ok", "failed", "cancelled", "bound"]
    plan: Literal["", "concluded", "partial", "failed", "stopped"]
    text: str
    verdict: Verdict | None = None


@dataclass(slots=True)
class Errand:
    """A message that a person wants worked on as a plan; see `core.tree.plan_request`. `said`: the message.

    `mode`: the plan's mode; "auto" until one is chosen. `why`: the reason, if the core chose it. `first`: it waits for
    a person before it begins. `told`: the person wrote again while it ran. `report`: how the plan ended.
    """

    said: Incoming
    mode: Way
    why: str = ""
    first: bool = False
    told: bool = False
    report: Report | None = None


@dataclass(frozen=True, slots=True)
class Deliver:
    """Next step: return a text to the caller that was written in an earlier turn."""

    text: str
    of: int
    """The record of that turn."""


@dataclass(slots=True)
class Agent:
    """One agent. `active`: it owes its caller a reply. `rest`: how it came to rest if it does not. `ended`: how its
    last reply fell short, for people: a plan's outcome, the bound that ended it, or "length"; else empty.

    `narrowing`: how much less than its caller it may do. `labels`: the sources of everything that it has read
    (`core.tree.origin`). `actions`: the actions of its last reply that have no outcome yet; `turn`: the record of that
    reply. `all_turns`: the number of turns that it ever had. `step`: the number of records that it wrote; `record`: the
    last of them. `woken`: the record that started its current work. `directory`: the directory in which its last call
    left it. `plan`: set if it is a plan and not an agent; a plan has no turns, and its actions are the firings in
    progress. `remote`: its dialogues with remote agents, by name. `errand`: the message that the root has a plan for,
    instead of turns of its own. `forked`: the session was forked during its work, which ends here. `stopped`: a person
    ended its work.
    """

    path: str
    caller: str
    role: str
    model: str
    context: AgentContext
    narrowing: Narrowing = field(default_factory=Narrowing)
    mail: Mail = field(default_factory=Mail)
    guards: Guards = field(default_factory=Guards)
    account: Account = field(default_factory=Account)
    table: Table = field(default_factory=Table)
    labels: Labels = NOTHING
    active: bool = False
    rest: Rest = "idle"
    ended: str = ""
    forked: bool = False
    stopped: bool = False
    writes: bool = False
    """Whether it might change files of the workspace when it began, as its siblings are told."""
    paused: bool = False
    actions: list[Pending] = field(default_factory=list)
    turn: int = 0
    woken: int = 0
    all_turns: int = 0
    step: int = 0
    record: int = 0
    children: dict[str, str] = field(default_factory=dict)
    remote: dict[str, RemoteDialogue] = field(default_factory=dict)
    directory: str = ""
    usage: Usage = field(default_factory=Usage)
    plan: PlanRun | None = None
    errand: Errand | None = None
    answer: Deliver | None = None
    """What it returns to its caller once the actions that it wrote beside its answer are done."""

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
        return [one for one in self.actions if one.call and not one.child]

    @property
    def asks(self) -> bool:
        """Whether its call, or one of a plan's calls, waits for clearance."""
        return any(one.asked > 0 and one.answer is None for one in self.actions)


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
    sentence: str


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
