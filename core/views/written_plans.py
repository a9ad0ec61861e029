"""A plan that a person wrote, before it runs.

Its steps are shown in the same form as those of a plan of a session, a `StepView` for each, so that one drawing works
for a file and for a journal. Nothing here needs a session: a command about a file starts without one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from iact.core.language.actions import Registry
from iact.core.modules.registry import Loaded, specs_of
from iact.core.plan.forms import goal_text, read_plan
from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import MAX_NODES, PlanGraph, PlanNode
from iact.core.plan.modes.auto import way_of
from iact.core.plan.modes.registry import make_mode
from iact.core.plan.state import NodeRecord
from iact.core.plan.states import State
from iact.core.plan.validate import PlanInvalid, TooManySteps, check, effective_impact, levels
from iact.core.tree.plan_functions import Functions
from iact.core.views.known_modules import KnownModule

CONCURRENCY: Final = PlanLimits().concurrency
"""How many steps of a plan run at the same time."""


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of a plan.

    `call`: a function, or the name of a child agent. `required`: steps that must all succeed first; `candidates`: steps
    of which one must. `refs`: parameters that other steps provide, each as (step, field). `layer`: 0 for steps that
    need no others, else one more than the highest layer they need. `writes`: names of resources that no two steps may
    write at the same time. `timeout`: seconds.

    `state`: None before the plan runs. `started`, `ended`: seconds since its start. `error`: why the step did not
    succeed.
    """

    id: str
    kind: str
    call: str
    task: str
    required: tuple[str, ...]
    candidates: tuple[str, ...]
    refs: Mapping[str, tuple[str, str]]
    layer: int
    writes: tuple[str, ...] = ()
    timeout: float | None = None
    accepted: bool = False
    """Whether the person must accept its result."""
    state: State | None = None
    started: float | None = None
    ended: float | None = None
    error: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Every step that it waits for."""
        return (*self.required, *self.candidates)


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """Whether a plan can run: it can if there are no `problems`, which have one sentence each."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class WrittenPlan:
    """A plan that a person wrote, in JSON or YAML."""

    def __init__(self, text: str, plan: PlanGraph) -> None:
        self.text: Final = text
        self._plan: Final = plan

    @classmethod
    def read(cls, text: str) -> WrittenPlan:
        """Parse the plan in a text.

        Raises:
            UsageError: it is not a plan.
        """
        return cls(text, read_plan(text, id="plan"))

    @classmethod
    def of_goal(cls, goal: str) -> WrittenPlan:
        """A plan that so far has only a goal."""
        return cls.read(goal_text(goal))

    @property
    def goal(self) -> str:
        """The goal of the plan."""
        return self._plan.goal

    @property
    def size(self) -> int:
        """The number of its steps; 0 if the plan is a goal for a planner."""
        return len(self._plan.nodes)

    def steps(self) -> dict[str, StepView]:
        """The steps in the order in which they were written; none if the plan is a goal for a planner.

        Raises:
            UsageError: they wait for each other, or are too many to run.
        """
        if self.size > MAX_NODES:
            raise TooManySteps(self.size)
        return steps_of(self._plan.nodes)

    def mode(self, wanted: str) -> tuple[str, str]:
        """The mode in which the plan runs, and, if "auto" chose it, why."""
        return way_of(wanted, self._plan)

    def thinks(self, wanted: str) -> bool:
        """Whether models are asked about the plan when it runs in this mode."""
        judged = any(node.contract.judgement for node in self._plan.nodes.values())
        return judged or not self._plan.nodes or self.mode(wanted)[0] != "static"

    def check(self, modules: Collection[KnownModule] | None, wanted: str = "static") -> PlanCheck:
        """Check whether the plan can run with the functions of these modules; None: functions are not checked."""
        functions = _functions(modules) if modules is not None else None
        try:
            found = check(self._plan, functions, agents=make_mode(self.mode(wanted)[0]).agents)
        except PlanInvalid as error:
            return PlanCheck(error.problems, ())
        return PlanCheck((), tuple(found.warnings))

    def impacts(self, modules: Collection[KnownModule] | None) -> dict[str, float]:
        """The impact of each step that calls a function: the higher of the step's and the function's, as far as
        known."""
        functions = _functions(modules) if modules is not None else None
        return {
            node.id: effective_impact(
                node, functions.find(node.call) if functions is not None else None, functions
            )
            for node in self._plan.nodes.values()
            if node.kind == "tool"
        }


def steps_of(
    nodes: Mapping[str, PlanNode], records: Mapping[str, NodeRecord] | None = None
) -> dict[str, StepView]:
    layers = levels(nodes)
    return {
        one: _step(node, layers[one], records[one] if records is not None else None)
        for one, node in nodes.items()
    }


def _step(node: PlanNode, layer: int, record: NodeRecord | None) -> StepView:
    refs = {name: (ref.step, ref.field) for name, ref in node.refs.items()}
    plain = StepView(
        node.id, node.kind, node.call, node.task, node.required, node.candidates, refs, layer, node.writes, node.timeout,
        node.contract.by == "person",
    )  # fmt: skip
    if record is None:
        return plain
    return replace(plain, state=record.state, started=record.started, ended=record.ended, error=record.error)


def _functions(modules: Iterable[KnownModule]) -> Functions:
    loaded = [
        Loaded(one.manifest, one.entry.digest, one.entry.origin, one.approved)
        for one in modules
        if one.manifest is not None
    ]
    return Functions(Registry([spec for one in loaded for spec in specs_of(one)]))


__all__ = ["CONCURRENCY", "PlanCheck", "StepView", "TooManySteps", "WrittenPlan", "steps_of"]
