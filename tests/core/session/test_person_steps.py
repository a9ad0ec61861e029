"""Steps of a plan that are the person's: they do one, or accept what one gave; nobody does it in their place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from iact.core.records.form_values import FormField
from iact.core.records.forms import FormAsk
from iact.core.session.monitor import Authorities
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.core.tree.plan_run import PlanRun
from iact.core.views.question_text import schema_of
from tests.core.session.fakes import World, replies
from tests.core.session.plan_scenes import changes, heard, plan, runtime, until

SIGN = """\
goal: Have the contract signed
steps:
  - {id: read, call: t.read, params: {text: "Clause 7: rent is 900"}}
  - {id: sign, by: person, task: "Sign the contract.", refs: {clause: {step: read, field: stdout}}}
  - {id: file, call: t.write, refs: {text: {step: sign, template: "signed: {}"}}}
"""

DRAFT = """\
goal: Send a letter
steps:
  - {id: draft, call: t.write, params: {text: "Dear all"}, contract: {by: person, judgement: "Is the tone right?"}}
  - {id: send, call: t.write, params: {text: sent}, after: [draft]}
"""
PATCH = '{"cause": "It is stiff.", "steps": [{"id": "anew", "call": "t.write", "params": {"text": "Good morning"}}]}'


async def form_of(session: Session) -> tuple[int, FormAsk]:
    """The question that is put to the person next."""
    await until(lambda: session.state.forms)
    return next(iter(session.state.forms.items()))


def run_of(session: Session) -> PlanRun:
    run = session.state.agents["/audit"].plan
    assert run is not None
    return run


def states(session: Session) -> dict[str, str]:
    return {one: record.state for one, record in run_of(session).state.nodes.items()}


async def test_a_person_does_a_step_and_what_they_write_is_its_result(tmp_path: Path) -> None:
    world = World()
    async with runtime(tmp_path, replies({"/": [plan(SIGN), "Done."]}), world=world) as opened:
        session = await opened.open()
        said = await session.say("Go")
        number, asked = await form_of(session)
        assert asked.message == "Sign the contract.\n\nclause: Clause 7: rent is 900"
        assert states(session)["sign"] == "waiting_human"
        assert [text for _, _, text in world.done] == ["Clause 7: rent is 900"]
        assert run_of(session).due is None, (
            "the plan's time stands still while all that is left is the person's"
        )

        await session.answer_form(number, "accept", {"answer": "on 3 May"})
        assert (await session.answer(said.n)).body == "Done."
        assert [text for _, _, text in world.done][-1] == "signed: on 3 May"
        table = session.state.agents["/"].table
        assert table["sign"].text() == "on 3 May"
        assert table["sign"].labels == {"user"}
    replay(session.journal, verify=True)


async def test_what_a_person_does_not_do_is_missing_and_no_model_does_it(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": [plan(SIGN), "Done."]})) as opened:
        session = await opened.open()
        said = await session.say("Go")
        number, _ = await form_of(session)
        await session.answer_form(number, "decline")
        await session.answer(said.n)
    record = run_of(session).state.nodes["sign"]
    assert (record.state, record.error) == ("failed", "The user did not do it.")
    assert states(session)["file"] == "skipped"
    ending = run_of(session).ending
    assert ending is not None
    assert ending.verdict.reached == "partly"
    assert (ending.verdict.missing or {})["sign"] == "The user did not do it."
    replay(session.journal, verify=True)


@pytest.mark.parametrize(
    ("values", "ran"),
    [({}, ["Dear all", "sent"]), ({"change": "Less stiff."}, ["Dear all", "Good morning", "sent"])],
)
async def test_a_result_counts_only_if_the_person_accepts_it(
    tmp_path: Path, values: Mapping[str, str], ran: list[str]
) -> None:
    """What they want otherwise is told to the patcher, and what it puts in the step's place is theirs to accept, too."""
    world = World()
    answers = {"A step failed.": PATCH}
    script = replies({"/": [plan(DRAFT), "Done."]})
    async with runtime(tmp_path, script, world=world, answers=answers) as opened:
        session = await opened.open()
        said = await session.say("Go")
        number, asked = await form_of(session)
        assert asked.accepts
        assert asked.message.startswith("Is the tone right?\n\n")
        assert "Dear all" in asked.message
        await session.answer_form(number, "accept", values)
        if values:
            await until(lambda: "anew" in states(session) and session.state.forms)
            (again,) = session.state.forms
            await session.answer_form(again, "accept", {})
        await session.answer(said.n)
    assert [text for _, _, text in world.done] == ran
    run = run_of(session)
    last = "anew" if values else "draft"
    assert run.state.nodes[last].validation == "accepted"
    assert run.ending is not None
    assert not run.ending.verdict.missing
    if values:
        assert "The user did not accept the result. They say: Less stiff." in run.state.nodes["draft"].error
    replay(session.journal, verify=True)


@pytest.mark.parametrize(("steps", "step"), [(SIGN, "sign"), (DRAFT, "draft")])
async def test_where_nobody_is_there_nothing_is_accepted_and_nobody_is_asked_twice(
    tmp_path: Path, steps: str, step: str
) -> None:
    authorities = Authorities(attended=False)
    script, answers = replies({"/": [plan(steps), "Done."]}), {"Plan the": "no"}
    async with runtime(tmp_path, script, authorities=authorities, answers=answers) as opened:
        session = await opened.open()
        said = await session.say("Go")
        await session.answer(said.n)
        asked = [one for one in session.records() if one.kind == "form"]
    assert len(asked) == 2, "one question, which the policy answers"
    record = run_of(session).state.nodes[step]
    assert record.state == "failed"
    assert record.error.startswith("Nobody was there to ")
    assert ("came back partial" if steps == SIGN else "The plan failed") in heard(session)
    replay(session.journal, verify=True)


@pytest.mark.parametrize(("steps", "values"), [(SIGN, {"answer": "signed"}), (DRAFT, {})])
async def test_the_question_is_asked_again_after_a_restart_and_the_work_is_not_done_twice(
    tmp_path: Path, steps: str, values: Mapping[str, str]
) -> None:
    script = {"/": [plan(steps), "Done."]}
    world = World()
    async with runtime(tmp_path, replies(script), world=world) as opened:
        session = await opened.open()
        said = await session.say("Go")
        await form_of(session)
    async with runtime(tmp_path, replies(script), world=world) as opened:
        again = await opened.open(session.id)
        number, _ = await form_of(again)
        await again.answer_form(number, "accept", values)
        assert (await again.answer(said.n)).body == "Done."
    done = [text for _, _, text in world.done]
    assert len(done) == len(set(done)) == 2
    replay(again.journal, verify=True)


@pytest.mark.parametrize("steps", [SIGN, DRAFT])
@pytest.mark.parametrize("how", ["plan", "step"])
async def test_a_question_ends_with_its_step(tmp_path: Path, steps: str, how: str) -> None:
    async with runtime(tmp_path, replies({"/": [plan(steps), "Done."]})) as opened:
        session = await opened.open()
        said = await session.say("Go")
        await form_of(session)
        step = "sign" if steps == SIGN else "draft"
        await session.cancel("/audit" if how == "plan" else f"/audit/{step}")
        await until(lambda: not session.state.forms)
        await session.answer(said.n)
    assert states(session)[step] == "cancelled"
    replay(session.journal, verify=True)


def test_a_paused_plan_hands_nothing_to_the_person(tmp_path: Path) -> None:
    hold = asyncio.Event()
    world = World(hold={"Clause 7: rent is 900": hold})

    async def main() -> Session:
        async with runtime(tmp_path, replies({"/": [plan(SIGN), "Done."]}), world=world) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await until(lambda: world.done)
            await session.pause("/audit")
            hold.set()
            await until(lambda: states(session)["read"] == "executed")
            assert not session.state.forms
            await session.resume("/audit")
            number, _ = await form_of(session)
            await session.answer_form(number, "accept", {})
            await session.answer(said.n)
            return session

    session = asyncio.run(main())
    assert changes(session.records())[-1] == ("file", "executed")
    assert session.state.agents["/"].table["sign"].text() == "Done."
    replay(session.journal, verify=True)


def test_the_fields_of_a_persons_step_have_a_schema() -> None:
    """Programs are sent it, on Python 3.11 too, where whole numbers can't be asked whether they are whole."""
    schema = schema_of((FormField(name="answer", kind="text", title="What came of it", most=10_000),))
    assert schema["properties"] == {
        "answer": {"type": "string", "title": "What came of it", "maxLength": 10_000}
    }
