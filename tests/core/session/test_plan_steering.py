"""What a person says while a plan runs holds: for one step of it, for all of it, and when it is said to its caller."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from iact.core.errors import UsageError
from iact.core.plan.state import NodeRecord
from iact.core.records.parts import Bounds, PlanBounds
from iact.core.session.monitor import Authorities
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.core.tree.plan_run import PlanRun
from tests.core.session.fakes import World, replies
from tests.core.session.plan_scenes import AGENTS, ask, changes, heard, plan, researcher, runtime, until
from tests.core.session.test_plan_control import HELD, Scene, state_of

CONCLUDE = '{"decision": "conclude", "reason": "The user asked for it."}'
GO_ON = '{"decision": "continue"}'


def run_of(session: Session, path: str = "/audit") -> PlanRun:
    run = session.state.agents[path].plan
    assert run is not None
    return run


def step_is(record: NodeRecord, state: str) -> bool:
    return record.state == state


# --- one step -----------------------------------------------------------------------------------------------------

BESIDE = """\
steps:
  - {id: a, call: t.write, params: {text: held}}
  - {id: b, call: t.write, params: {text: after}, after: [a]}
  - {id: c, call: t.read, params: {text: other}, after: [a]}
"""


async def test_a_paused_step_does_not_start_and_the_others_do(tmp_path: Path) -> None:
    async with Scene(tmp_path, {"/": [plan(BESIDE), "Done."]}) as scene:
        await scene.session.pause("/audit", "b")
        scene.hold.set()
        await until(lambda: state_of(scene, "c") == "executed")
        assert state_of(scene, "b") == "ready"
        assert run_of(scene.session).due is None, "nothing of the plan is due while it waits for a person"
        await scene.session.resume("/audit", "b")
        assert (await scene.finish()).body == "Done."
        assert scene.texts == ["held", "other", "after"]


async def test_a_paused_step_is_still_paused_after_a_restart_and_in_a_fork(tmp_path: Path) -> None:
    async with Scene(tmp_path, {"/": [plan(BESIDE), "Done."]}) as scene:
        await scene.session.pause("/audit", "b")
        scene.hold.set()
        done = ("c", "executed")
        await until(lambda: done in changes(scene.session.records()))
        at = len(scene.session.records())
        forked = await scene.runtime.fork(scene.session.id, at, run=True)
    for which in (scene.session.id, forked):
        world = World()
        async with runtime(tmp_path, replies({"/": [plan(BESIDE), "Done."]}), world=world) as opened:
            again = await opened.open(which)
            assert run_of(again).held("b")
            ended = run_of(again).state.nodes["c"]
            await until(partial(step_is, ended, "executed"))
            assert "after" not in [text for _, _, text in world.done]
            await again.resume("/audit/b")
            assert (await again.answer(at)).body == "Done."
            assert [text for _, _, text in world.done][-1] == "after"
        replay(again.journal, verify=True)


def test_the_agent_of_a_paused_step_stops_where_it_is(tmp_path: Path) -> None:
    """As an agent that is paused itself: its call under way ends, its next turn begins when the step goes on."""
    hold = asyncio.Event()
    world = World(hold={"note": hold})

    async def main() -> Session:
        async with runtime(tmp_path, replies(researcher()), world=world) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await until(lambda: any(text == "note" for _, _, text in world.done))
            await session.pause("/audit", "cves")
            hold.set()
            await until(lambda: not session.state.agents["/audit/researcher"].actions)
            states = {view.path: view.state for view in session.tree()}
            assert states["/audit/researcher"] == "paused"
            assert states["/audit"] == "acting"
            await session.inject("/audit", "Only the ones of this year.", step="cves")
            await session.resume("/audit", "cves")
            assert (await session.answer(said.n)).body == "Done."
            return session

    session = asyncio.run(main())
    replay(session.journal, verify=True)
    assert "Only the ones of this year." in heard(session, "/audit/researcher")


def test_what_a_person_says_to_an_agent_step_before_it_starts_comes_with_its_task(tmp_path: Path) -> None:
    hold = asyncio.Event()
    world = World(hold={"note": hold})

    async def main() -> Session:
        async with runtime(tmp_path, replies(researcher()), world=world) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await until(lambda: any(text == "note" for _, _, text in world.done))
            await session.inject("/audit", "Mind the kernel's config.", step="again")
            assert "Mind" not in heard(session, "/audit/researcher")
            hold.set()
            assert (await session.answer(said.n)).body == "Done."
            return session

    session = asyncio.run(main())
    records = replay(session.journal, verify=True).records
    told = heard(session, "/audit/researcher")
    assert "intervention by the user" in told.lower()
    assert told.index("And once more.") < told.index("Mind the kernel's config.")
    assert "interjection-1" not in dict(changes(records))


def test_what_a_person_says_about_a_tool_step_is_thought_about(tmp_path: Path) -> None:
    answers = {"Judge the evidence": [CONCLUDE]}

    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}, answers) as scene:
            await scene.session.inject("/audit", "Not this one.", step="b")
            assert (await scene.finish()).body == "Done."
        return scene

    scene = asyncio.run(main())
    assert "after" not in scene.texts
    node = next(
        one for one in scene.records if one.kind in ("plan", "extend") and "interjection" in str(one.fields)
    )
    assert "About the step b: Not this one." in str(node.fields)


async def test_a_step_that_there_is_not_or_that_has_ended_is_named(tmp_path: Path) -> None:
    async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}) as scene:
        await until(lambda: state_of(scene, "c") == "executed")
        with pytest.raises(UsageError, match="no step 'nothing'"):
            await scene.session.pause("/audit", "nothing")
        with pytest.raises(UsageError, match="has ended; it is executed"):
            await scene.session.cancel("/audit", "c")
        with pytest.raises(UsageError, match="is not a plan"):
            await scene.session.inject("/", "hm", step="c")
        await scene.finish()


# --- a message to the caller ------------------------------------------------------------------------------------


def test_stop_typed_to_the_root_reaches_the_plan(tmp_path: Path) -> None:
    """What runs ends by itself, nothing else starts, the result says that the goal was not reached, and the root
    hears both."""
    answers = {"Judge the evidence": [CONCLUDE]}

    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Stopped."]}, answers) as scene:
            await scene.session.say("Stop!")
            assert (await scene.finish()).body == "Stopped."
        return scene

    scene = asyncio.run(main())
    assert "after" not in scene.texts
    assert dict(changes(scene.records))["a"] == "executed"
    told = heard(scene.session)
    assert "It was stopped. The user asked for it." in told
    assert told.index("The plan was stopped") < told.index("Stop!")
    ending = run_of(scene.session).ending
    assert ending is not None
    assert (ending.status, ending.verdict.because) == ("stopped", "The user asked for it.")


def test_an_interrupt_of_the_root_ends_what_runs_as_well(tmp_path: Path) -> None:
    """The held call never ends by itself: if the plan waited for it, this test would not end either."""
    answers = {"Judge the evidence": [CONCLUDE]}

    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Stopped."]}, answers) as scene:
            await scene.session.inject("/", "Stop!", "interrupt")
            assert (await scene.session.answer(scene.said.n)).body == "Stopped."
            await until(lambda: not scene.world.running)
        return scene

    scene = asyncio.run(main())
    ended = dict(changes(scene.records))
    assert (ended["a"], ended["b"]) == ("cancelled", "skipped")


def word(said: str) -> dict[str, list[str]]:
    return {"A person wrote something": [f'{{"word": "{said}", "reason": "They say so."}}']}


def test_a_plain_stop_ends_what_runs_and_is_told_once(tmp_path: Path) -> None:
    """The held call never ends by itself, so nobody waited for it. Nothing is judged or reported afterwards."""

    async def main() -> Scene:
        async with Scene(
            tmp_path, {"/": [plan(HELD, "PLAN audit mode=reflect"), "Stopped."]}, word("stop")
        ) as scene:
            await scene.session.say("Stop, I do not need it any more.")
            assert (await scene.session.answer(scene.said.n)).body == "Stopped."
            await until(lambda: not scene.world.running)
        return scene

    scene = asyncio.run(main())
    ended = dict(changes(scene.records))
    assert (ended["a"], ended["b"]) == ("cancelled", "skipped")
    told = heard(scene.session)
    assert "The plan was stopped" in told
    assert told.count("Stop, I do not need it any more.") == 1
    ending = run_of(scene.session).ending
    assert ending is not None
    assert (ending.status, ending.verdict.outcome, ending.verdict.by) == ("stopped", "stopped", "person")
    replay(scene.session.journal, verify=True)


@pytest.mark.parametrize("said", ["nothing", "add", "gibberish"])
def test_what_is_no_stop_leaves_what_runs_alone(tmp_path: Path, said: str) -> None:
    answers = word(said) | {"Judge the evidence": [GO_ON]}

    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}, answers) as scene:
            await scene.session.say("Thank you so far.")
            assert (await scene.finish()).body == "Done."
        return scene

    scene = asyncio.run(main())
    assert dict(changes(scene.records))["a"] == "executed"
    assert "after" in scene.texts
    asked = [one.text("question") for one in scene.records if one.kind == "ask"]
    assert asked == (["word"] if said == "nothing" else ["word", "interject"])
    replay(scene.session.journal, verify=True)


def test_an_edit_that_waits_for_a_step_that_does_not_exist_is_answered(tmp_path: Path) -> None:
    wrong = HELD.replace("after: [a]", "after: [aa]")

    async def main() -> None:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}, {}) as scene:
            await scene.session.pause("/audit")
            with pytest.raises(UsageError, match="there is no step 'aa'; did you mean 'a'"):
                await scene.session.edit_plan("/audit", wrong)
            await scene.session.resume("/audit")
            await scene.finish()

    asyncio.run(main())


def test_a_message_to_the_root_reaches_a_plan_of_its_child(tmp_path: Path) -> None:
    answers = {"Judge the evidence": [CONCLUDE]}
    script = {"/": ["```CALL a\nTask.\n```", "Done."], "/a": [plan(HELD), "A done."]}

    async def main() -> Scene:
        async with Scene(tmp_path, script, answers) as scene:
            await scene.session.say("Stop!")
            assert (await scene.finish()).body == "Done."
        return scene

    assert "after" not in asyncio.run(main()).texts


@pytest.mark.parametrize("mode", ["reflect", "nreflect", "orchestrator", "analyze"])
def test_after_conclude_nothing_starts_whatever_is_thought_later(tmp_path: Path, mode: str) -> None:
    """A message ends the plan; another that came with it, and every reflection behind it, would go on or plan anew."""
    more = '{"decision": "replan", "reason": "more is needed"}'
    answers = {
        "Judge the evidence": [CONCLUDE, GO_ON, more, more, more],
        "Plan the steps": "steps: [{id: more, call: t.write, params: {text: more}}]",
        "Look at one": '{"action": "inject", "steps": [{"id": "x", "call": "t.write", "params": {"text": "more"}}]}',
        "Decide whether": '{"achieved": false, "confidence": 0.1, "reasoning": "not yet"}',
    }

    async def main() -> Scene:
        body = plan(HELD.replace("t.read", "t.write").replace("beside", "held"), f"PLAN audit mode={mode}")
        async with Scene(tmp_path, {"/": [body, "Done."]}, answers) as scene:
            await scene.session.say("Stop!")
            await scene.session.say("And thank you.")
            assert (await scene.finish()).body == "Done."
        return scene

    scene = asyncio.run(main())
    assert set(scene.texts) == {"held"}
    assert "The plan was stopped" in heard(scene.session)


# --- what is so ---------------------------------------------------------------------------------------------------


def test_a_goal_that_was_not_reached_is_partial_with_the_reason(tmp_path: Path) -> None:
    no = '{"achieved": false, "confidence": 0.9, "reasoning": "The log ends too early."}'
    script = replies({"/": [plan(AGENTS.split("  - {id: cves")[0], "PLAN audit mode=analyze"), "Done."]})

    async def main() -> Session:
        async with runtime(tmp_path, script, answers={"Decide whether": no}) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session

    session = asyncio.run(main())
    records = replay(session.journal, verify=True).records
    report = session.view.plan_result("/audit")
    assert (report["status"], report["achieved"], report["confidence"]) == ("partial", False, 0.9)
    assert report["reason"] == "The log ends too early."
    assert "Its goal is not reached. The log ends too early." in heard(session)
    reply = next(one for one in records if one.kind == "reply" and one.agent == "/audit")
    assert reply.fields["shortfall"] == "The log ends too early."


@pytest.mark.parametrize(
    ("bounds", "rounds", "judged"),
    [
        (PlanBounds(), "", 3),
        (PlanBounds(rounds=1), "", 1),
        (PlanBounds(rounds=2), "", 2),
        (PlanBounds(rounds=1), " rounds=2", 2),
    ],
)
def test_a_plan_is_judged_as_often_as_it_is_set_unless_its_author_says_a_number(
    tmp_path: Path, bounds: PlanBounds, rounds: str, judged: int
) -> None:
    body = "steps: [{id: a, call: t.read, params: {text: one}}]"
    script = replies({"/": [plan(body, f"PLAN audit mode=analyze{rounds}"), "Done."]})
    answers = {
        "Decide whether": '{"achieved": false, "confidence": 0.1, "reasoning": "not yet"}',
        "Plan the steps": "steps: [{id: more, call: t.read, params: {text: more}}]",
    }

    _, _, records = ask(tmp_path, script, answers=answers, bounds=Bounds(plans=bounds))

    asked = [record.text("question") for record in records if record.kind == "ask"]
    assert asked.count("analyze") == judged
    assert asked.count("replan") == judged - 1


CLEARED = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]'


@pytest.mark.parametrize("answer", [True, False, None])
def test_what_came_of_an_approval_is_what_the_journal_says(tmp_path: Path, answer: bool | None) -> None:
    """Given, refused, or by nobody: the report tells the agent of the last two alike."""
    body = "steps: [{id: a, call: t.write, params: {text: one}}]"
    script = replies({"/": [plan(body), "Done."]})
    world = World()

    async def main() -> Session:
        answers = {"A step failed.": "{}", "Plan the": "no"}
        async with runtime(
            tmp_path,
            script,
            world=world,
            policy=CLEARED,
            answers=answers,
            authorities=Authorities(seconds=600 if answer is not None else 0.05),
        ) as opened:
            session = await opened.open()
            said = await session.say("Go")
            if answer is not None:
                await until(
                    lambda: run_of_or_none(session) and run_of(session).state.in_state("waiting_human")
                )
                asked = session.state.agents["/audit"].actions[0].asked
                await session.clear(asked, answer)
            assert (await session.answer(said.n)).body == "Done."
            return session

    session = asyncio.run(main())
    records = replay(session.journal, verify=True).records
    causes = [one.text("cause") for one in records if one.kind == "node" and one.text("node") == "a"]
    expected = {True: ["approved", "succeeded"], False: ["denied", "broke"], None: ["expired"]}[answer]
    assert causes == ["joined", "dispatched", "needs_human", *expected]
    assert len(world.done) == (answer is True)
    if not answer:
        assert "- a (t.write): failed: t.write did not complete." in heard(session)


def run_of_or_none(session: Session) -> bool:
    return "/audit" in session.state.agents and session.state.agents["/audit"].plan is not None


# --- plan first, editing, trying again, keeping ---------------------------------------------------------------------

FIRST = """\
goal: Look
steps:
  - {id: a, call: t.write, params: {text: one}}
  - {id: b, call: t.write, params: {text: two}, after: [a]}
"""
OTHER = """\
goal: Look closely
steps:
  - {id: a, call: t.write, params: {text: uno}}
  - {id: c, call: t.write, params: {text: three}, after: [a]}
"""


def test_a_plan_waits_to_be_looked_at_is_changed_and_started(tmp_path: Path) -> None:
    """Also where the program was killed while it waited, and in a fork from there."""
    answers = {"Plan the steps": FIRST, "Judge the evidence": '{"decision": "conclude", "answer": "Seen."}'}

    async def main() -> None:
        world = World()
        async with runtime(tmp_path, replies({}), answers=answers, world=world) as opened:
            session = await opened.open()
            said = await session.say("Look", mode="reflect", plan_first=True)
            await until(lambda: waits(session))
            assert run_of(session, "/plan").due is None
            with pytest.raises(UsageError, match="not changed"):
                await session.edit_plan("/plan", "steps: [{id: a, call: t.nothing}]")
            await session.edit_plan("/plan", OTHER)
            at, which = len(session.records()), session.id
            forked = await opened.fork(which, at, run=True)
        assert not world.done
        for one in (which, forked):
            world = World()
            async with runtime(tmp_path, replies({}), answers=answers, world=world) as opened:
                session = await opened.open(one)
                assert waits(session)
                await session.start_plan("/plan")
                reply = await session.answer(said.n)
                assert "Seen." in reply.body
            records = replay(session.journal, verify=True).records
            assert [text for _, _, text in world.done] == ["uno"], (
                "c is what the reflection after a made needless"
            )
            plans = [one for one in records if one.kind == "plan"]
            assert [one.fields["reason"] for one in plans] == ["planned", "changed by the user"]

    asyncio.run(main())


def waits(session: Session) -> bool:
    plan = session.state.agents.get("/plan")
    run = plan.plan if plan is not None else None
    return run is not None and run.running is not None and run.running.still and bool(run.work())


FAILS = """\
steps:
  - {id: a, call: t.write, params: {text: one}}
  - {id: bad, call: t.fail, params: {text: bad}, after: [a]}
  - {id: last, call: t.write, params: {text: last}, after: [bad]}
"""


def test_a_failed_step_of_a_plan_that_has_ended_is_tried_again_with_what_needed_it(tmp_path: Path) -> None:
    world = World()

    async def main() -> Session:
        script = replies({"/": [plan(FAILS), "Done."]})
        answers = {"A step failed.": "{}", "Plan the": "no"}
        async with runtime(tmp_path, script, world=world, answers=answers) as opened:
            session = await opened.open()
            await session.ask("Go")
            ending = run_of(session).ending
            assert ending is not None
            assert ending.status == "partial"
            world.mended = True
            with pytest.raises(UsageError, match="only one that failed"):
                await session.retry_step("/audit", "a")
            at = (await session.retry_step("/audit", "bad")).n
            await until(lambda: not session.state.agents["/audit"].active)
            await until(lambda: any(one.kind == "reply" and one.n > at for one in session.records()))
            return session

    session = asyncio.run(main())
    records = replay(session.journal, verify=True).records
    ended = dict(changes(records))
    assert (ended["bad"], ended["bad-2"], ended["last-2"]) == ("failed", "executed", "executed")
    assert [text for _, _, text in world.done].count("one") == 1, "what succeeded is not done again"
    ending = run_of(session).ending
    assert ending is not None
    assert (ending.status, ending.verdict.missing) == ("concluded", None)


def test_a_plan_is_kept_and_used_by_name(tmp_path: Path) -> None:
    world = World()
    script = replies(
        {
            "/": [
                plan(FIRST), "Done.", plan("goal: Look again", "PLAN again from=weekly"), "Done again.",
                plan("goal: Look", "PLAN x from=monthly"), "No.",
            ]
        }
    )  # fmt: skip

    async def main() -> Session:
        async with runtime(tmp_path, script, world=world) as opened:
            session = await opened.open()
            await session.ask("Go")
            kept = session.save_plan("/audit", "weekly")
            assert kept == tmp_path / "plans" / "weekly.yaml"
            with pytest.raises(UsageError, match="can't name a plan template"):
                session.save_plan("/audit", "../weekly")
            assert (await session.ask("Again")).body == "Done again."
            kept.unlink()
            assert (await session.ask("And the other?")).body == "No."
            return session

    session = asyncio.run(main())
    assert [text for _, _, text in world.done] == ["one", "two"] * 2
    assert run_of(session, "/again").source.goal == "Look again"
    assert "There is no plan template 'monthly'" in heard(session)
    replay(session.journal, verify=True)


def test_an_agent_gives_the_values_of_a_kept_plan_beside_its_name(tmp_path: Path) -> None:
    world = World()
    script = replies(
        {
            "/": [
                plan("goal: Look at them", "PLAN june from=weekly first=three file='june report.csv'"), "June.",
                "```CALL july from=weekly first=four file=$july\nLook at what came in July\n```", "July.",
                "```PLAN none from=weekly first=five\n```", "No.",
                "```PLAN other from=weekly first=five file=a.csv last=b\n```", "No.",
                "```PLAN alone from=weekly first=six file=six.csv\n```", "Alone.",
                "```PLAN weekly first=seven file=seven.csv\n```", "As I was told.",
            ]
        }
    )  # fmt: skip

    async def main() -> Session:
        async with runtime(tmp_path, script, world=world) as opened:
            opened.templates.save("weekly", KEPT, {"first": "one", "file": "may.csv"})
            session = await opened.open()
            await session.upload("july", "text/plain", b"july.csv")
            said = [(await session.ask("With my weekly plan: go")).body for _ in range(6)]
            assert said == ["June.", "July.", "No.", "No.", "Alone.", "As I was told."]
            return session

    session = asyncio.run(main())
    assert [text for _, _, text in world.done] == [
        "three", "read june report.csv", "four", "read july.csv", "six", "read six.csv",
    ]  # fmt: skip
    assert run_of(session, "/june").source.goal == "Look at them"
    assert run_of(session, "/july").source.goal == "Look at what came in July"
    assert run_of(session, "/alone").source.goal == "Look at six.csv", "its own, if no other is given"
    assert "weekly first=… file=…" in heard(session)
    assert 'needs values for file; write for example file="may.csv".' in heard(session)
    assert "has no parameter 'last'; it has first, file." in heard(session)
    assert "The kept plan is used so: `PLAN weekly from=weekly first=seven file=seven.csv`." in heard(session)
    replay(session.journal, verify=True)


KEPT = """\
goal: Look at may.csv
steps:
  - {id: a, call: t.write, params: {text: one}}
  - {id: b, call: t.write, params: {text: read may.csv}, after: [a]}
"""


def test_a_version_is_a_decision_and_thoughts_and_streamed_steps_are_none(tmp_path: Path) -> None:
    answers = {
        "Plan the steps": FIRST,
        "Judge the evidence": '{"decision": "continue"}',
        "Look at one": ['{"action": "continue"}', '{"action": "continue"}'],
    }

    async def main() -> Session:
        async with runtime(tmp_path, replies({}), answers=answers) as opened:
            session = await opened.open()
            await session.ask("Look", mode="orchestrator")
            return session

    session = asyncio.run(main())
    records = replay(session.journal, verify=True).records
    assert [one.fields["version"] for one in records if one.kind == "plan"] == [1]
    joined = [str(step["id"]) for one in records if one.kind == "extend" for step in one.fields["add"]]  # type: ignore[union-attr,index,call-overload]
    assert joined[:2] == ["b", "reflection-1"], (
        "steps of one moment have no observer, since nothing is left to run"
    )
