"""Plans in the tree: written by agents, run by the engine through the gate, recorded so that they verify and go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.core.tree.plan_report import plan_json
from tests.core.session.fakes import World, replies
from tests.core.session.plan_scenes import TWO, WRITTEN, ask, changes, heard, plan, researcher, runtime, until


def test_steps_run_in_order_and_the_summary_comes_back(tmp_path: Path) -> None:
    world = World()
    session, answer, records = ask(tmp_path, replies({"/": [plan(TWO), "Done."]}), world=world)
    assert answer.body == "Done."
    assert [text for _, _, text in world.done] == ["one", "<one>"]
    told = heard(session)
    assert "Message from your plan /audit, kept as $audit_1, with $a" in told
    assert "The plan concluded: 2 of 2 steps executed." in told
    assert "Result of b:\n<one>" in told
    assert session.state.agents["/"].table["b"].text() == "<one>"
    assert "inside:t.read" in session.state.agents["/"].table["b"].labels
    assert changes(records)[-1] == ("b", "executed")
    found = plan_json(session.state, session.state.agents["/audit"])
    assert found["path"] == "/audit"
    assert found["status"] == "concluded"
    assert found["versions"] == [{"version": 1, "parent": None, "reason": "planned", "nodes": ["a", "b"]}]


EIGHT = """\
goal: Eight steps, one of which fails
steps:
  - {id: s1, call: t.read, params: {text: one}}
  - {id: s2, call: t.read, params: {text: two}}
  - {id: s3, call: t.read, params: {text: three}}
  - {id: bad, call: t.fail, params: {text: four}}
  - {id: s5, call: t.write, params: {text: five}}
  - {id: s6, call: t.read, params: {text: six}, after: [s1, s2]}
  - {id: s7, call: t.read, params: {text: seven}, after: [s3]}
  - {id: s8, call: t.read, params: {text: eight}}
  - {id: last, call: t.read, params: {text: never}, after: [bad, s8]}
"""


def test_one_step_of_eight_fails(tmp_path: Path) -> None:
    """The seven results are kept, what depended on the failed step says so, and the caller gets one summary."""
    script = replies({"/": [plan(EIGHT), "Done."]})
    session, _, records = ask(
        tmp_path, script, answers={"A step failed.": ['{"skip": false}'], "Plan the": ["no"]}
    )
    told = heard(session)
    assert "The plan came back partial: 7 of 9 steps executed" in told
    assert "- bad (t.fail): failed: ValueError: it failed" in told
    assert "- last (t.read): skipped: It waited for what did not succeed: bad is failed." in told
    assert "Missing:\n- bad: " in told
    assert "\n- last: It waited for what did not succeed: bad is failed." in told
    assert {"s1", "s5", "s8"} <= session.state.agents["/"].table.keys()
    assert sum(one.kind == "reply" and one.agent == "/audit" for one in records) == 1


def test_agent_steps_are_children_with_dialogues(tmp_path: Path) -> None:
    world = World()
    session, _, _ = ask(tmp_path, replies(researcher()), world=world)
    child = heard(session, "/audit/researcher")
    assert "You are agent /audit/researcher, called by /audit." in child
    assert "You know CVEs." in child
    assert "with $kernel (text/plain, 3 B)" in child
    assert session.state.agents["/audit/researcher"].table["kernel"].labels == {"inside:t.read", "model"}
    assert "The goal of the plan: Ask somebody" in child, "a step knows what it is for"
    assert "- $cves (text/markdown, 25 B), from agent researcher: Find CVEs." in child
    before, task = child.split("And once more.")
    assert "$cves:\n```\nThree CVEs, see $write_1.\n```\nThe message:" in before, (
        "what is small stands before the task, as data"
    )
    assert "Three CVEs" not in task, "a task names what it builds on"
    assert "- $write_1 (text/plain, 4 B)\n" in task, "what its reader has is not shown again"
    assert [text for _, function, text in world.done if function == "t.write"] == ["note", "Still three."]
    assert "- again (agent researcher): executed, $again" in heard(session)
    tree = session.state
    assert tree.root.account.spent == sum(
        one.usage.prompt_tokens + one.usage.completion_tokens for one in tree.agents.values()
    )


NESTED = {
    "/": ["```CALL a\nTask.\n```", "Done."],
    "/a": [plan("steps: [{id: x, agent: b, task: Do it.}]"), "A done."],
    "/a/audit/b": [plan("steps: [{id: y, call: t.write, params: {text: deep}}]", "PLAN inner"), "B done."],
}


def test_plans_inside_agents_inside_plans(tmp_path: Path) -> None:
    world = World()
    session, answer, records = ask(tmp_path, replies(NESTED), world=world)
    assert answer.body == "Done."
    assert [text for _, _, text in world.done] == ["deep"]
    assert changes(records, "/a/audit/b/inner")[-1] == ("y", "executed")
    shapes = {view.path: view.kind for view in session.tree()}
    assert shapes["/a/audit"] == shapes["/a/audit/b/inner"] == "plan"
    assert shapes["/a/audit/b"] == "agent"


def test_a_planner_writes_the_steps_and_a_reflection_concludes(tmp_path: Path) -> None:
    answers = {
        "Plan the steps": [WRITTEN],
        "Judge the evidence": [
            '{"decision": "continue"}',
            '{"decision": "conclude", "answer": "All is well."}',
        ],
    }
    world = World()
    session, _, records = ask(
        tmp_path,
        replies({"/": [plan("goal: Find out", "PLAN mode=reflect"), "Done."]}),
        answers=answers,
        world=world,
    )
    assert [text for _, _, text in world.done] == ["one", "two"]
    assert "Result:\nAll is well." in heard(session)
    asked = [one for one in records if one.kind == "ask"]
    assert [one.text("question") for one in asked] == ["plan", "reflect", "reflect"]
    assert [one.agent for one in asked] == ["/plan"] * 3
    usage = session.state.agents["/plan"].usage
    assert usage.completion_tokens > 0
    assert (
        session.state.root.account.spent
        == session.state.usage().prompt_tokens + session.state.usage().completion_tokens
    )


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        (plan("steps: [{id: a, call: t.nothing}]"), "is not a function that you have"),
        (plan("steps: [{id: a, call: t.read}]"), "needs the parameter 'text'"),
        (plan("steps: [{id: a, call: t.read, params: {text: x}, after: [a]}]"), "waits for itself"),
        (plan("nonsense"), "a plan is a mapping"),
        (plan("goal: Say hello", "PLAN mode=odd"), "must be one of"),
        (plan("steps: [{id: a, call: t.read, params: {text: x}}]", 'PLAN scope="u.*"'), "is not a function"),
    ],
)
def test_a_plan_that_cannot_run_is_explained_and_leaves_no_trace(
    tmp_path: Path, block: str, sentence: str
) -> None:
    session, answer, _ = ask(tmp_path, replies({"/": [block, "Done."]}))
    assert "`PLAN` was not run: " in heard(session)
    assert sentence in heard(session)
    assert list(session.state.agents) == ["/"]
    assert answer.body == "Done."


def test_a_caller_is_told_that_a_planner_gave_no_steps(tmp_path: Path) -> None:
    session, _, _ = ask(
        tmp_path,
        replies({"/": [plan("goal: Say hello"), "Done."]}),
        answers={"Plan the steps": ["Shall I go on?", "1. Read both"]},
    )
    told = heard(session)
    assert "The plan failed without any step. Its goal is not reached. No step had a result." in told
    assert "Its steps were to come from a planner. Write them yourself, or work without a plan." in told
    assert "Steps:" not in told


def test_every_plan_has_a_path_of_its_own(tmp_path: Path) -> None:
    session, _, _ = ask(tmp_path, replies({"/": [plan(TWO), plan(TWO), "Done."]}))
    assert list(session.state.agents) == ["/", "/audit", "/audit-2"]


def test_a_grant_of_the_caller_binds_every_step(tmp_path: Path) -> None:
    """A step is denied like a call of a dialogue: it did not complete, and nothing says why."""
    world = World()
    body = "steps: [{id: a, call: t.destroy, params: {text: all}}]"
    session, _, records = ask(
        tmp_path,
        replies({"/": [plan(body), "Done."]}),
        world=world,
        answers={"A step": ["{}"], "Plan": ["no"]},
    )
    assert world.done == []
    gate = next(one for one in records if one.kind == "gate")
    assert (gate.agent, gate.fields["allow"], gate.text("by")) == ("/audit", False, "impact")
    assert "- a (t.destroy): failed: t.destroy did not complete." in heard(session)


# --- control ----------------------------------------------------------------------------------------------------


READ_AND_TOLD = """\
goal: Tell: what one and two are
steps:
  - {id: look, call: t.read, params: {text: one}}
  - {id: look2, call: t.read, params: {text: two}}
  - {id: tell, agent: teller, task: "Tell it.", refs: {report: {step: look}, part: {step: look, template: "It is {}"}}}
  - {id: tell2, agent: other, task: "Tell it.", refs: {report: {step: look2}}, after: [tell]}
  - {id: tell3, agent: third, task: "Tell it.", refs: {early: {step: look}, late: {step: look}}, after: [tell2]}
  - {id: tell4, agent: fourth, task: "Tell $word.", refs: {word: {step: look}}, after: [tell3]}
"""


def test_a_step_reads_each_value_once_and_the_report_only_its_result(tmp_path: Path) -> None:
    told_by = {
        "/audit/teller": ["It is told."],
        "/audit/other": ["It is told again."],
        "/audit/third": ["Told."],
        "/audit/fourth": ["Told again."],
    }
    session, _, _ = ask(tmp_path, replies({"/": [plan(READ_AND_TOLD), "Done."], **told_by}))
    first = heard(session, "/audit/teller")
    assert first.count("$report:\n```\none\n```") == 1
    assert "$report (text/plain, 3 B), from t.read" in first
    assert "$look" not in first
    assert "$part:\n```\nIt is one\n```" in first

    second = heard(session, "/audit/other")
    assert second.count("$look2:\n```\ntwo\n```") == 1
    assert ", your report" in second
    assert "$report" not in second, "in this plan, another value has that name"

    third = heard(session, "/audit/third")
    assert third.count("```\none\n```") == 1
    assert '$early (text/plain, 3 B), from t.read {"text": "one"}, your late' in third

    fourth = heard(session, "/audit/fourth")
    assert fourth.count("```\none\n```") == 1, "also if its task says the name"
    assert '$word (text/plain, 3 B), from t.read {"text": "one"}' in fourth

    told = heard(session)
    assert "Result of tell4:\nTold again." in told
    assert "- look (t.read): executed, $look" in told
    assert "$look:\n```" not in told, "what an inner step gave is named only"
    assert "$tell3:\n```" not in told, "the result stands in the report"
    assert session.state.agents["/"].table["look"].text() == "one"


ASKS = plan(
    "goal: Paint it\nsteps:\n  - {id: paint, agent: painter, task: Paint., timeout: 600}", "PLAN audit"
)
PAINTER = {"/": [ASKS, "Done."], "/audit/painter": ["Which colour?", "It is green."]}


def test_a_question_of_a_steps_agent_is_answered_from_what_is_known(tmp_path: Path) -> None:
    answers = {"A helper asks something": ['{"answer": "Green, as the person wrote."}']}
    session, _, records = ask(tmp_path, replies(PAINTER), answers=answers)
    assert "Green, as the person wrote." in heard(session, "/audit/painter")
    assert [state for node, state in changes(records) if node == "paint"] == [
        "ready", "running", "waiting_human", "running", "executed",
    ]  # fmt: skip
    assert session.state.agents["/"].table["paint"].text() == "It is green."
    asked = next(one for one in records if one.kind == "ask")
    assert asked.text("question") == "answer"


@pytest.mark.parametrize("answered", [True, False])
def test_a_question_that_only_the_person_can_answer_is_put_to_them(tmp_path: Path, answered: bool) -> None:
    answers = {"A helper asks something": '{"ask_person": true}', "A step failed.": "{}", "Plan the": "no"}

    async def go() -> Session:
        async with runtime(tmp_path, replies(PAINTER), answers=answers) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await until(lambda: session.state.forms)
            (number, form) = next(iter(session.state.forms.items()))
            assert form.message == "Which colour?"
            assert [one.title for one in form.fields] == ["Answer"]
            if answered:
                await session.answer_form(number, "accept", {"answer": "Green"})
            else:
                await session.answer_form(number, "decline")
            await session.answer(said.n)
            return session

    session = asyncio.run(go())
    replay(session.journal, verify=True)
    run = session.state.agents["/audit"].plan
    assert run is not None
    assert run.state.nodes["paint"].state == ("executed" if answered else "failed")
    assert ("Green" in heard(session, "/audit/painter")) == answered
    if not answered:
        assert run.state.nodes["paint"].error == "It asked something that nobody answered."


async def test_a_question_to_the_person_ends_with_its_plan(tmp_path: Path) -> None:
    answers = {"A helper asks something": '{"ask_person": true}'}
    async with runtime(tmp_path, replies(PAINTER), answers=answers) as opened:
        session = await opened.open()
        said = await session.say("Go")
        await until(lambda: session.state.forms)
        await session.cancel("/audit")
        await session.answer(said.n)
        await until(lambda: not session.state.forms)
    replay(session.journal, verify=True)


def test_a_result_that_ends_with_an_offer_is_a_result(tmp_path: Path) -> None:
    script = {"/": [ASKS, "Done."], "/audit/painter": ["It is green. Shall I paint the door, too?"]}
    answers = {"A helper asks something": ['{"is_result": true}']}
    session, _, _ = ask(tmp_path, replies(script), answers=answers)
    assert session.state.agents["/"].table["paint"].text() == "It is green. Shall I paint the door, too?"


def test_an_agent_that_asks_on_and_on_is_heard_three_times(tmp_path: Path) -> None:
    script = {"/": [ASKS, "Done."], "/audit/painter": ["Which colour?"] * 4}
    answers = {"A helper asks something": '{"answer": "Green."}'}
    session, _, records = ask(tmp_path, replies(script), answers=answers)
    assert sum(one.kind == "ask" for one in records) == 3
    assert session.state.agents["/"].table["paint"].text() == "Which colour?"


def test_an_agent_step_has_the_rights_that_it_states_and_is_told_its_functions(tmp_path: Path) -> None:
    steps = (
        "goal: Look\nsteps:\n"
        "  - {id: look, agent: reader, task: Look., intent: 0, scope: [t.read], tools: [t.read]}\n"
        "  - {id: more, agent: reader, task: Write., intent: 1, after: [look]}"
    )
    script = {"/": [plan(steps), "Done."], "/audit/reader": ["Seen."]}
    answers = {"A step failed.": "{}", "Plan the": "no"}
    session, _, _ = ask(tmp_path, replies(script), answers=answers)
    grant = session.state.grant_of("/audit/reader")
    assert grant.intent == 0
    assert grant.scope.contains("t.read")
    assert not grant.scope.contains("t.write")
    assert "Functions for it: t.read." in heard(session, "/audit/reader")
    run = session.state.agents["/audit"].plan
    assert run is not None
    assert "with other rights" in run.state.nodes["more"].error


def test_an_agent_that_tries_again_reads_what_the_first_left_and_not_how_it_failed(tmp_path: Path) -> None:
    steps = (
        "goal: Write\nsteps:\n"
        '  - {id: w, agent: writer, task: Write it., retries: 1, contract: {regex: "ready"}}'
    )
    script = {
        "/": [plan(steps), "Done."],
        "/audit/writer": ["```WRITE\nhalf\n```", "I could not end it."],
        "/audit/writer-2": ["It is ready."],
    }
    session, _, _ = ask(tmp_path, replies(script))
    second = heard(session, "/audit/writer-2")
    assert "I could not end it." not in second
    assert "Write it." in second
    assert session.state.agents["/"].table["w"].text() == "It is ready."


@pytest.mark.parametrize(
    "body",
    [
        "Look around, and say what is there",
        "goal: Look\nsteps:\n  - {id: one, call: t.read, params: {text: x}}",
    ],
)
def test_a_call_with_a_mode_opens_a_plan_under_its_name(tmp_path: Path, body: str) -> None:
    steps = "steps:\n  - {id: one, call: t.read, params: {text: x}}"
    script = {"/": [f"```CALL audit mode=static\n{body}\n```", "Done."]}
    session, _, _ = ask(tmp_path, replies(script), answers={"Plan the": [steps]})
    run = session.state.agents["/audit"].plan
    assert run is not None
    assert run.state.nodes["one"].state == "executed"
    assert run.source.goal == ("Look" if "steps" in body else body)
    assert "Result of `PLAN`" in heard(session) or "The plan concluded" in heard(session)


def test_a_call_without_a_mode_opens_a_dialogue(tmp_path: Path) -> None:
    script = {"/": ["```CALL audit\nLook in mode=static, please.\n```", "Done."], "/audit": ["Nothing."]}
    session, _, _ = ask(tmp_path, replies(script))
    assert session.state.agents["/audit"].plan is None
