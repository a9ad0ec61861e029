"""The recovery ladder: its entries refuse out of order; patches and replans make versions."""

from __future__ import annotations

import pytest

from iact.core.plan.forms import read_plan
from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import PlanVersion
from iact.core.plan.protocol import StepFailure, StepSuccess
from iact.core.plan.recovery import Exhausted, LadderBudget, Permitted, RecoveryLadder, RecoveryRefused, Retry
from iact.core.plan.state import PlanState
from iact.core.plan.states import Cause
from tests.core.plan.engine import PlanEngine
from tests.core.plan.fakes import ScriptedAsker, ScriptedRunner, VirtualClock, run, states

BUSY = StepFailure("unavailable", "Busy.")


def at(*causes: Cause) -> tuple[PlanState, RecoveryLadder]:
    state = PlanState()
    state.adopt(
        PlanVersion.first(read_plan("steps: [{id: a, call: f, retries: 1}, {id: b, call: f}]", id="p"))
    )
    for cause in causes:
        state.happen("a", cause, 0.0)
    return state, RecoveryLadder(state, LadderBudget(patches=1, replans=1), backoff=1)


def test_each_rung_needs_the_one_before() -> None:
    state, ladder = at("joined", "dispatched")
    with pytest.raises(RecoveryRefused):
        ladder.attempt_patch("a")
    assert ladder.attempt_retry("a", BUSY, impact=0, idempotent=False) == Retry(1)
    for cause in ("transient", "retried", "dispatched"):
        state.happen("a", cause, 0.0)
    assert isinstance(ladder.attempt_retry("a", BUSY, impact=0, idempotent=False), Exhausted)
    state.happen("a", "broke", 0.0)
    with pytest.raises(RecoveryRefused):
        ladder.attempt_retry("a", BUSY, impact=0, idempotent=False)
    with pytest.raises(RecoveryRefused):
        ladder.request_replan()
    assert ladder.attempt_patch("a") == Permitted()
    with pytest.raises(RecoveryRefused):
        ladder.request_replan()
    ladder.give_up("a")
    with pytest.raises(RecoveryRefused):
        ladder.attempt_patch("a")
    assert ladder.request_replan() == Permitted()
    assert isinstance(ladder.request_replan(), Exhausted)
    assert ladder.request_replan(charge=False) == Permitted()


def test_a_node_that_has_not_failed_is_not_recovered() -> None:
    _, ladder = at("joined")
    with pytest.raises(RecoveryRefused):
        ladder.attempt_retry("a", BUSY, impact=0, idempotent=True)
    with pytest.raises(RecoveryRefused):
        ladder.attempt_patch("a")


THREE = """
goal: g
steps: [{id: a, call: f}, {id: b, call: f, refs: {x: {step: a, field: v}}}, {id: c, call: f, after: [b]}]
"""


def engine(asker: ScriptedAsker, runner: ScriptedRunner, **limits: int) -> PlanEngine:
    return PlanEngine(
        read_plan(THREE, id="p"), runner=runner, clock=VirtualClock(), asker=asker,
        limits=PlanLimits(backoff=0.1, **limits),  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_patch_stands_in_for_what_failed() -> None:
    asker = ScriptedAsker(
        {"patch": ['{"steps": [{"id": "a2", "call": "g"}, {"id": "a3", "call": "g", "after": ["a2"]}]}']}
    )
    runner = ScriptedRunner({"a": StepFailure("raised", "No such host."), "a3": StepSuccess({"v": 7})})
    result = run(engine(asker, runner).run())
    assert (result.status, result.verdict.reached) == ("partial", "unknown"), (
        "nobody judged what ran in its place"
    )
    assert result.verdict.replaced == {"a": ("a2", "a3")}
    assert runner.fired == ["a", "a2", "a3", "b", "c"]
    assert result.nodes["b"].output == {"x": 7}
    assert result.nodes["a"].state == "failed"
    assert result.nodes["a"].rung == "patched"
    assert result.nodes["a3"].node.spawned_by == "a"
    assert "No such host." in asker.asked[0].text
    assert [(v.version, v.parent) for v in result.versions] == [(1, None), (2, 1)], (
        "that somebody thought about it is no version of the plan"
    )
    assert result.versions[1].reason == "patch: a is replaced by a2, a3"
    assert [n.id for n in result.versions[1].rewire] == ["b"]


def test_a_patch_can_leave_a_step_out_unless_its_value_is_needed() -> None:
    asker = ScriptedAsker({"patch": ['{"skip": true}']})
    missed = run(engine(asker, ScriptedRunner({"a": StepFailure("raised", "no")}), replans=0).run())
    assert states(missed)["b"] == "skipped"
    assert any("can't be left out" in one for one in missed.warnings)
    fine = run(
        engine(asker, ScriptedRunner({"a": StepSuccess({"v": 1}), "b": StepFailure("raised", "no")})).run()
    )
    assert (fine.status, fine.verdict.reached) == ("partial", "unknown"), (
        "nobody judged whether it was needed"
    )
    assert states(fine)["c"] == "executed"


def test_a_replan_comes_last_and_its_planner_may_correct_itself_once() -> None:
    asker = ScriptedAsker(
        {
            "patch": ["no idea"],
            "replan": ["gibberish"],
            "correct": ["steps: [{id: d, call: g}, {id: b, call: g, after: [d]}]"],
        }
    )
    runner = ScriptedRunner({"a": StepFailure("raised", "no")})
    result = run(engine(asker, runner).run())
    assert asker.kinds == ["patch", "replan", "correct"]
    assert (result.status, result.verdict.reached) == ("partial", "unknown")
    assert result.verdict.replaced == {"a": ("d", "b-v2"), "b": ("b-v2",), "c": ("d", "b-v2")}
    assert runner.fired == ["a", "d", "b-v2"]
    last = result.versions[-1]
    assert last.drop == ("b", "c")
    assert states(result)["b"] == "cancelled"
    assert last.reason.startswith("replan: ")


def test_without_anybody_to_ask_what_is_there_comes_back() -> None:
    runner = ScriptedRunner({"b": StepFailure("raised", "no")})
    result = run(engine(ScriptedAsker(), runner).run())
    assert result.status == "partial"
    assert result.nodes["a"].state == "executed"
    assert list(result.missing) == ["b", "c"]
    assert any("Nobody answers." in one for one in result.warnings)


def test_what_waits_behind_a_transient_failure_is_not_diagnosed_to_the_nodes() -> None:
    """Diagnosis sees the failure history, nodes under execution never do."""
    asker = ScriptedAsker({"patch": ['{"steps": [{"id": "n", "call": "f"}]}']})
    runner = ScriptedRunner({"a": StepFailure("raised", "SECRET-DIAGNOSIS"), "n": StepSuccess({"v": 1})})
    run(engine(asker, runner).run())
    assert "SECRET-DIAGNOSIS" in asker.asked[0].text
    assert all("SECRET-DIAGNOSIS" not in str((f.arguments, f.inputs)) for f in runner.firings)
