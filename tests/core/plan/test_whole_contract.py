"""The contract of a whole plan: its rules in code are checked, and what it asks in words is asked of a model, once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iact.core.plan.forms import read_plan
from iact.core.plan.modes.analyze import Analyze
from iact.core.plan.modes.base import Mode
from iact.core.plan.modes.nreflect import NReflect
from iact.core.plan.modes.orchestrator import Orchestrator
from iact.core.plan.modes.reflect import Reflect
from iact.core.plan.modes.static import Static
from iact.core.plan.protocol import StepSuccess
from iact.core.plan.verdict import WHOLE
from tests.core.plan.engine import PlanEngine
from tests.core.plan.fakes import ScriptedAsker, ScriptedRunner, VirtualClock, run

PLAN = """
goal: Say what is here
contract: {judgement: "Does it name a city?"}
steps: [{id: a, call: f}]
"""
CODED = PLAN.replace("judgement:", "regex: Rome, judgement:")
HOLDS = '{"holds": true}'
FELL = '{"holds": false}'
REPLIES = {
    "reflect": ['{"decision": "conclude", "reached": true}'],
    "analyze": ['{"achieved": true, "confidence": 0.9, "reasoning": "there"}'],
    "synthesize": ["It is in Rome."],
}
MODES: dict[str, Callable[[], Mode]] = {
    "static": Static,
    "reflect": Reflect,
    "nreflect": lambda: NReflect(2),
    "orchestrator": Orchestrator,
    "analyze": lambda: Analyze(3),
}


def engine(
    asker: ScriptedAsker | None, mode: Mode, text: str = PLAN, gives: object = "A table is in Rome."
) -> PlanEngine:
    runner = ScriptedRunner({"a": StepSuccess(gives)})  # type: ignore[arg-type]
    return PlanEngine(read_plan(text, id="p"), runner=runner, clock=VirtualClock(), asker=asker, mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("judged", "reached", "missing"),
    [
        ([HOLDS], "yes", None),
        ([FELL], "partly", "The result was judged not to hold: Does it name a city?"),
        ([], "partly", "Not checked: Does it name a city?"),
    ],
)
def test_it_is_asked_about_the_result_in_every_mode(
    mode: str, judged: list[str], reached: str, missing: str | None
) -> None:
    asker = ScriptedAsker({**REPLIES, "judge": judged})
    result = run(engine(asker, MODES[mode]()).run())
    assert asker.kinds.count("judge") == 1, "it is asked once, and not again if nobody answers"
    assert result.verdict.reached == reached
    assert (result.verdict.missing or {}).get(WHOLE) == missing

    question = next(one.text for one in asker.asked if one.kind == "judge")
    assert "Goal: Say what is here" in question
    assert "Condition: Does it name a city?" in question
    assert str(result.result) in question, "what is judged is what the plan answers"


def test_nothing_is_asked_where_code_has_found_it_fallen_or_there_is_nothing_to_judge() -> None:
    asker = ScriptedAsker({"judge": [HOLDS]})
    result = run(engine(asker, Static(), CODED, gives="A table is in Oslo.").run())
    assert (asker.kinds, result.verdict.reached) == ([], "partly")
    assert "does not match" in (result.verdict.missing or {})[WHOLE]

    asker = ScriptedAsker({"judge": [HOLDS]})
    assert run(engine(asker, Static(), gives="").run()).verdict.reached == "partly"
    assert asker.kinds == []

    alone = run(engine(None, Static()).run())
    assert (alone.verdict.missing or {})[WHOLE] == "Not checked: Does it name a city?"


def test_a_plan_of_format_1_2_asks_what_it_asked_then() -> None:
    asker = ScriptedAsker({"judge": [HOLDS]})
    made = engine(asker, Static())
    made.machine.run.follows_1_3 = False
    result = run(made.run())
    assert asker.kinds == []
    assert (result.verdict.missing or {})[WHOLE] == "Not checked: Does it name a city?"
