"""What the tree knows of one plan: the fold of its records.

The engine (`core.plan.engine`) keeps a state of its own while it runs; this one is made from the journal
alone, live as well as on replay, so a plan can be shown, verified, and gone on with after a crash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from core.gate.provenance import NOTHING, Labels
from core.language.variables import Value
from core.plan.model import WORK, Plan, PlanVersion
from core.plan.result import Status
from core.plan.seams import Outcome, QuestionKind
from core.plan.state import NodeChange, NodeRecord, PlanState
from core.ports import JSON

_UNFIT: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of one firing, in attempt `attempt` at its step. `n`: the record that says so; `value`: what succeeded with, None for nothing.

    `brought`: names, in the plan's table, of the variables that an agent's reply mentions.
    """

    node: str
    attempt: int
    n: int
    outcome: Outcome
    value: Value | None = None
    brought: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a plan ended, as its reply says. `answer`: a model's, None where its last steps speak for themselves."""

    status: Status
    answer: JSON
    missing: Mapping[str, str]
    bound: str
    warnings: tuple[str, ...]


@dataclass(slots=True)
class PlanRun:
    """One plan. `thinks`: whether models are asked about it. `source`: as it was written, without steps if a planner
    writes them.

    `events`: all versions and changes, in order. `fired`: firings so far; `firing`: node → action of its firing that
    has no outcome yet. `settled`: what came of them, by action; `latest`: of each node, the newest. `failures`: labels
    of what was said of those that failed.
    """

    mode: str
    options: Mapping[str, str | int]
    thinks: bool = True
    source: Plan = field(default_factory=lambda: Plan("plan", {}))
    state: PlanState = field(default_factory=PlanState)
    events: list[NodeChange | PlanVersion] = field(default_factory=list)
    fired: int = 0
    firing: dict[str, int] = field(default_factory=dict)
    settled: dict[int, Settled] = field(default_factory=dict)
    latest: dict[str, Settled] = field(default_factory=dict)
    answers: list[tuple[QuestionKind, str]] = field(default_factory=list)
    failures: Labels = NOTHING
    ending: Ending | None = None

    def work(self) -> list[NodeRecord]:
        """Tool and agent nodes of the present version, in its order."""
        return [self.state.nodes[one] for one, node in self.state.plan.nodes.items() if node.kind in WORK]


def variable_of(node: str) -> str:
    """The variable that holds what a step gave."""
    name = _UNFIT.sub("_", node)
    return f"step_{name}" if name[:1].isdigit() else name
