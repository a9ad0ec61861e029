"""One agent as data: a dialogue with its caller, and what it still has to do.

Nothing here runs. An agent's state is the fold of its records (`core.tree.apply`), and its next step
follows from that state alone (law 1), so an agent can be dropped from memory at any moment and be
rebuilt from the journal: suspended dialogues are data, not suspended coroutines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from core.context.history import History
from core.context.tail import Told
from core.gate.gate import Answer
from core.gate.grant import Grant
from core.gate.provenance import NOTHING, Labels
from core.language.actions import ActionSpec
from core.language.grammar import Bound
from core.language.variables import Table, Value
from core.ports import Part, Usage
from core.tree.plan_run import PlanRun

Rest = Literal["idle", "done", "failed", "cancelled"]
"""How an agent that is not active came to rest."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message that waits for the agent's next turn. `n`: its record; `values`: variables that it brings.

    `mode`: of an intervention (queue, deliver, interrupt). `child`, `status`: of a child's reply. `labels`: where its
    text comes from. News wake nobody.
    """

    n: int
    kind: Literal["say", "caller", "child", "intervention", "upload", "news"]
    source: str
    text: str
    values: Mapping[str, Value] = field(default_factory=dict)
    mode: str = ""
    child: str = ""
    status: str = "ok"
    labels: Labels = NOTHING

    @property
    def wakes(self) -> bool:
        """Whether an agent at rest has to answer it; a child's late reply, a file and news are only there."""
        return self.kind not in ("child", "upload", "news")


@dataclass(slots=True)
class Pending:
    """An action of the agent's last reply that has no outcome yet.

    `index`: its place among the actions of that reply; `written`: its name as the agent wrote it.
    `bound` is None until its turn comes, because results before it may define what it names.
    `call`: number of its `call` record once it was dispatched, else 0. `child`: whom a CALL is for.
    `asked`: number of the `clearance` record that asks about it, else 0, of whom (`asked_of`), at which impact, and
    how long a person has (`seconds`);
    `answer`: what they said. `passed`: an endpoint said yes, and a person has the last word. `verdict`: what the gate
    said last, and `verdict_impact` at which impact. `files_before`: the version of the workspace when it was
    dispatched; `beside`: labels of what calls beside it wrote and took away again (`core.tree.apply_shared`).
    `node`: the step of a plan that it is a firing of.
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
    answer: Answer | None = None
    passed: bool = False
    verdict: Literal["", "allowed", "denied"] = ""
    verdict_impact: float = 0
    files_before: str = ""
    beside: Labels = NOTHING
    node: str = ""


@dataclass(slots=True)
class Agent:
    """One agent. `active`: it owes its caller a reply. `turns`: of this activation; `all_turns`: ever.

    `patterns` and `intent` narrow its caller's grant. `fresh`: it has had no turn yet. `warned`: it was
    told that children are still at work, `full_told`: that its context fills up. `forked`: it began with its
    caller's history. `first`: its first message. `told`: what its history says about the state; None where the
    next tail must be whole. `parts`: what its feedback shows beside text. `offers`: the functions of
    state-machine modules that it was told of last, by module. `allowance`, `spent`, `reserved` (by child), `lent` (their sum) and `lender` belong to
    `core.tree.budget`; `repeats` and `incomplete` to `core.tree.loops`. `began`: when this activation began;
    `latches`: when its own latch was closed and opened. `ended`: why its work must end now, if so.
    `labels`: where all that it has read comes from (`core.tree.origin`).
    `task`: what it was asked last; `recalled`: what memory brought for its next turn, line by line;
    `meant`: functions that what it reads is about in meaning, each with the record of that message.
    `plan`: it is a plan and not an agent; it has no turns, and its actions are the firings under way.
    """

    path: str
    caller: str
    role: str
    model: str
    history: History
    patterns: Sequence[str] | None = None
    intent: float | None = None
    table: Table = field(default_factory=Table)
    labels: Labels = NOTHING
    active: bool = False
    rest: Rest = "idle"
    paused: bool = False
    fresh: bool = True
    warned: bool = False
    full_told: bool = False
    forked: bool = False
    first: str = ""
    inbox: list[Incoming] = field(default_factory=list)
    feedback: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    actions: list[Pending] = field(default_factory=list)
    turn: int = 0
    turns: int = 0
    all_turns: int = 0
    step: int = 0
    record: int = 0
    known: set[str] = field(default_factory=set)
    told: Told | None = None
    offers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    children: dict[str, str] = field(default_factory=dict)
    directory: str = ""
    usage: Usage = field(default_factory=Usage)
    allowance: int = 0
    spent: int = 0
    reserved: dict[str, int] = field(default_factory=dict)
    lent: int = 0
    lender: str = ""
    began: str = ""
    latches: list[tuple[str, str]] = field(default_factory=list)
    repeats: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    incomplete: dict[tuple[str, str], int] = field(default_factory=dict)
    ended: str = ""
    task: str = ""
    recalled: tuple[str, ...] = ()
    meant: dict[str, int] = field(default_factory=dict)
    plan: PlanRun | None = None

    @property
    def name(self) -> str:
        """The last part of the path; "root" for the root."""
        return self.path.rsplit("/", 1)[1] or "root"

    @property
    def depth(self) -> int:
        """0 for the root."""
        return 0 if self.path == "/" else self.path.count("/")

    def narrowed(self, caller: Grant) -> Grant:
        """This agent's grant, given its caller's."""
        return caller.narrow(patterns=self.patterns, intent=self.intent)

    @property
    def called(self) -> bool:
        """Whether it waits for the reply to a CALL or a PLAN."""
        if not self.actions or self.plan is not None:
            return False
        return self.actions[0].spec.name in ("CALL", "PLAN") and self.actions[0].call > 0

    @property
    def asks(self) -> bool:
        """Whether its call, or one of a plan's, waits for clearance."""
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
    """Next step: return to the caller with what there is, because a bound was hit."""

    bound: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Next step of a plan: run it to its end."""


Step = Think | Act | End | Execute
