"""What a model reads about a plan, and what is taken out of its answer."""

from __future__ import annotations

import pytest

from iact.core.plan import questions
from iact.core.plan.answers import DiagnosisAnswer, patch, plan_text
from iact.core.plan.briefing import Briefing, KnownValue
from iact.core.plan.commands import AskModel
from iact.core.plan.forms import read_plan, step_of
from iact.core.plan.machine import PlanMachine
from iact.core.plan.modes.registry import make_mode
from iact.core.plan.prompt import build
from iact.core.plan.protocol import ROLES, FunctionInfo, PlanQuestion
from iact.core.plan.questions import PlanSituation
from tests.core.plan.engine import PlanEngine
from tests.core.plan.fakes import Functions, ScriptedAsker, ScriptedRunner, VirtualClock, run

SEARCH = FunctionInfo(
    "files.search",
    "Search files\nwith a pattern.",
    schema={
        "properties": {
            "glob": {"type": "string", "default": ""},
            "most": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
            "kinds": {"type": "array", "items": {"enum": ["a", "b"]}},
            "pattern": {"type": "string"},
            "at": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["pattern"],
    },
    body="pattern",
)


def test_a_signature_says_what_must_be_given_first() -> None:
    assert questions.signature(SEARCH) == (
        'files.search(pattern: string (body), glob?: string, most: integer 1..9 = 5, kinds?: ["a" | "b"], '
        "at?: integer | null)"
    )
    assert questions.functions([SEARCH]).endswith("): Search files with a pattern.")
    assert questions.signature(FunctionInfo("f")) == "f()"


def test_a_planner_is_told_only_what_there_is() -> None:
    bare = build(questions.plan(PlanSituation("Look", infos=[SEARCH])))
    assert "What the caller demands" not in bare
    assert "What is known" not in bare
    assert "`model`" not in bare
    assert "The conversation" not in bare
    assert "word for word" not in bare
    known = [KnownValue("$a (text/plain, 2 B)", "ok")]
    briefing = Briefing("Monday, 2026-01-05", ["Be kind."], known, ["fast", "smart"])
    told = build(questions.plan(PlanSituation("Look", briefing, [SEARCH])))
    assert "- Be kind." in told
    assert "- $a (text/plain, 2 B): ok" in told
    assert "Today is Monday, 2026-01-05." in told
    assert "`simple: true`" in told


def test_a_goal_that_is_the_persons_message_is_not_said_twice() -> None:
    said = "Which hosts are in web.conf?"
    for goal, words, once in (
        (said, [said], True),
        ("Find hosts", [said], False),
        (said, [said, "And mail?"], False),
        (f"{said}{questions.FOLLOW_UP}And mail?", [said, "And mail?"], True),
    ):
        told = build(questions.plan(PlanSituation(goal, Briefing(words=words), [SEARCH])))
        assert ("Goal: what the person wrote." in told) is once
        assert told.count(said) == words.count(said) + (goal.startswith(said) and not once)


def test_a_planner_is_told_if_nobody_writes_an_answer_from_its_results() -> None:
    said = "Which hosts are in web.conf?"
    sentence = "the person reads what the last step returns"
    for goal, reports, is_told in ((said, False, True), (said, True, False), ("Find hosts", False, False)):
        situation = PlanSituation(goal, Briefing(words=[said]), [SEARCH], reports=reports)
        assert (sentence in build(questions.plan(situation))) is is_told
        assert (sentence in build(questions.replan(situation, "It failed."))) is is_told


@pytest.mark.parametrize("mode", ["static", "reflect", "nreflect", "orchestrator", "analyze"])
def test_only_static_has_nobody_who_writes_the_answer(mode: str) -> None:
    machine = PlanMachine(
        read_plan('{"goal": "Which hosts?"}', id="plan"),
        mode=make_mode(mode, {}),
        catalogue=Functions.of(SEARCH),
        asks=True,
        briefing=Briefing(words=["Which hosts?"]),
    )
    machine.begin(0.0)
    (command,) = machine.take()
    assert isinstance(command, AskModel)
    assert ("Nobody writes an answer afterwards" in command.question.text) is (mode == "static")


@pytest.mark.parametrize(
    "text",
    [
        "Sure! Here it is:\n\nsteps:\n  - {id: a, call: f}\n\nThis does it.",
        "```yaml\nsteps:\n- id: a\n  call: f\n```\nGood luck!",
        'Here:\n{"steps": [\n{"id": "a", "call": "f"}\n]}\nThat is all.',
        "goal: x\nsteps:\n- id: a\n  call: f\nDone.",
        "- {id: a, call: f}",
    ],
)
def test_what_is_said_around_a_plan_does_not_matter(text: str) -> None:
    assert list(read_plan(plan_text(text), id="p").nodes) == ["a"]


def test_a_step_is_written_as_it_is_read() -> None:
    text = """
steps:
  - {id: a, call: f, params: {x: 1}, contract: {regex: "^o", non_empty: true}, timeout: 3}
  - {id: b, agent: who, task: Do., role: a clerk, refs: {y: {step: a, field: z}}, simple: true}
"""
    nodes = read_plan(text, id="p").nodes
    assert nodes["b"].model == "fast"
    again = read_plan(str({"steps": [step_of(one) for one in nodes.values()]}), id="p").nodes
    assert dict(again) == dict(nodes)


def test_a_diagnosis_says_what_was_really_done() -> None:
    found = patch(
        '{"failure": "gone", "cause": "moved", "action": "replace", "confidence": "0.7", "steps": []}'
    )
    assert found.diagnosis == DiagnosisAnswer("gone", "moved", "give_up", 0.7), (
        "there is nothing in its place"
    )
    assert patch('{"skip": true, "cause": "useless"}').diagnosis == DiagnosisAnswer(
        "", "useless", "skip", 0.0
    )
    assert patch('{"skip": true}').diagnosis is None


def test_the_role_of_a_question_is_decided_when_it_is_put() -> None:
    asker = ScriptedAsker({"plan": ["steps: [{id: a, call: f, params: {n: 1}}]"]})
    plan = read_plan("goal: g", id="p")
    engine = PlanEngine(plan, runner=ScriptedRunner(), clock=VirtualClock(), asker=asker)
    run(engine.run())
    assert [one.role for one in asker.asked] == [ROLES["plan"]] == ["smart"]
    assert PlanQuestion("patch", "").role == ""


def test_parameters_are_corrected_a_bounded_number_of_times() -> None:
    strict = FunctionInfo("f", schema={"properties": {"n": {"type": "integer"}}, "required": ["n"]})
    asker = ScriptedAsker(
        {"plan": ["steps: [{id: a, call: f}]"], "correct": ["steps: [{id: a, call: f, params: {n: no}}]"]}
    )
    engine = PlanEngine(
        read_plan("goal: g", id="p"),
        runner=ScriptedRunner(),
        clock=VirtualClock(),
        asker=asker,
        catalogue=Functions.of(strict),
    )
    result = run(engine.run())
    assert result.status == "failed"
    assert asker.kinds[0] == "plan"
    assert len(asker.kinds) <= 1 + 2 + 1 + 2, (
        "two more tries at parameters, the shape once, and two at what that gave"
    )
