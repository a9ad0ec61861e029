"""A plan of two waves under a mode, for tests of the modes."""

from __future__ import annotations

from collections.abc import Sequence

from iact.core.plan.forms import read_plan
from iact.core.plan.modes.base import Mode
from iact.core.plan.protocol import Outcome
from iact.core.plan.result import PlanResult
from tests.core.plan.engine import PlanEngine
from tests.core.plan.fakes import (
    ScriptedAsker,
    ScriptedRunner,
    VirtualClock,
    Work,
)

Script = dict[str, Outcome | Sequence[Outcome] | Work | Exception]

WAVES = """
goal: g
steps: [{id: a, call: f}, {id: b, call: f}, {id: c, call: f, after: [a]}, {id: d, call: f, after: [c]}]
"""
GO_ON = '{"decision": "continue"}'


def made(
    mode: Mode, asker: ScriptedAsker, runner: ScriptedRunner | None = None, text: str = WAVES
) -> PlanEngine:
    plan = read_plan(text, id="p")
    return PlanEngine(plan, runner=runner or ScriptedRunner(), clock=VirtualClock(), asker=asker, mode=mode)


def started(result: PlanResult) -> dict[str, float]:
    return {one: record.started for one, record in result.nodes.items() if record.started is not None}
