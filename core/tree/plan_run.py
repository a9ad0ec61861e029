"""What the tree knows of one plan: the machine that decides about it, and the state between the machine and the
records.

Outcomes (a step's result, a model's answer, a person's input, a time) are passed to the machine by the records that
hold them (`core.tree.apply_plan`). The records that it decides on are owed to the journal, in order, and the work that
it wants done is visible here. The process that runs the session writes the records and does the work, now or after a
restart.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from iact.core.gate.provenance import NOTHING, Labels
from iact.core.language.variables import Value
from iact.core.plan.briefing import NOTHING as NOT_BRIEFED
from iact.core.plan.briefing import Briefing
from iact.core.plan.machine import PlanMachine
from iact.core.plan.model import WORK
from iact.core.plan.model import PlanGraph as Steps
from iact.core.plan.protocol import Outcome, PlanQuestion
from iact.core.plan.result import Status
from iact.core.plan.state import NodeRecord, PlanState
from iact.core.ports import JSON
from iact.core.records.parts import PlanTerms, SeenFiles, Verdict
from iact.core.records.plans import Extend, Fire, Node, Plan, ProfileRisk, ProfileRule, ProfileTrust
from iact.core.records.record import Record
from iact.core.records.session import Notice
from iact.core.tree.mail import Incoming
from iact.core.tree.plan_history import PlanHistory

BUG: Final = "An internal error ended this agent's work; the log has it."
"""The report about work that a bug of ours ended."""
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class Copied:
    """What a call wrote in a copy of the workspace.

    `call`, `result`: its records. `base`, `version`: the workspace before and after. `labels`: of what was written.
    """

    call: int
    result: int
    base: str
    version: str
    labels: Labels


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The result of one firing, in attempt `attempt` at its step. `n`: its record. `value`: the result of a success, or
    None.

    `brought`: names, in the plan's table, of the variables that an agent's reply mentions. `copied`: set if it worked
    in a copy of the workspace.
    """

    node: str
    attempt: int
    n: int
    outcome: Outcome
    value: Value | None = None
    brought: tuple[str, ...] = ()
    copied: Copied | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a plan ended, as its reply reports. `answer`: a model's; None if the results of its last steps are the
    answer.

    `confidence`: of the model that judged it.
    """

    status: Status
    verdict: Verdict
    answer: JSON
    bound: str
    warnings: tuple[str, ...]
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Owed:
    """A record that follows from earlier records and is not written yet."""

    content: Plan | Extend | Node | Fire | ProfileRisk | ProfileRule | ProfileTrust | Notice
    body: str = ""


@dataclass(slots=True)
class Asking:
    """An open question. `pieces`: its answer is read while it is being written. `read`: what was read so far."""

    question: PlanQuestion
    pieces: bool
    read: str = ""


@dataclass(slots=True)
class PlanRun:
    """One plan. `thinks`: whether models are asked about it. `terms`: its terms in its `spawn`. `template`: the kept
    plan that it is made from. `source`: the plan as it was written, without steps if a planner writes them. `machine`:
    None before the plan is handed over, if it can't run (`invalid` says why), and while records of an older format are
    read, whose steps are in `history`. `given`: variables that its caller handed over.

    `owed`: records to be written. `asking`: open questions, by the number of the thought. `asked`: answers so far.
    `fired`: firings so far. `firing`: node → action of its firing that has no outcome yet. `settled`: results of
    firings, by action; `latest`: the latest result of each node. `failures`: labels of the reports of failed steps.
    `taking`: steps whose copies of the workspace will be taken over. `holds`: when a person paused and resumed each
    step; the last end is "" during a pause. `notes`: messages of a person to agent steps that have not called an agent
    yet. `cancelled`: why it was cancelled. `fault`: the bug of ours that ended it, for the log. `epoch`: the time, in
    seconds, from which the plan's own time is counted. `heard`: the time of the last record about it.
    """

    mode: str
    options: Mapping[str, str | int]
    thinks: bool = True
    terms: PlanTerms | None = None
    template: str = ""
    source: Steps = field(default_factory=lambda: Steps("plan", {}))
    given: Mapping[str, Value] = field(default_factory=dict)
    machine: PlanMachine | None = None
    history: PlanHistory = field(default_factory=PlanHistory)
    experience: Mapping[str, float] = field(default_factory=dict)
    """How often calls failed before this plan, by function and names of arguments."""
    files: SeenFiles | None = None
    """The files of the workspace when it began."""
    briefing: Briefing = NOT_BRIEFED
    """What the models that think about it are told, fixed when it was handed over."""
    invalid: str = ""
    cancelled: str = ""
    fault: Exception | None = None
    epoch: float = 0.0
    heard: float = 0.0
    owed: deque[Owed] = field(default_factory=deque)
    asking: dict[int, Asking] = field(default_factory=dict)
    asked: int = 0
    fired: int = 0
    firing: dict[str, int] = field(default_factory=dict)
    settled: dict[int, StepOutcome] = field(default_factory=dict)
    latest: dict[str, StepOutcome] = field(default_factory=dict)
    failures: Labels = NOTHING
    taking: dict[str, Copied] = field(default_factory=dict)
    holds: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    notes: dict[str, list[Incoming]] = field(default_factory=dict)
    inquiries: dict[str, str] = field(default_factory=dict)
    """Questions of its steps' agents that are to be put to the person, by step."""
    asked_by: dict[str, tuple[Record, Incoming]] = field(default_factory=dict)
    """The last question of each step's agent: its record, and the message."""
    ending: Ending | None = None
    by_person: bool = False
    """Whether a person wrote it, and not an agent."""
    shaped: Record | None = None
    """The last record that changed its steps: a version, more of one, or a person's edit. None before the first."""

    @property
    def state(self) -> PlanState:
        """The plan and its nodes, as the records made them."""
        return self.machine.run.state if self.machine is not None else self.history.state

    @property
    def running(self) -> PlanMachine | None:
        """The machine, as long as it accepts input."""
        return None if self.invalid else self.machine

    @property
    def over(self) -> bool:
        """Whether it has ended and owes the journal nothing but its reply."""
        ended = self.machine is not None and self.machine.over
        return bool((ended or self.invalid) and not self.owed)

    @property
    def changing(self) -> bool:
        """Whether its steps are other than its records say so far."""
        return any(isinstance(owed.content, (Plan, Extend)) for owed in self.owed)

    def held(self, node: str) -> bool:
        """Whether a person has paused this step individually."""
        spans = self.holds.get(node)
        return bool(spans and not spans[-1][1])

    @property
    def due(self) -> float | None:
        """When something is due, in seconds; None if nothing is due, or while time stands still."""
        machine = self.running
        if machine is None or machine.over or machine.still or machine.due is None:
            return None
        return self.epoch + machine.due

    def at(self, time: str) -> float:
        """Seconds since the plan's start, by the time of a record; they never decrease."""
        self.heard = max(self.heard, seconds(time))
        return self.heard - self.epoch

    def work(self) -> list[NodeRecord]:
        """Tool and agent nodes of the current version, in its order."""
        return [self.state.nodes[one] for one, node in self.state.plan.nodes.items() if node.kind in WORK]

    def rest(self) -> None:
        """Drop everything that is still open: nothing more follows from this plan."""
        self.owed.clear()
        self.asking.clear()
        self.inquiries.clear()
        self.firing.clear()


def seconds(time: str) -> float:
    """A record's time in seconds since 1970."""
    return datetime.fromisoformat(time).timestamp()


def variable_of(node: str) -> str:
    """The name of the variable that holds a step's result. Names of variables are ASCII, ids of steps are of any script."""
    name = _UNFIT.sub("_", node)
    if not node.isascii():
        name = f"{name.strip('_')}_{hashlib.sha256(node.encode()).hexdigest()[:6]}".lstrip("_")
    return f"step_{name}" if name[:1].isdigit() or not node.isascii() else name
