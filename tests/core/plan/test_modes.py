"""The modes: when they judge, what a verdict does, and how many model calls each may make at most."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from iact.core.plan.answers import WayOut
from iact.core.plan.briefing import Briefing
from iact.core.plan.forms import read_plan
from iact.core.plan.limits import PlanLimits
from iact.core.plan.machine import PlanMachine
from iact.core.plan.model import PlanNode
from iact.core.plan.modes.analyze import Analyze
from iact.core.plan.modes.auto import TABLE, Features, choose, choose_by_form, choose_for
from iact.core.plan.modes.base import Mode
from iact.core.plan.modes.nreflect import NReflect
from iact.core.plan.modes.orchestrator import Orchestrator
from iact.core.plan.modes.reflect import Reflect
from iact.core.plan.modes.static import Static
from iact.core.plan.protocol import FunctionInfo, StepFailure, StepSuccess
from iact.core.plan.state import NodeChange
from iact.core.plan.validate import levels
from iact.core.plan.verdict import NOT_BY_PERSON
from tests.core.plan.engine import PlanEngine
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
from tests.core.plan.mode_scenes import GO_ON, WAVES, made, started
from tests.core.plan.random_plans import random_scene, run_scene


def test_reflect_gates_each_wave_behind_the_verdict() -> None:
    asker = ScriptedAsker({"reflect": [GO_ON, GO_ON, '{"decision": "conclude", "answer": "42"}']}, seconds=1)
    runner = ScriptedRunner({}, {"a": 1, "b": 5, "c": 1, "d": 1})
    result = run(made(Reflect(), asker, runner).run())
    assert asker.kinds == ["reflect"] * 3
    assert started(result)["c"] == pytest.approx(6), "b holds the wave, the reflection takes a second"
    assert started(result)["d"] == pytest.approx(8)
    assert result.status == "concluded"
    assert result.result == "42"
    assert [c.cause for c in result.trail if isinstance(c, NodeChange) and c.node == "c"] == [
        "joined", "gated", "released", "joined", "dispatched", "succeeded"
    ]  # fmt: skip


def test_a_conclusion_skips_the_rest() -> None:
    asker = ScriptedAsker({"reflect": ['{"decision": "conclude", "answer": "enough", "reason": "seen"}']})
    result = run(made(Reflect(), asker).run())
    assert states(result) == {
        "a": "executed",
        "b": "executed",
        "c": "skipped",
        "d": "skipped",
        "reflection-1": "executed",
    }
    assert (result.status, result.result) == ("concluded", "enough")


@pytest.mark.parametrize(
    ("instead", "reached", "missing"),
    [
        ("{id: signed, call: f}", "partly", NOT_BY_PERSON),
        ('{id: again, by: person, task: "Sign it, please."}', "yes", None),
    ],
)
def test_what_a_person_was_to_do_is_missing_if_only_a_model_did_it(
    instead: str, reached: str, missing: str | None
) -> None:
    text = """
        goal: Have it signed
        steps: [{id: read, call: f}, {id: sign, by: person, task: "Sign it.", after: [read]}]
    """
    asker = ScriptedAsker(
        {
            "reflect": [
                '{"decision": "replan", "reason": "nobody there"}',
                '{"decision": "conclude", "reached": true}',
            ],
            "replan": [f"steps: [{instead}]"],
        }
    )
    plan = read_plan(text, id="p")
    runner = ScriptedRunner()
    engine = PlanEngine(plan, runner=runner, clock=VirtualClock(), asker=asker, mode=Reflect())
    result = run(engine.run())
    assert states(result)["sign"] == "cancelled"
    assert result.verdict.reached == reached
    assert (result.verdict.missing or {}).get("sign") == missing


def test_a_replan_keeps_what_is_done() -> None:
    asker = ScriptedAsker(
        {
            "reflect": ['{"decision": "replan", "reason": "need ports"}', '{"decision": "conclude"}'],
            "replan": ["steps: [{id: ports, call: f, refs: {x: {step: a}}}]"],
        }
    )
    result = run(made(Reflect(), asker).run())
    assert asker.kinds == ["reflect", "replan", "reflect", "synthesize"]
    assert states(result)["c"] == "cancelled"
    assert result.nodes["ports"].output == {"x": "a"}
    assert result.nodes["a"].version == 1
    assert "replan: need ports" in [one.reason for one in result.versions]


def test_a_reflection_names_the_steps_that_are_not_needed() -> None:
    named = '{"decision": "continue", "not_needed": [{"id": "d", "why": "c says it"}, {"id": "nobody"}]}'
    asker = ScriptedAsker({"reflect": [named, GO_ON]})
    result = run(made(Reflect(), asker).run())
    assert states(result)["d"] == "cancelled"
    assert result.nodes["d"].error == "Not needed any more: c says it"
    assert states(result)["c"] == "executed"


def test_a_step_that_the_person_asked_for_is_not_left_out() -> None:
    asker = ScriptedAsker({"reflect": ['{"decision": "continue", "not_needed": {"b": "a has it"}}', GO_ON]})
    plan = read_plan("steps: [{id: a, call: f}, {id: b, call: f, params: {path: b.txt}, after: [a]}]", id="p")
    machine = PlanMachine(plan, mode=Reflect(), asks=True, briefing=Briefing(words=["Read a.txt and B.txt."]))
    machine.begin(0.0)
    machine.attempt_ended("a", StepSuccess("x"), 1.0)
    machine.answered(1, asker.replies["reflect"][0], "", 2.0)
    assert machine.run.state.nodes["b"].state == "running"
    assert "the person asked for it" in machine.run.warnings[0]


@pytest.mark.parametrize(
    ("reply", "kind", "text"),
    [
        ("nothing to do: It is there: a.txt.", "nothing to do", "It is there: a.txt."),
        ("```\nask the person: Which of the two?\n```", "ask the person", "Which of the two?"),
        (
            "I can't.\n\n**It can’t be done**: there is no printer.",
            "it can't be done",
            "there is no printer.",
        ),
    ],
)
def test_a_planner_can_answer_without_steps(reply: str, kind: str, text: str) -> None:
    asker = ScriptedAsker({"plan": [reply]})
    engine = PlanEngine(
        read_plan("goal: Look", id="p"), runner=ScriptedRunner(), clock=VirtualClock(), asker=asker
    )
    result = run(engine.run())
    assert asker.kinds == ["plan"], "it is not asked for a correction"
    assert engine.machine.run.way_out == WayOut(kind, text)  # type: ignore[arg-type]
    assert result.result == text


@pytest.mark.parametrize("question", ["reflect", "observe", "patch"])
def test_whoever_judges_or_repairs_can_ask_the_person(question: str) -> None:
    said = '{"decision": "continue", "instead": "ask the person", "say": "Which printer?"}'
    asker = ScriptedAsker({question: [said]})
    outcomes = {"a": StepFailure("raised", "no")} if question == "patch" else {}
    runner = ScriptedRunner(outcomes, dict.fromkeys("abcd", 1))
    mode = {"reflect": Reflect(), "observe": Orchestrator(), "patch": Static()}[question]
    engine = made(mode, asker, runner)
    result = run(engine.run())
    assert engine.machine.run.way_out == WayOut("ask the person", "Which printer?")
    assert result.result == "Which printer?"
    assert result.status != "concluded"
    assert set(asker.kinds) == {question}, "nothing more is asked"


def test_nreflect_does_not_hold_running_branches() -> None:
    asker = ScriptedAsker({"reflect": [GO_ON]}, seconds=10)
    runner = ScriptedRunner({}, dict.fromkeys("abcd", 1))
    result = run(made(NReflect(2), asker, runner).run())
    assert started(result)["c"] == pytest.approx(1)
    assert started(result)["d"] == pytest.approx(2)
    assert asker.kinds == ["reflect", "reflect", "synthesize"]


def test_orchestrator_observers_inject_cancel_and_ask_for_reflection() -> None:
    asker = ScriptedAsker(
        {
            "observe": [
                '{"action": "inject", "steps": [{"id": "e", "call": "f", "after": ["a"]}]}',
                '{"action": "cancel", "cancel": ["d"]}',
                '{"action": "continue"}',
            ],
            "reflect": ['{"decision": "conclude"}'],
        }
    )
    runner = ScriptedRunner({}, {"a": 1, "b": 2, "c": 5})
    result = run(made(Orchestrator(), asker, runner).run())
    assert states(result)["e"] == "executed"
    assert result.nodes["e"].node.spawned_by == "a"
    assert states(result)["d"] == "cancelled"
    assert asker.kinds.count("observe") == 3, "after the last step, the reflection sees its result"
    assert asker.kinds[-2:] == ["reflect", "synthesize"]


FOUR = """
goal: g
steps: [{id: a, call: f}, {id: b, call: f}, {id: c, call: f}, {id: d, call: f, after: [a, b, c]}]
"""


def observed(asker: ScriptedAsker) -> list[str]:
    """The first line of each question that an observer was asked."""
    return [one.text.split("\n")[0] for one in asker.asked if one.kind == "observe"]


@pytest.mark.parametrize(
    ("seconds", "questions"),
    [
        ({"a": 1, "b": 1, "c": 1, "d": 9}, ["Look at results on the way to a goal: a, b, c."]),
        ({"a": 1, "b": 1.2, "c": 9, "d": 9}, ["Look at results on the way to a goal: a, b."]),
        (
            {"a": 1, "b": 2, "c": 9, "d": 9},
            ["Look at one result on the way to a goal: a.", "Look at one result on the way to a goal: b."],
        ),
        ({"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.1}, []),
    ],
)
def test_results_of_a_moment_have_one_observer(seconds: dict[str, float], questions: list[str]) -> None:
    asker = ScriptedAsker({"observe": ['{"action": "continue"}'], "reflect": ['{"decision": "conclude"}']})
    result = run(made(Orchestrator(), asker, ScriptedRunner({}, seconds), FOUR).run())
    # c ends last of three, and then only d is left, or nothing: the reflection at the end sees both.
    assert observed(asker)[: len(questions)] == questions
    assert asker.kinds.count("reflect") == 1
    assert result.status == "concluded"


def test_an_observer_of_several_results_says_what_follows_on_which() -> None:
    steps = '[{"id": "e", "call": "f", "after": ["b"]}, {"id": "x", "call": "f"}]'
    inject = f'{{"action": "inject", "steps": {steps}}}'
    asker = ScriptedAsker(
        {"observe": [inject, '{"action": "continue"}'], "reflect": ['{"decision": "conclude"}']}
    )
    result = run(made(Orchestrator(), asker, ScriptedRunner({}, dict.fromkeys("abcd", 1)), FOUR).run())
    assert (result.nodes["e"].node.spawned_by, result.nodes["x"].node.spawned_by) == ("b", "a")
    assert "inject: after the results of a, b, c" in [one.reason for one in result.versions]


def test_a_reflection_that_an_observer_asks_for_happens() -> None:
    """At once if the bound allows it, or else in the place of the next observer."""
    reflect = '{"action": "reflect", "reason": "b contradicts a"}'
    asker = ScriptedAsker({"observe": [reflect], "reflect": ['{"decision": "conclude"}']})
    run(made(Orchestrator(), asker, ScriptedRunner({}, dict.fromkeys("abcd", 1)), FOUR).run())
    assert asker.kinds[:2] == ["observe", "reflect"], "three results left room for it"

    asker = ScriptedAsker({"observe": [reflect], "reflect": [GO_ON, '{"decision": "conclude"}']})
    runner = ScriptedRunner({}, {"a": 1, "b": 5, "c": 5, "d": 5})
    run(made(Orchestrator(), asker, runner).run())
    assert asker.kinds[:2] == ["observe", "reflect"], "the second result is what the reflection sees, too"
    assert "## a: f" in asker.asked[1].text
    assert "## b: f" in asker.asked[1].text


def test_a_failed_step_is_repaired_by_the_ladder_alone() -> None:
    """It has no observer of its own; beside others it is seen as under repair, and what would repair it is refused."""
    again = '[{"id": "mine", "call": "f", "replaces": "a"}]'
    asker = ScriptedAsker(
        {
            "observe": [f'{{"action": "inject", "steps": {again}}}', '{"action": "continue"}'],
            "patch": ['{"steps": [{"id": "a2", "call": "f"}]}'],
            "reflect": ['{"decision": "conclude"}'],
        },
        seconds=2,
    )
    runner = ScriptedRunner({"a": StepFailure("raised", "no")}, dict.fromkeys(["a", "b", "c", "d", "a2"], 1))
    result = run(made(Orchestrator(), asker, runner, FOUR).run())
    assert asker.kinds[:2] == ["patch", "observe"]
    question = asker.asked[1].text
    assert question.startswith("Look at results on the way to a goal: a, b, c.")
    assert "## a: f\n(it is being repaired)\nError: no" in question
    assert "mine" not in result.nodes
    assert [one for one in result.warnings if "mine would repair what failed" in one]
    assert result.nodes["a2"].state == "executed"

    alone = ScriptedAsker({"patch": ['{"steps": [{"id": "a2", "call": "f"}]}'], "reflect": [GO_ON]})
    runner = ScriptedRunner({"a": StepFailure("raised", "no")}, {"a": 1, "b": 9, "c": 9, "d": 1, "a2": 5})
    run(made(Orchestrator(), alone, runner, FOUR).run())
    assert "Look at one result on the way to a goal: a." not in observed(alone)
    assert "Look at one result on the way to a goal: a2." in observed(alone)


@pytest.mark.parametrize("name", ["reflect", "nreflect", "orchestrator", "analyze"])
def test_model_calls_stay_within_the_bound_of_each_mode(name: str) -> None:
    """Beside the ladder's patches, corrections and judged contracts, which have bounds of their own."""
    makes: dict[str, Callable[[], Mode]] = {
        "reflect": Reflect, "nreflect": lambda: NReflect(2), "orchestrator": Orchestrator, "analyze": lambda: Analyze(3)
    }  # fmt: skip
    busiest = 0
    for seed in range(400):
        scene = random_scene(seed, controls=False)
        scene.limits = PlanLimits(wall_clock=None)
        result, asker = run_scene(scene, makes[name], seed)
        work = {one: r.node for one, r in result.nodes.items() if r.node.kind in ("tool", "agent")}
        ended = {one for one in work if result.nodes[one].state in ("executed", "failed")}
        depth = 1 + max((levels(work)[one] for one in ended), default=0)
        count = {kind: asker.kinds.count(kind) for kind in set(asker.kinds)}
        judged = sum(count.get(kind, 0) for kind in ("plan", "observe", "reflect", "replan", "analyze"))
        busiest = max(busiest, judged)
        if name == "orchestrator":
            assert judged <= len(ended) + depth + 1
        elif name == "reflect":
            assert count.get("reflect", 0) <= depth + count.get("replan", 0) + count.get("patch", 0)
        elif name == "nreflect":
            assert count.get("reflect", 0) <= len(ended) // 2 + 1 + count.get("replan", 0) + count.get(
                "patch", 0
            )
        else:
            assert count.get("analyze", 0) <= 3
            assert count.get("replan", 0) <= 2
            assert count.get("synthesize", 0) <= 1
    assert busiest >= 3, "the bound was really tried"


# --- analyze -----------------------------------------------------------------------------------------


def no(confidence: float = 0.1) -> str:
    return json.dumps(
        {"achieved": False, "confidence": confidence, "reasoning": "not yet", "final_answer": None}
    )


YES = json.dumps(
    {"achieved": True, "confidence": 0.9, "reasoning": "all there", "final_answer": "short answer"}
)
MORE = ["steps: [{id: m, call: f}]"]


REACHED = json.dumps({"achieved": True, "confidence": 0.9, "reasoning": "all there"})


def test_what_is_answered_already_is_not_reported_once_more() -> None:
    asker = ScriptedAsker({"analyze": [YES]})
    result = run(made(Analyze(3), asker).run())
    assert asker.kinds == ["analyze"], "the analysis wrote the answer itself"
    assert result.result == json.loads(YES)["final_answer"]

    text = "steps: [{id: a, call: f}, {id: w, agent: writer, task: Write the answer., after: [a]}]"
    asker = ScriptedAsker({"analyze": [REACHED], "reflect": [GO_ON, '{"decision": "conclude"}']})
    runner = ScriptedRunner({"w": StepSuccess("It is 42.")})
    engine = PlanEngine(
        read_plan(text, id="p"), runner=runner, clock=VirtualClock(), asker=asker, mode=Reflect()
    )
    result = run(engine.run())
    assert asker.kinds == ["reflect", "reflect"], "an agent wrote it"
    assert result.result == "It is 42."


def test_analyze_replans_until_achieved_and_synthesizes_as_a_stream() -> None:
    asker = ScriptedAsker(
        {"analyze": [no(), REACHED], "replan": MORE, "synthesize": ["The answer is 42."]}, pieces=3
    )
    recorder = Recorder()
    plan = read_plan(WAVES, id="p")
    engine = PlanEngine(
        plan, runner=ScriptedRunner(), clock=VirtualClock(), asker=asker, mode=Analyze(3), observer=recorder
    )
    result = run(engine.run())
    assert asker.kinds == ["analyze", "replan", "analyze", "synthesize"]
    assert result.result == "The answer is 42."
    streamed = [text for kind, text in recorder.text if kind == "synthesize"]
    assert len(streamed) > 3
    assert "".join(streamed) == "The answer is 42."


@pytest.mark.parametrize(("replies", "analyses"), [([no()], 3), ([no(0.8)], 1), (["garbage"], 3)])
def test_analyze_stops_with_its_rounds_or_with_confidence(replies: list[str], analyses: int) -> None:
    asker = ScriptedAsker({"analyze": replies, "replan": MORE})
    result = run(made(Analyze(3), asker).run())
    assert asker.kinds.count("analyze") == analyses
    assert asker.kinds[-1] == "synthesize", "what there is is reported, whether or not the goal was reached"
    assert "The goal was not reached." in asker.asked[-1].text
    assert "a: a" in str(result.result), "nobody could report it"
    assert (result.status, result.to_json()["achieved"]) == ("partial", False)
    verdict = result.verdict
    if "not yet" in replies[0]:
        assert (verdict.reached, verdict.because, verdict.by) == ("no", "not yet", "judge")
    else:
        assert (verdict.reached, verdict.by) == ("unknown", "nobody")


@pytest.mark.parametrize("mode", [Reflect, NReflect, Orchestrator, Analyze])
def test_a_report_ends_every_mode_that_judges(mode: Callable[[], Mode]) -> None:
    replies = {"reflect": ['{"decision": "conclude"}'], "analyze": [no(0.9)], "synthesize": ["All is well."]}
    asker = ScriptedAsker(replies, pieces=3)
    recorder = Recorder()
    engine = PlanEngine(
        read_plan(WAVES, id="p"), runner=ScriptedRunner(), clock=VirtualClock(), asker=asker, mode=mode(),
        observer=recorder,
    )  # fmt: skip
    assert run(engine.run()).result == "All is well."
    assert asker.kinds.count("synthesize") == 1
    assert len([text for kind, text in recorder.text if kind == "synthesize"]) > 3, "it is streamed"
    assert "in the language of the goal" in asker.asked[-1].text


@pytest.mark.parametrize("mode", [Reflect, NReflect, Orchestrator, Analyze])
def test_a_report_can_be_switched_off(mode: Callable[[], Mode]) -> None:
    asker = ScriptedAsker({"reflect": ['{"decision": "conclude"}'], "analyze": [YES]})
    engine = PlanEngine(
        read_plan(WAVES, id="p"), runner=ScriptedRunner(), clock=VirtualClock(), asker=asker, mode=mode(),
        limits=PlanLimits(report=False),
    )  # fmt: skip
    assert run(engine.run()).status == "concluded"
    assert "synthesize" not in asker.kinds


def test_a_conclusion_that_brings_its_answer_needs_no_report() -> None:
    asker = ScriptedAsker({"reflect": ['{"decision": "conclude", "answer": "42"}'], "synthesize": ["43"]})
    assert run(made(Reflect(), asker).run()).result == "42"


def test_a_synthesis_that_fails_falls_back_on_the_analysis() -> None:
    result = run(made(Analyze(3), ScriptedAsker({"analyze": [YES]})).run())
    assert result.result == "short answer"


@pytest.mark.parametrize("rounds", [1, 3])
def test_an_interjection_always_replans_and_costs_no_round(rounds: int) -> None:
    async def scene() -> None:
        asker = ScriptedAsker({"analyze": [no()], "replan": MORE})
        runner = ScriptedRunner({}, {"a": 1, "b": 1})
        engine = made(Analyze(rounds), asker, runner)
        result = await drive(engine, (0.5, lambda: engine.interject("Also the ports, please.")))
        assert asker.kinds[:3] == ["word", "interject", "replan"], "first whether the person wants it to end"
        assert "[User follow-up]: Also the ports, please." in asker.asked[2].text
        assert asker.kinds.count("analyze") == rounds
        assert asker.kinds.count("replan") == rounds
        assert states(result)["a"] == "executed"

    run(scene())


@pytest.mark.parametrize(
    ("text", "achieved", "confidence"),
    [
        (YES, True, 0.9),
        (f"Sure!\n```json\n{YES}\n```", True, 0.9),
        ('{"achieved": true, "confidence": 0.7, "reasoning": "he said "hi""', True, 0.7),
        ("achieved: yes\nconfidence: 2\nreasoning: x", True, 1.0),
        ("I think so", False, 0.0),
        ("", False, 0.0),
        ('{"achieved": "no", "confidence": "NaN"}', False, 0.0),
    ],
)
def test_an_analysis_is_read_tolerantly(text: str, achieved: bool, confidence: float) -> None:
    from iact.core.plan.answers import analysis

    found = analysis(text)
    assert (found.achieved, found.confidence) == (achieved, confidence)


# --- interjection --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "ends"),
    [
        (GO_ON, {"c": "executed", "d": "executed"}),
        ('{"decision": "conclude", "answer": "stop here"}', {"c": "skipped", "d": "skipped"}),
        ('{"decision": "replan"}', {"c": "cancelled", "d": "cancelled", "m": "executed"}),
    ],
)
def test_an_interjection_blocks_what_has_not_started_until_its_verdict(
    reply: str, ends: dict[str, str]
) -> None:
    async def scene() -> None:
        asker = ScriptedAsker({"interject": [reply], "replan": MORE}, seconds=2)
        runner = ScriptedRunner({}, {"a": 1, "b": 3})
        engine = made(Mode(), asker, runner)
        seen: dict[str, str] = {}
        look = (2.5, lambda: seen.update((one, r.state) for one, r in engine.state.nodes.items()))
        result = await drive(engine, (0.5, lambda: engine.interject("Wait: only port 22.")), look)
        assert seen == {
            "a": "executed",
            "b": "running",
            "c": "blocked",
            "d": "blocked",
            "interjection-1": "ready",
        }
        assert {one: states(result)[one] for one in ends} == ends
        assert "Wait: only port 22." in asker.asked[0].text
        assert result.nodes["interjection-1"].started == pytest.approx(3)
        ended_by_person = "conclude" in reply
        assert result.status == ("stopped" if ended_by_person else "concluded")
        assert (result.verdict.outcome == "stopped") == ended_by_person

    run(scene())


# --- planning ------------------------------------------------------------------------------------------


def test_steps_start_while_the_plan_is_still_being_written() -> None:
    """One step every 200 ms: each starts when it is complete, the whole ends when the critical path allows."""
    lines = [f"  - {{id: s{i}, call: f, after: [{f's{i - 3}' if i >= 3 else ''}]}}\n" for i in range(10)]
    head = "goal: g\nsteps:\n"

    class Writer(ScriptedAsker):
        pass

    asker = Writer({"plan": [head + "".join(line.ljust(60).replace("\n", "") + "\n" for line in lines)]})
    asker.pieces, asker.seconds = 61, 0.2
    text = asker.replies["plan"][0]
    runner = ScriptedRunner({}, {f"s{i}": 0.5 for i in range(10)})
    engine = PlanEngine(read_plan("goal: g", id="p"), runner=runner, clock=VirtualClock(), asker=asker)
    result = run(engine.run())
    assert result.status == "concluded"
    ready = {f"s{i}": 0.2 * (text.index("}", text.index(f"id: s{i},")) // 61 + 1) for i in range(10)}
    best: dict[str, float] = {}
    for i in range(10):
        begin = max(ready[f"s{i}"], best.get(f"s{i - 3}", 0.0))
        assert result.nodes[f"s{i}"].started == pytest.approx(begin, abs=0.001)
        best[f"s{i}"] = begin + 0.5
    assert result.seconds == pytest.approx(max(best.values()), abs=0.001)


def test_the_planner_corrects_itself_once() -> None:
    functions = Functions.of(FunctionInfo("f"))
    asker = ScriptedAsker({"plan": ["steps: [{id: a, call: g}]"], "correct": ["steps: [{id: a, call: f}]"]})
    plan = read_plan("goal: g", id="p")
    result = run(
        PlanEngine(
            plan, runner=ScriptedRunner(), clock=VirtualClock(), asker=asker, catalogue=functions
        ).run()
    )
    assert asker.kinds == ["plan", "correct"]
    assert "'g', which is not a function" in asker.asked[1].text
    assert result.status == "concluded"
    wrong = ScriptedAsker({"plan": ["nonsense"], "correct": ["nonsense"]})
    lost = run(
        PlanEngine(
            plan, runner=ScriptedRunner(), clock=VirtualClock(), asker=wrong, catalogue=functions
        ).run()
    )
    assert wrong.kinds == ["plan", "correct"]
    assert lost.status == "failed"


def test_a_plan_that_an_agent_is_writing_starts_as_it_grows() -> None:
    runner = ScriptedRunner({}, {"a": 1})
    text = "steps:\n  - {id: a, call: f}\n  - {id: b, call: f, after: [a, c]}\n  - {id: c, call: f}\n"
    at = text.index("}") + 1

    async def scene() -> None:
        engine = PlanEngine(read_plan("goal: g", id="p"), runner=runner, clock=VirtualClock(), growing=True)
        result = await drive(
            engine,
            (1, lambda: engine.write(text[:at])),
            (5, lambda: engine.write(text[at:])),
            (6, engine.written),
        )
        assert {one: r.started for one, r in result.nodes.items()} == pytest.approx({"a": 1, "b": 5, "c": 5})
        assert result.status == "concluded"

    run(scene())


# --- profile -------------------------------------------------------------------------------------------

# --- auto ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("like", "way"),
    [
        ({"steps": 0}, "dialogue"),
        ({"steps": 1}, "dialogue"),
        ({"steps": 2}, "dialogue"),
        ({"steps": 3}, "profile"),
        ({"steps": 2, "branches": True}, "profile"),
        ({"steps": 4, "depends": True}, "dialogue"),
        ({"steps": 4, "depends": True, "foreseeable": False, "branches": True}, "dialogue"),
        ({"steps": 4, "foreseeable": False}, "reflect"),
        ({"steps": 1, "repeat": True}, "analyze"),
    ],
)
def test_auto_goes_by_what_a_request_is_like_with_a_reason(like: dict[str, int | bool], way: str) -> None:
    plain = {"foreseeable": True, "depends": False, "repeat": False, "branches": False}
    choice = choose(Features.model_validate(plain | like))
    assert choice.way == way, choice
    assert choice.why.endswith(".")


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("a.txt b.txt c.txt", "profile"),
        ("a.txt b.txt c.txt?", "dialogue"),
        ("a.txt，b.txt？", "dialogue"),
        ("Сделай:\n- раз\n- два\n- три", "profile"),
        ("https://a.example/x https://b.example https://c.example", "profile"),
        ("https://a.example/x.html/y.pdf", "dialogue"),
        ("1.5 2.5 3.5", "dialogue"),
        ("Investigate the crash, compare all logs, then report", "dialogue"),
        ("", "dialogue"),
    ],
)
def test_where_nobody_understands_a_request_only_its_form_counts(text: str, way: str) -> None:
    assert choose_by_form(text).way == way


def test_a_way_that_failed_too_often_leads_to_the_dialogue() -> None:
    like = Features(steps=5, foreseeable=True, depends=False, repeat=False, branches=False)
    assert choose(like, {"foreseeable": 0.5}).way == "profile"
    assert choose(like, {"branches": 1.0, "repeat": 1.0}).way == "profile"
    assert choose(like, {"foreseeable": 0.51}).way == "dialogue"
    assert "In 51% of your sessions" in choose(like, {"foreseeable": 0.51}).why
    rows = [row.name for row in TABLE if row.way != "dialogue"]
    assert all(rows)
    assert len(set(rows)) == len(rows)


def test_a_plan_in_auto_goes_by_its_steps() -> None:
    told = PlanNode("b", kind="agent", call="x", task="t")
    assert choose_for([PlanNode("a", call="f"), told])[0] == "static"
    assert choose_for([told, PlanNode("c", call="f", after=("b",))])[0] == "reflect"
    assert choose_for([])[0] == "profile"
