"""The seven groups: three loops, and four ways to run the same plan on the plan engine.

The groups of the paper's table 12. Each adds one thing to the group before:
G0 careful loop · G1 naive loop · G2 loop with a plan in its prompt · G3 plan enforced, one step at a time,
unbounded repair of the failing call · G4 the same, all ready steps at once · G5 retry and patch ·
G6 retry, patch and replan. G3 to G6 are the product's engine with different limits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.seven_groups.model import Mind
from benchmarks.seven_groups.world import World
from iact.core.plan import questions
from iact.core.plan.answers import extract
from iact.core.plan.forms import node_to_json
from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import make_plan
from iact.core.plan.prompt import build
from iact.core.plan.protocol import (
    Firing,
    FunctionCatalogue,
    FunctionInfo,
    Outcome,
    PlanQuestion,
    StepFailure,
    StepSuccess,
)
from iact.core.ports import JSON, Clock
from iact.evaluation.graph_tasks import tools
from tests.core.plan.engine import PlanEngine, Waiting

GROUPS: Final = ("G0", "G1", "G2", "G3", "G4", "G5", "G6")
SECONDS: Final = 600.0
TOKENS: Final = 100_000
"""The bounds of one run (paper, 8.1)."""

_ACT: Final = (
    'Answer with JSON only, one action: {"call": "TOOL", "params": {"NAME": "VALUE"}} '
    'or {"finish": "the value that was wanted"}. Hand results on by their value.'
)
_CAREFUL: Final = "Think before you act: what is known, what is missing, what went wrong and why. Keep a list of what is done."


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of one group. `calls`: calls of tools. `repeated`: calls whose result was already known."""

    group: str
    task: str
    tier: str
    seed: int
    success: bool
    seconds: float
    tokens: int
    model_calls: int
    calls: int
    repeated: int
    retries: int = 0
    patches: int = 0
    replans: int = 0
    versions: int = 0


class Offered:
    """The tools as functions of a plan."""

    def __init__(self) -> None:
        self._infos = {
            tool.name: FunctionInfo(
                tool.name,
                f"{tool.summary} Parameters: {', '.join((tool.literal, *tool.inputs))}.",
                {"type": "object", "properties": {one: {} for one in (tool.literal, *tool.inputs)}},
                idempotent=True,
            )
            for tool in tools()
        }

    def find(self, name: str) -> FunctionInfo | None:
        return self._infos.get(name)

    def of_call(self, name: str, arguments: Mapping[str, JSON]) -> FunctionInfo | None:
        return self.find(name)

    def all(self) -> list[FunctionInfo]:
        return list(self._infos.values())


async def run_group(group: str, world: World, mind: Mind, clock: Clock, seed: int) -> Ran:
    """Let one group work on one task."""
    begin = clock.monotonic()
    counted: dict[str, int] = {}
    if group in ("G0", "G1", "G2"):
        answer = await _loop(group, world, mind, clock, begin + SECONDS)
    else:
        answer, counted = await _plan(group, world, mind, clock)
    seconds, tokens = clock.monotonic() - begin, mind.meter.tokens
    within = seconds <= SECONDS and tokens <= TOKENS
    return Ran(
        group, world.task.id, world.task.tier, seed, within and world.wanted() in answer, seconds, tokens,
        mind.meter.model_calls, world.calls, world.repeated, **counted,
    )  # fmt: skip


# --- loops ----------------------------------------------------------------------------------------


async def _loop(group: str, world: World, mind: Mind, clock: Clock, until: float) -> str:
    goal, catalogue = world.task.goal, Offered()
    head = f"Goal: {goal}\n\nTools:\n{questions.functions(catalogue.all())}\n\n"
    if group == "G0":
        head += f"{_CAREFUL}\n\n"
    if group == "G2":
        parts = questions.plan(questions.PlanSituation(goal, infos=catalogue.all()))
        asked = PlanQuestion("plan", build(parts))
        head += "Plan:\n" + "".join([piece async for piece in mind.ask(asked)]) + "\n\n"
    history: list[str] = []
    while clock.monotonic() < until and mind.meter.tokens < TOKENS:
        text = f"{head}{''.join(history)}{_ACT}"
        action = extract(await mind.decide(text, careful=group == "G0", planned=group == "G2"))
        if "finish" in action:
            return str(action["finish"])
        params = action.get("params")
        outcome = await world.call(str(action.get("call")), params if isinstance(params, dict) else {})
        said = outcome.message if isinstance(outcome, StepFailure) else json.dumps(outcome.output)
        history.append(f"Action: {json.dumps(action)}\nResult: {said}\n\n")
        mind.saw(_value(outcome), said)
    return ""


def _value(outcome: Outcome) -> str | None:
    output = outcome.output if isinstance(outcome, StepSuccess) else None
    return str(output["value"]) if isinstance(output, dict) else None


# --- plans ----------------------------------------------------------------------------------------


@dataclass
class Firer:
    """Fires nodes in the world. `amending`: failed calls are repeated with other parameters, without a limit."""

    world: World
    mind: Mind
    amending: bool

    async def run(self, firing: Firing, waiting: Waiting) -> Outcome:
        arguments: Mapping[str, JSON] = firing.arguments
        while True:
            outcome = await self.world.call(firing.node.call, arguments)
            if isinstance(outcome, StepSuccess) or not self.amending or self.mind.meter.tokens >= TOKENS:
                return outcome
            if outcome.transient:
                continue
            failed = node_to_json(firing.node)
            text = (
                f"A call failed. Give it other parameters.\n\nGoal: {self.world.task.goal}\n\nThe step: {failed}\n"
                f'Its error: {outcome.message}\n\nAnswer with JSON only: {{"params": {{"NAME": "VALUE"}}}}'
            )
            given = extract(await self.mind.amend(text, failed, outcome.message)).get("params")
            arguments = {**arguments, **(given if isinstance(given, dict) else {})}


_CATALOGUE: Final[FunctionCatalogue] = Offered()
_BOUNDS: Final[Mapping[str, PlanLimits]] = {
    "G3": PlanLimits(concurrency=1, patches=0, replans=0, wall_clock=SECONDS, node_timeout=None),
    "G4": PlanLimits(patches=0, replans=0, wall_clock=SECONDS, node_timeout=None),
    "G5": PlanLimits(replans=0, wall_clock=SECONDS),
    "G6": PlanLimits(wall_clock=SECONDS),
}


async def _plan(group: str, world: World, mind: Mind, clock: Clock) -> tuple[str, dict[str, int]]:
    engine = PlanEngine(
        make_plan(world.task.id, (), goal=world.task.goal),
        runner=Firer(world, mind, amending=group in ("G3", "G4")),
        clock=clock,
        asker=mind,
        catalogue=_CATALOGUE,
        limits=_BOUNDS[group],
    )
    result = await engine.run()
    reasons = [version.reason for version in result.versions]
    counted = {
        "retries": sum(record.retries for record in result.nodes.values()),
        "patches": sum(reason.startswith("patch") for reason in reasons),
        "replans": sum(reason.startswith("replan") for reason in reasons),
        "versions": len(reasons),
    }
    return json.dumps(result.result), counted
