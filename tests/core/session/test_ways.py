"""Ways of working: what a person says in a plan mode is the goal of a plan, whose report is the root's reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from iact.core.errors import UsageError
from iact.core.journal import read_journal
from iact.core.ports import JSON
from iact.core.records.dialogue import Choose, Reply, Say, Spawn
from iact.core.records.plans import ProfileRisk, ProfileTrust
from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.core.tree.plan_report import plan_json
from tests.core.session.fakes import Script, World, replies
from tests.core.session.plan_scenes import WRITTEN, Answers, changes, heard, runtime, until

GOAL = 'Find out: "which" hosts\u2028 are * vulnerable \x7f\nand say so'
CONCLUDES: Answers = {
    "Plan the steps": WRITTEN,
    "Decide whether": '{"achieved": true, "confidence": 0.9, "final_answer": "All is well."}',
    "Answer from the results": "All is well.",
}


def waits(session: Session) -> bool:
    """Whether the plan waits for its person."""
    plan = session.state.agents.get("/plan")
    run = plan.plan if plan is not None else None
    return run is not None and run.running is not None and run.running.still


def say(
    data: Path,
    *said: tuple[str, str],
    script: Script | None = None,
    answers: Answers = CONCLUDES,
    world: World | None = None,
    plan_first: bool = False,
) -> tuple[Session, list[Record], list[Record]]:
    """Several messages, each in its mode and answered before the next; the answers and all records. It verifies."""

    async def run() -> tuple[Session, list[Record]]:
        async with runtime(data, script or replies({"/": ["Yes."]}), answers=answers, world=world) as opened:
            session = await opened.open()
            given = []
            for text, mode in said:
                record = await session.say(text, mode=mode, plan_first=plan_first)  # type: ignore[arg-type]
                if plan_first:
                    await until(lambda: waits(session))
                    assert world is None or not world.done
                    await session.start_plan("/plan")
                given.append(await session.answer(record.n))
            return session, given

    session, given = asyncio.run(run())
    replay(session.journal, verify=True)
    return session, given, list(read_journal(session.journal.parent).records)


def test_a_message_in_a_plan_mode_is_a_plan_below_the_root_and_its_report_the_reply(tmp_path: Path) -> None:
    world = World()
    session, [answer], records = say(tmp_path, (GOAL, "analyze"), world=world)
    assert answer.body == "All is well.", "a person gets the answer, and sees the steps beside it"
    assert answer.agent == "/"
    assert isinstance(answer.content, Reply)
    assert (answer.content.status, answer.content.plan) == ("ok", "concluded")
    assert [text for _, _, text in world.done] == ["one", "two"]
    assert ("b", "executed") in changes(records, "/plan")
    assert not [one for one in records if one.kind == "turn"], "the root's model was asked"
    found = plan_json(session.state, session.state.agents["/plan"])
    assert (found["goal"], found["mode"], found["caller"]) == (GOAL, "analyze", "/")
    said = next(one.content for one in records if isinstance(one.content, Say))
    assert (said.mode, said.plan_first) == ("analyze", False)


def test_the_next_message_of_a_dialogue_knows_what_was_said_and_what_came_of_it(tmp_path: Path) -> None:
    session, answers, records = say(tmp_path, ("Look around", "analyze"), ("And now?", "dialogue"))
    assert answers[1].body == "Yes."
    told = heard(session)
    assert told.index("Look around") < told.index("All is well.") < told.index("And now?")
    assert "kept as $plan" in told
    assert len([one for one in records if one.kind == "reply" and one.agent == "/"]) == 2


def test_two_messages_two_plans(tmp_path: Path) -> None:
    _, answers, records = say(tmp_path, ("First", "static"), ("Second", "static"))
    assert [one.content.plan for one in answers if isinstance(one.content, Reply)] == ["concluded"] * 2
    assert [one.agent for one in records if isinstance(one.content, Spawn)] == ["/plan", "/plan-2"]


def test_whether_a_person_wants_to_see_the_plan_first_is_in_the_journal(tmp_path: Path) -> None:
    _, _, records = say(tmp_path, ("Look", "static"), plan_first=True)
    spawned = next(one.content for one in records if isinstance(one.content, Spawn))
    assert spawned.plan is not None
    assert spawned.plan.first


def test_a_dialogue_is_as_ever(tmp_path: Path) -> None:
    _, [answer], records = say(tmp_path, ("Hello", "dialogue"))
    assert answer.body == "Yes."
    assert next(one.content for one in records if isinstance(one.content, Say)) == Say()


def test_a_plan_to_see_first_needs_a_plan(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no plan to review first"):
        say(tmp_path, ("Hello", "dialogue"), plan_first=True)
    with pytest.raises(UsageError, match="no way of working 'hasty'; there are dialogue, auto, static"):
        say(tmp_path, ("Hello", "hasty"))


# --- auto ---------------------------------------------------------------------------------------------------------


def like(steps: int, **said: bool) -> Answers:
    """A model that says what a request is like, and plays everybody else."""
    plain = {"foreseeable": True, "depends": False, "repeat": False, "branches": False}
    return {"Say what a request is like": json.dumps({"steps": steps, **plain, **said}), **CONCLUDES}


def chosen(records: list[Record]) -> Choose:
    return next(one.content for one in records if isinstance(one.content, Choose))


def test_auto_asks_once_what_a_request_is_like_and_says_why(tmp_path: Path) -> None:
    session, [answer], records = say(tmp_path, ("Look", "auto"), answers=like(4, repeat=True))
    found = chosen(records)
    assert (found.mode, found.failed, found.role) == ("analyze", "", "smart")
    assert found.why == "The result has to be judged, and the work repeated until it is good enough."
    assert "All is well." in answer.body
    spawned = next(one.content for one in records if isinstance(one.content, Spawn))
    assert spawned.plan is not None
    assert (spawned.plan.mode, spawned.plan.chosen) == ("analyze", found.why)
    assert session.view.usage.prompt_tokens >= found.usage.prompt > 0


def test_auto_leaves_a_request_whose_steps_hang_on_each_other_to_the_dialogue(tmp_path: Path) -> None:
    _, [answer], records = say(tmp_path, ("Who was it?", "auto"), answers=like(4, depends=True))
    assert (chosen(records).mode, answer.body) == ("dialogue", "Yes.")
    assert not [one for one in records if isinstance(one.content, Spawn)]


@pytest.mark.parametrize("said", ["I can't help with that.", '{"steps": "many"}', ""])
def test_where_no_model_can_tell_the_form_counts_and_the_dialogue_is_preferred(
    tmp_path: Path, said: str
) -> None:
    answers = {**CONCLUDES, "Say what a request is like": said}
    _, given, records = say(tmp_path, ("Find the cause of all that, then report", "auto"), answers=answers)
    assert chosen(records).mode == "dialogue"
    assert chosen(records).failed
    assert given[0].body == "Yes."


def test_what_was_asked_while_the_message_was_written_counts_when_it_is_sent(tmp_path: Path) -> None:
    once = str(like(4, repeat=True)["Say what a request is like"])
    answers: Answers = {**CONCLUDES, "Say what a request is like": [once]}

    async def run() -> Session:
        async with runtime(tmp_path, replies({"/": ["Yes."]}), answers=answers) as opened:
            session = await opened.open()
            foreseen = await session.foresee("Look")
            assert foreseen[0] == "analyze"
            assert not [one for one in session.records() if one.kind == "choose"]
            await session.ask("Look", mode="auto")
            return session

    session = asyncio.run(run())
    replay(session.journal, verify=True)
    found = chosen(list(read_journal(session.journal.parent).records))
    assert found.mode == "analyze"
    assert found.usage.prompt > 0


def running(data: Path, then: Callable[[Session], object], *, script: Script | None = None) -> list[Record]:
    """A plan runs that never ends by itself, and something is done to it; the journal verifies."""

    async def run() -> Session:
        world = World(hold={"one": asyncio.Event()})
        async with runtime(
            data, script or replies({"/": ["Yes."]}), answers=CONCLUDES, world=world
        ) as opened:
            session = await opened.open()
            said = await session.say("Look", mode="analyze")
            await until(lambda: any(one.path == "/plan" and one.doing for one in session.tree()))
            await then(session)  # type: ignore[misc]
            await session.answer(said.n)
            return session

    session = asyncio.run(run())
    replay(session.journal, verify=True)
    return list(read_journal(session.journal.parent).records)


def test_no_second_plan_begins_while_the_root_is_at_work(tmp_path: Path) -> None:
    async def then(session: Session) -> None:
        with pytest.raises(UsageError, match="The root agent is working"):
            await session.say("More", mode="analyze")
        await session.cancel("/")

    records = running(tmp_path, then)
    assert len([one for one in records if one.kind == "say"]) == 1


def test_a_plan_that_is_cancelled_is_the_roots_answer(tmp_path: Path) -> None:
    async def then(session: Session) -> None:
        await session.cancel("/plan")

    reply = running(tmp_path, then)[-2]
    assert (reply.agent, reply.text("status"), reply.body) == (
        "/",
        "cancelled",
        "The user cancelled this work.",
    )


def test_what_a_person_adds_while_the_plan_runs_is_the_plans_to_answer(tmp_path: Path) -> None:
    """It reaches the plan; the root knows of it, and does not answer it once more."""
    hold = asyncio.Event()
    answers = {**CONCLUDES, "Judge the evidence": '{"decision": "continue"}'}

    async def run() -> Session:
        world = World(hold={"one": hold})
        async with runtime(tmp_path, replies({"/": ["Yes."]}), answers=answers, world=world) as opened:
            session = await opened.open()
            said = await session.say("Look around", mode="reflect")
            await until(lambda: bool(world.done))
            await session.say("Only the west side.")
            hold.set()
            assert (await session.answer(said.n)).body
            await session.ask("And now?")
            return session

    session = asyncio.run(run())
    records = replay(session.journal, verify=True).records
    assert [one.body for one in records if one.kind == "reply" and one.agent == "/"][1:] == ["Yes."]
    told = heard(session)
    assert told.index("Look around") < told.index("Only the west side.") < told.index("And now?")
    assert ("interjection-1", "executed") in changes(records, "/plan")


# --- profiles -----------------------------------------------------------------------------------------------------


def profile_of(*calls: str, **more: JSON) -> str:
    steps = [{"id": f"s{at}", "call": call, "params": {"text": f"x{at}"}} for at, call in enumerate(calls)]
    return json.dumps({"steps": steps, "confidence": 0.9, **more})


PROFILED: Answers = {
    "Write the whole workflow": profile_of("t.fail", "t.read"),
    "A workflow did not go well": profile_of("t.fail").replace("s0", "again"),
    "Answer the task from these results": "Only [s1] is there.",
    "Decide whether": '{"achieved": false, "confidence": 0.9, "reasoning": "It fails."}',
    "Answer from the results": "It fails.",
}


def test_what_a_profile_is_worth_is_in_the_journal_with_what_this_users_sessions_taught(
    tmp_path: Path,
) -> None:
    fails = "".join("```t.fail\nx\n```\n```t.read\nx\n```\n" for _ in range(3))
    say(tmp_path, ("Try it", "dialogue"), script=replies({"/": [fails, "It fails."]}))
    session, _, records = say(tmp_path, ("Do both", "profile"), answers=PROFILED)
    assert next(one.content for one in records if isinstance(one.content, Spawn)).history == {
        "t.fail(text)": 1.0
    }
    risk, repaired = (one.content for one in records if isinstance(one.content, ProfileRisk))
    assert risk.components["history"] == 1.0
    assert set(risk.components) == {"schema", "planning", "method", "scale", "history"}
    first, second = (one.content for one in records if isinstance(one.content, ProfileTrust))
    assert (first.trust, first.penalties, first.verification, first.repair) == (
        0.7,
        {"failed": 0.3},
        "degraded",
        True,
    )
    assert (second.repair, second.climbs) == (False, "")
    assert "s0 gave no result" in first.issues
    found = plan_json(session.state, session.state.agents["/plan"])["profile"]
    assert isinstance(found, dict)
    assert (found["route"], found["trust"], found["repaired"]) == (repaired.route, second.trust, True)
    assert [one.text("question") for one in records if one.kind == "ask"] == ["profile", "repair", "reason"]


def test_a_profile_that_auto_chose_climbs_where_it_does_not_hold(tmp_path: Path) -> None:
    answers = {**PROFILED, "Say what a request is like": like(4)["Say what a request is like"]}
    _, _, records = say(tmp_path, ("Do both", "auto"), answers=answers)
    assert chosen(records).mode == "profile"
    trusts = [one.content for one in records if isinstance(one.content, ProfileTrust)]
    assert [one.climbs for one in trusts] == ["", "analyze"]
    asked = [one.text("question") for one in records if one.kind == "ask"]
    assert asked[:3] == ["profile", "repair", "analyze"]
    assert "reason" not in asked
