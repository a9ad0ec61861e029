"""Running plans: worked examples, joins, faults, limits and control, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from iact.core.plan.forms import read_plan
from iact.core.plan.limits import PlanLimits
from iact.core.plan.protocol import Firing, FunctionInfo, Outcome, StepFailure, StepSuccess
from iact.core.plan.state import NodeChange
from iact.core.rates import Rate
from tests.core.plan.engine import PlanEngine, Waiting
from tests.core.plan.fakes import (
    Functions,
    Recorder,
    ScriptedAsker,
    ScriptedRunner,
    VirtualClock,
    drive,
    run,
    states,
)

BUG_FIX = """
goal: Investigate and fix a Python authentication bug
steps:
  - {id: search_auth, call: search}
  - {id: search_utils, call: search}
  - {id: read_auth, call: read, after: [search_auth]}
  - {id: read_utils, call: read, after: [search_utils]}
  - {id: analyze, call: think, after: [read_auth, read_utils]}
  - {id: fix_A, call: patch, after: [analyze]}
  - {id: fix_B, call: patch, after: [analyze]}
  - {id: run_tests, call: test, after: [fix_A, fix_B], join: any_of}
  - {id: update_docs, call: write, after: [analyze]}
  - {id: report, call: write, after: [run_tests, update_docs]}
"""
"""Graph Harness, section 3.6."""


def test_the_worked_example_of_the_graph_harness() -> None:
    runner = ScriptedRunner(
        {"fix_A": StepFailure("unavailable", "The editor is busy.")},
        dict.fromkeys(("search_auth", "search_utils", "read_auth", "read_utils", "analyze", "fix_B", "update_docs", "run_tests", "report"), 1.0),
    )  # fmt: skip
    plan = read_plan(BUG_FIX, id="p")

    async def scene() -> None:
        engine = PlanEngine(plan, runner=runner, clock=VirtualClock(), limits=PlanLimits(backoff=10))
        result = await engine.run()
        assert result.status == "concluded"
        assert result.seconds == pytest.approx(6.0)
        ended = states(result)
        assert ended.pop("fix_A") == "skipped"
        assert set(ended.values()) == {"executed"}
        changes = [one for one in result.trail if isinstance(one, NodeChange)]
        rounds: dict[float, list[str]] = {}
        for one in changes:
            if one.cause == "dispatched":
                rounds.setdefault(one.at, []).append(one.node)
        assert list(rounds.values()) == [
            ["search_auth", "search_utils"],
            ["read_auth", "read_utils"],
            ["analyze"],
            ["fix_A", "fix_B", "update_docs"],
            ["run_tests"],
            ["report"],
        ]
        assert [(c.cause, c.target) for c in changes if c.node == "fix_A"] == [
            ("joined", "ready"),
            ("dispatched", "running"),
            ("transient", "failed_retryable"),
            ("lost_race", "skipped"),
        ]
        assert {one.version for one in changes} == {1}

    run(scene())


def test_kaijus_calendar_example() -> None:
    plan = read_plan(
        """
        goal: Book the weekly sync
        steps:
          - {id: 0, call: check_calendars, params: {team: engineering}}
          - {id: 1, call: create_event, params: {title: Sync}, refs: {start: {step: 0, field: slots.0.start}}}
          - {id: 2, call: send_invites, refs: {event_id: {step: 1, field: event_id},
             attendees: {step: 0, field: members}, note: {step: 1, field: event_id, template: "Event {} is on."}}}
        """,
        id="p",
    )
    runner = ScriptedRunner(
        {
            "0": StepSuccess(
                {"slots": [{"start": "09:00"}], "members": ["ann", "bo"]}, labels=("tool:calendar",)
            ),
            "1": StepSuccess({"event_id": 17}, labels=("tool:events",)),
        }
    )
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock()).run())
    assert result.status == "concluded"
    fired = {one.node.id: one for one in runner.firings}
    assert fired["1"].arguments == {"title": "Sync", "start": "09:00"}
    assert fired["1"].labels == ("tool:calendar",)
    assert fired["2"].arguments == {"event_id": 17, "attendees": ["ann", "bo"], "note": "Event 17 is on."}
    assert fired["2"].labels == ("tool:calendar", "tool:events")


def test_a_missing_field_fails_the_node_and_names_it() -> None:
    plan = read_plan(
        "steps: [{id: a, call: f}, {id: b, call: g, refs: {x: {step: a, field: slots.0.start}}}]", id="p"
    )
    runner = ScriptedRunner({"a": StepSuccess({"slots": []})})
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock()).run())
    assert result.status == "partial"
    assert runner.fired == ["a"]
    assert result.missing["b"] == (
        "Parameter 'x' of 'b': the output of 'a' has no 'slots.0' (it is a list of 0)."
    )


def test_an_exception_is_a_result_and_never_a_hang() -> None:
    plan = read_plan("steps: [{id: a, call: f}, {id: b, call: g}, {id: c, call: h, after: [a]}]", id="p")
    runner = ScriptedRunner({"a": RuntimeError("boom")})
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock()).run())
    assert states(result) == {"a": "failed", "b": "executed", "c": "skipped"}
    assert "boom" in result.nodes["a"].error
    assert result.status == "partial"
    assert result.missing["a"] == result.nodes["a"].error
    assert result.missing["c"] == "It waited for what did not succeed: a is failed."
    assert result.missing.keys() == {"a", "c"}
    assert result.result == "b"


def test_a_slow_node_holds_only_what_depends_on_it() -> None:
    plan = read_plan(
        "steps: [{id: slow, call: f}, {id: a, call: f}, {id: b, call: f, after: [a]}, {id: z, call: f, after: [slow]}]",
        id="p",
    )
    runner = ScriptedRunner({}, {"slow": 60, "a": 1, "b": 1, "z": 1})
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock()).run())
    assert result.nodes["b"].ended == pytest.approx(2)
    assert result.nodes["z"].ended == pytest.approx(61)


@pytest.mark.parametrize(
    ("step", "outcome", "attempts"),
    [
        ("{id: a, call: f}", StepFailure("unavailable", "Busy."), 3),
        ("{id: a, call: f, retries: 0}", StepFailure("unavailable", "Busy."), 1),
        ("{id: a, call: f}", StepFailure("raised", "No such file."), 1),
        ("{id: a, call: f}", StepFailure("incomplete", "f did not complete."), 1),
        ("{id: a, call: f, impact: 1}", StepFailure("unavailable", "Busy."), 1),
        ("{id: a, call: f, impact: 1, idempotent: true}", StepFailure("unavailable", "Busy."), 3),
        ("{id: a, agent: writer, task: Write.}", StepFailure("unavailable", "Busy."), 1),
    ],
)
def test_only_what_is_transient_and_safe_is_retried(step: str, outcome: StepFailure, attempts: int) -> None:
    runner = ScriptedRunner({"a": outcome})
    result = run(PlanEngine(read_plan(f"steps: [{step}]", id="p"), runner=runner, clock=VirtualClock()).run())
    assert len(runner.firings) == attempts == result.nodes["a"].attempts
    assert result.status == "failed"
    assert result.nodes["a"].rung == "retried"


def test_a_retry_waits_longer_each_time() -> None:
    runner = ScriptedRunner(
        {"a": [StepFailure("unavailable", "Busy."), StepFailure("unavailable", "Busy."), StepSuccess("ok")]}
    )
    plan = read_plan("steps: [{id: a, call: f}]", id="p")
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock(), limits=PlanLimits(backoff=2)).run())
    assert result.status == "concluded"
    assert result.seconds == pytest.approx(2 + 4)
    assert result.nodes["a"].attempts == 3
    assert result.nodes["a"].error == ""


def test_a_node_over_its_time_limit_is_stopped() -> None:
    runner = ScriptedRunner({}, {"a": 100, "b": 1})
    plan = read_plan("steps: [{id: a, call: f, timeout: 5, retries: 0}, {id: b, call: g}]", id="p")
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock()).run())
    assert runner.cancelled == ["a"]
    assert result.seconds == pytest.approx(5)
    assert result.nodes["a"].state == "failed"
    assert "longer than 5 seconds" in result.nodes["a"].error


def test_the_loser_of_a_race_is_stopped() -> None:
    plan = read_plan(
        """
        steps: [{id: a, call: f}, {id: b, call: f}, {id: c, call: f, after: [b]},
                {id: z, call: g, after: [a, b, c], join: any_of, refs: {x: {step: '*'}}}]
        """,
        id="p",
    )
    runner = ScriptedRunner({"a": StepSuccess("A")}, {"a": 1, "b": 50})
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock()).run())
    assert states(result) == {"a": "executed", "b": "skipped", "c": "skipped", "z": "executed"}
    assert runner.cancelled == ["b"]
    assert result.nodes["z"].output == {"x": "A"}
    assert result.status == "concluded"


def test_a_race_that_all_lose_fails() -> None:
    plan = read_plan(
        "steps: [{id: a, call: f}, {id: b, call: f}, {id: z, call: g, after: [a, b], join: any_of}]", id="p"
    )
    runner = ScriptedRunner({"a": StepFailure("raised", "no"), "b": StepFailure("raised", "no")})
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock()).run())
    assert states(result) == {"a": "failed", "b": "failed", "z": "failed"}
    assert result.status == "failed"


def test_writes_in_a_race_are_tried_one_after_the_other() -> None:
    plan = read_plan(
        """
        steps: [{id: a, call: f, impact: 1}, {id: b, call: f, impact: 1}, {id: c, call: f, impact: 1},
                {id: z, call: g, after: [a, b, c], join: any_of}]
        """,
        id="p",
    )
    runner = ScriptedRunner({"a": StepFailure("raised", "no")}, {"a": 1, "b": 1, "c": 1})
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock()).run())
    assert runner.fired == ["a", "b", "z"]
    assert states(result) == {"a": "failed", "b": "executed", "c": "skipped", "z": "executed"}


def test_two_writers_of_one_resource_never_run_together() -> None:
    steps = ", ".join(f"{{id: n{i:02}, call: f, writes: [db]}}" for i in range(20))
    runner = ScriptedRunner({}, {f"n{i:02}": 1 for i in range(20)})
    result = run(
        PlanEngine(read_plan(f"steps: [{steps}]", id="p"), runner=runner, clock=VirtualClock()).run()
    )
    assert result.seconds == pytest.approx(20)
    assert runner.most == 1
    assert runner.fired == [f"n{i:02}" for i in range(20)]


def test_the_concurrency_limit_holds_and_ids_give_the_order() -> None:
    steps = ", ".join(f"{{id: n{i:02}, call: f}}" for i in reversed(range(20)))
    runner = ScriptedRunner({}, {f"n{i:02}": 1 for i in range(20)})
    plan = read_plan(f"steps: [{steps}]", id="p")
    result = run(
        PlanEngine(plan, runner=runner, clock=VirtualClock(), limits=PlanLimits(concurrency=4)).run()
    )
    assert runner.most == 4
    assert result.seconds == pytest.approx(5)
    assert runner.fired == [f"n{i:02}" for i in range(20)]


def test_an_endpoint_gets_no_more_calls_than_its_rate() -> None:
    steps = ", ".join(f"{{id: n{i}, call: f}}" for i in range(6))
    functions = Functions.of(FunctionInfo("f", endpoint="web"))
    limits = PlanLimits(rates={"web": Rate(per_second=1, burst=2)})
    runner = ScriptedRunner()
    plan = read_plan(f"steps: [{steps}]", id="p")
    result = run(
        PlanEngine(plan, runner=runner, clock=VirtualClock(), limits=limits, catalogue=functions).run()
    )
    times = [record.started or 0.0 for record in result.nodes.values()]
    assert sorted(times) == pytest.approx([0, 0, 1, 2, 3, 4])


def test_a_person_is_waited_for_outside_the_nodes_own_time() -> None:
    async def asks(firing: Firing, waiting: Waiting) -> Outcome:
        waiting.waits_for_person()
        await asyncio.sleep(300)
        waiting.goes_on()
        return StepSuccess("approved")

    plan = read_plan("steps: [{id: a, call: f, timeout: 5}]", id="p")
    result = run(PlanEngine(plan, runner=ScriptedRunner({"a": asks}), clock=VirtualClock()).run())
    assert result.status == "concluded"
    causes = [one.cause for one in result.trail if isinstance(one, NodeChange)]
    assert causes == ["joined", "dispatched", "needs_human", "approved", "succeeded"]
    limits = PlanLimits(human_timeout=60)
    late = run(
        PlanEngine(plan, runner=ScriptedRunner({"a": asks}), clock=VirtualClock(), limits=limits).run()
    )
    assert late.nodes["a"].state == "failed"
    assert late.seconds == pytest.approx(60)


CHAIN = "steps: [{id: a, call: f}, {id: b, call: f, after: [a]}, {id: c, call: f, after: [b]}]"


def test_pause_and_resume() -> None:
    runner = ScriptedRunner({}, {"a": 1, "b": 1, "c": 1})

    async def scene() -> None:
        engine = PlanEngine(read_plan(CHAIN, id="p"), runner=runner, clock=VirtualClock())
        result = await drive(engine, (0.5, engine.pause), (10, engine.resume))
        assert [round(result.nodes[one].ended or 0, 3) for one in "abc"] == [1, 11, 12]
        assert result.status == "concluded"

    run(scene())


@pytest.mark.parametrize(("abort", "first"), [(False, "executed"), (True, "cancelled")])
def test_cancel_lets_running_nodes_finish_or_not(abort: bool, first: str) -> None:
    runner = ScriptedRunner({}, {"a": 1})

    async def scene() -> None:
        engine = PlanEngine(read_plan(CHAIN, id="p"), runner=runner, clock=VirtualClock())
        result = await drive(engine, (0.5, lambda: engine.cancel(abort=abort)))
        assert states(result) == {"a": first, "b": "cancelled", "c": "cancelled"}
        assert (result.status, result.verdict.by) == ("stopped", "person")
        assert result.verdict.reached == ("no" if abort else "partly")
        assert runner.active == 0

    run(scene())


def test_cancelling_the_task_leaves_nothing_running() -> None:
    runner = ScriptedRunner({}, {"a": 100})

    async def scene() -> None:
        engine = PlanEngine(read_plan(CHAIN, id="p"), runner=runner, clock=VirtualClock())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await engine.run()
        assert runner.cancelled == ["a"]
        assert len(asyncio.all_tasks()) == 1

    run(scene())


def test_the_bound_on_time_gives_a_partial_result() -> None:
    runner = ScriptedRunner({}, {"a": 1, "b": 100})
    limits = PlanLimits(wall_clock=10)
    result = run(
        PlanEngine(read_plan(CHAIN, id="p"), runner=runner, clock=VirtualClock(), limits=limits).run()
    )
    assert result.bound == "wall_clock"
    assert result.status == "partial"
    assert result.seconds == pytest.approx(10)
    assert "wall clock" in result.nodes["b"].error


def test_the_bound_on_tokens_ends_the_plan() -> None:
    runner = ScriptedRunner({"a": StepSuccess("x", tokens=50), "b": StepSuccess("x", tokens=60)})
    limits = PlanLimits(tokens=100)
    result = run(
        PlanEngine(read_plan(CHAIN, id="p"), runner=runner, clock=VirtualClock(), limits=limits).run()
    )
    assert result.bound == "tokens"
    assert result.tokens == 110
    assert runner.fired == ["a", "b"]


@pytest.mark.parametrize(
    ("contract", "output", "status", "holds"),
    [
        ("{non_empty: true}", "  ", 0, False),
        ("{non_empty: true}", "x", 0, True),
        ("{regex: '^v[0-9]+'}", "v12", 0, True),
        ("{regex: '^v[0-9]+'}", "12", 0, False),
        ("{exit_status: 3}", "", 3, True),
        ("{exit_status: 0}", "", 3, False),
        ("{schema: {type: object, required: [n], properties: {n: {type: integer}}}}", '{"n": 1}', 0, True),
        ("{schema: {type: object, required: [n], properties: {n: {type: integer}}}}", '{"n": "1"}', 0, False),
        ("{schema: {type: array}}", "no json", 0, False),
    ],
)
def test_a_node_executes_only_if_its_contract_holds(
    contract: str, output: str, status: int, holds: bool
) -> None:
    runner = ScriptedRunner({"a": StepSuccess(output, exit_status=status)})
    plan = read_plan(f"steps: [{{id: a, call: f, contract: {contract}}}]", id="p")
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock()).run())
    assert result.nodes["a"].state == ("executed" if holds else "failed")
    assert result.nodes["a"].validation == ("syntactic" if holds else "")


@pytest.mark.parametrize(
    ("reply", "holds"),
    [
        ('{"holds": true}', True),
        ('{"holds": false}', False),
        ("Yes.", True),
        ("Well, hm", False),
        (None, False),
    ],
)
def test_a_judged_contract_fails_closed(reply: str | None, holds: bool) -> None:
    asker = ScriptedAsker({"judge": [reply]} if reply is not None else {})
    plan = read_plan("steps: [{id: a, call: f, contract: {judgement: Is it polite?}}]", id="p")
    result = run(PlanEngine(plan, runner=ScriptedRunner(), asker=asker, clock=VirtualClock()).run())
    assert result.nodes["a"].state == ("executed" if holds else "failed")
    assert result.nodes["a"].validation == ("judged" if holds else "")


def test_a_failing_exit_status_breaks_the_plain_contract() -> None:
    runner = ScriptedRunner({"a": StepSuccess("x", exit_status=2)})
    result = run(
        PlanEngine(read_plan("steps: [{id: a, call: f}]", id="p"), runner=runner, clock=VirtualClock()).run()
    )
    assert result.nodes["a"].error == "The exit status is 2, not 0. Its output: x"


def test_every_event_reaches_the_observer_in_order() -> None:
    recorder = Recorder()
    runner = ScriptedRunner()
    plan = read_plan(BUG_FIX, id="p")
    result = run(PlanEngine(plan, runner=runner, clock=VirtualClock(), observer=recorder).run())
    assert tuple(recorder.events) == result.trail
