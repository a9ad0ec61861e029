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
    """What a call wrote in a copy of the workspace."""

    call: int
    """The record of the call."""
    result: int
    """The record of its result."""
    base: str
    """The version of the workspace from which the copy was made."""
    version: str
    """The version that the copy had afterwards; empty if it could not be kept."""
    labels: Labels
    """Of what was written."""


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The result of one firing."""

    node: str
    """Its step."""
    attempt: int
    """Which attempt at the step it was."""
    n: int
    """The record of the result."""
    outcome: Outcome
    value: Value | None = None
    """The result of a success."""
    brought: tuple[str, ...] = ()
    """Names, in the plan's table, of the variables that an agent's reply mentions."""
    copied: Copied | None = None
    """Set if it worked in a copy of the workspace."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a plan ended, as its reply reports."""

    status: Status
    verdict: Verdict
    answer: JSON
    """A model's; None if the results of its last steps are the answer."""
    bound: str
    """The bound that ended it; empty if none did."""
    warnings: tuple[str, ...]
    confidence: float | None = None
    """Of the model that judged it."""


@dataclass(frozen=True, slots=True)
class Owed:
    """A record that follows from earlier records and is not written yet."""

    content: Plan | Extend | Node | Fire | ProfileRisk | ProfileRule | ProfileTrust | Notice
    body: str = ""


@dataclass(slots=True)
class Asking:
    """An open question."""

    question: PlanQuestion
    pieces: bool
    """Whether its answer is read while it is being written."""
    read: str = ""
    """What was read so far."""


@dataclass(slots=True)
class PlanRun:
    """One plan."""

    # What it is.
    mode: str
    options: Mapping[str, str | int]
    """The options of the mode."""
    thinks: bool = True
    """Whether models are asked about it."""
    terms: PlanTerms | None = None
    """Its terms in its `spawn`."""
    template: str = ""
    """The kept plan that it is made from."""
    source: Steps = field(default_factory=lambda: Steps("plan", {}))
    """The plan as it was written, without steps if a planner writes them."""
    given: Mapping[str, Value] = field(default_factory=dict)
    """Variables that its caller handed over."""
    machine: PlanMachine | None = None
    """None before the plan is handed over, if it can't run, and while records of an older format are read."""
    history: PlanHistory = field(default_factory=PlanHistory)
    """The steps of a plan whose records are of an older format."""
    experience: Mapping[str, float] = field(default_factory=dict)
    """How often calls failed before this plan, by function and names of arguments."""
    files: SeenFiles | None = None
    """The files of the workspace when it began."""
    briefing: Briefing = NOT_BRIEFED
    """What the models that think about it are told, fixed when it was handed over."""

    # How it is.
    invalid: str = ""
    """Why it can't run."""
    cancelled: str = ""
    """Why it was cancelled."""
    fault: Exception | None = None
    """The bug of ours that ended it, for the log."""
    epoch: float = 0.0
    """The time, in seconds, from which the plan's own time is counted."""
    heard: float = 0.0
    """The time of the last record about it."""

    # What goes on.
    owed: deque[Owed] = field(default_factory=deque)
    """Records to be written."""
    asking: dict[int, Asking] = field(default_factory=dict)
    """Open questions, by the number of the thought."""
    asked: int = 0
    """How many answers there were."""
    fired: int = 0
    """How many firings there were."""
    firing: dict[str, int] = field(default_factory=dict)
    """The action of each step's firing that has no outcome yet."""
    settled: dict[int, StepOutcome] = field(default_factory=dict)
    """The results of firings, by action."""
    latest: dict[str, StepOutcome] = field(default_factory=dict)
    """The latest result of each step."""
    failures: Labels = NOTHING
    """The labels of the reports of failed steps."""
    taking: dict[str, Copied] = field(default_factory=dict)
    """Steps whose copies of the workspace will be taken over."""
    holds: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """When a person paused and resumed each step; the last end is "" during a pause."""
    notes: dict[str, list[Incoming]] = field(default_factory=dict)
    """Messages of a person to agent steps that have not called an agent yet."""
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
        if self.machine is None:
            return self.history.state
        return self.machine.run.state

    @property
    def running(self) -> PlanMachine | None:
        """The machine, as long as it accepts input."""
        return None if self.invalid else self.machine

    @property
    def over(self) -> bool:
        """Whether it has ended and owes the journal nothing but its reply."""
        has_ended = bool(self.invalid) or (self.machine is not None and self.machine.over)
        return has_ended and not self.owed

    @property
    def changing(self) -> bool:
        """Whether its steps are other than its records say so far."""
        return any(isinstance(owed.content, (Plan, Extend)) for owed in self.owed)

    def held(self, node: str) -> bool:
        """Whether a person has paused this step individually."""
        pauses = self.holds.get(node)
        if not pauses:
            return False
        _, end = pauses[-1]
        return not end

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
        return [self.state.nodes[id] for id, node in self.state.plan.nodes.items() if node.kind in WORK]

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
        # What is left of two such ids may be the same.
        digest = hashlib.sha256(node.encode()).hexdigest()[:6]
        name = f"{name.strip('_')}_{digest}".lstrip("_")
        return f"step_{name}"
    return f"step_{name}" if name[:1].isdigit() else name
