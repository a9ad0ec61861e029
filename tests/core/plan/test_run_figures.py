"""What is counted of a plan that has run."""

from __future__ import annotations

from iact.core.plan.forms import read_plan
from iact.core.plan.modes.static import Static
from iact.core.plan.protocol import StepFailure, StepSuccess
from iact.core.plan.run_figures import PlanFigures, figures_of
from tests.core.plan.engine import PlanEngine
from tests.core.plan.fakes import ScriptedAsker, ScriptedRunner, VirtualClock, run

TEXT = """
goal: g
steps:
  - {id: a, call: f, contract: {regex: x}}
  - {id: b, call: f, retries: 1}
  - {id: c, call: f, after: [a, b], contract: {non_empty: true}}
  - {id: d, call: f, after: [c]}
"""


def test_width_retries_versions_and_contracts_are_counted() -> None:
    runner = ScriptedRunner(
        {"a": StepSuccess("x"), "b": [StepFailure("raised", "no"), StepSuccess("y")], "c": StepSuccess("")},
        seconds={"a": 10.0, "b": 10.0},
    )
    engine = PlanEngine(
        read_plan(TEXT, id="p"), runner=runner, clock=VirtualClock(), asker=ScriptedAsker({}), mode=Static()
    )
    run(engine.run())
    assert figures_of(engine.state) == PlanFigures(width=2, retries=1, versions=1, contracts=2, held=1)
