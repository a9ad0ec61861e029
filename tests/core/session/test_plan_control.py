"""A plan that runs is paused, cancelled, spoken to and asked about, and goes on after a crash."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from iact.core.errors import IactError, UsageError
from iact.core.plan.machine import PlanMachine
from iact.core.plan.protocol import Outcome
from iact.core.records.parts import SeenFiles
from iact.core.records.record import Record
from iact.core.session.grounding import Grounding
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree
from tests.core.session.fakes import World, replies
from tests.core.session.plan_scenes import (
    AGENTS,
    TWO,
    WRITTEN,
    Answers,
    ask,
    changes,
    heard,
    plan,
    researcher,
    runtime,
    until,
)

HELD = """\
steps:
  - {id: a, call: t.write, params: {text: held}}
  - {id: b, call: t.write, params: {text: after}, after: [a]}
  - {id: c, call: t.read, params: {text: beside}}
"""


class Scene:
    """A session whose plan stands in a tool call until `hold` is set."""

    def __init__(
        self, data: Path, script: Mapping[str, Sequence[str]], answers: Answers | None = None
    ) -> None:
        self.hold = asyncio.Event()
        self.world = World(hold={"held": self.hold})
        self.runtime = runtime(data, replies(script), world=self.world, answers=answers)
        self.session: Session

    async def __aenter__(self) -> Scene:
        await self.runtime.__aenter__()
        self.session = await self.runtime.open()
        self.said = await self.session.say("Go")
        await until(lambda: any(text == "held" for _, _, text in self.world.done))
        return self

    async def __aexit__(self, *exit: object) -> None:
        self.hold.set()
        await self.runtime.__aexit__(None, None, None)
        self.records = list(replay(self.session.journal, verify=True).records)

    async def finish(self) -> Record:
        self.hold.set()
        return await self.session.answer(self.said.n)

    @property
    def texts(self) -> list[str]:
        return [text for _, _, text in self.world.done]


def state_of(scene: Scene, step: str) -> str:
    run = scene.session.state.agents["/audit"].plan
    assert run is not None
    return run.state.nodes[step].state


async def test_a_paused_plan_starts_nothing(tmp_path: Path) -> None:
    async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}) as scene:
        await scene.session.pause("/audit")
        scene.hold.set()
        await until(lambda: state_of(scene, "a") == "executed")
        assert "after" not in scene.texts
        assert {view.path: view.state for view in scene.session.tree()} == {
            "/": "waiting",
            "/audit": "paused",
        }
        await scene.session.resume("/audit")
        assert (await scene.finish()).body == "Done."
        assert "after" in scene.texts


def test_a_cancelled_plan_has_one_outcome_for_each_step(tmp_path: Path) -> None:
    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}) as scene:
            await scene.session.cancel("/audit")
            assert (await scene.session.answer(scene.said.n)).body == "Done."
            await until(lambda: not scene.world.running)
        return scene

    scene = asyncio.run(main())
    assert "Your child /audit did not finish (cancelled)" in heard(scene.session)
    ended = dict(changes(scene.records))
    assert (ended["a"], ended["b"]) == ("cancelled", "cancelled")
    results = [one for one in scene.records if one.kind == "result" and one.number("action") == 1]
    assert [one.text("status") for one in results] == ["cancelled"]
    assert "after" not in scene.texts


def test_one_step_can_be_cancelled(tmp_path: Path) -> None:
    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}) as scene:
            await scene.session.cancel("/audit/a")
            assert (await scene.session.answer(scene.said.n)).body == "Done."
        return scene

    scene = asyncio.run(main())
    ended = dict(changes(scene.records))
    assert (ended["a"], ended["b"], ended["c"]) == ("cancelled", "skipped", "executed")
    assert "The plan came back partial" in heard(scene.session)


def test_a_message_to_a_plan_is_thought_about(tmp_path: Path) -> None:
    answers = {"Judge the evidence": ['{"decision": "conclude", "reason": "asked to", "answer": "Stopped."}']}

    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}, answers) as scene:
            await scene.session.inject("/audit", "Stop here, please.")
            assert (await scene.finish()).body == "Done."
            with pytest.raises(UsageError, match="has ended"):
                await scene.session.inject("/audit", "Too late.")
        return scene

    scene = asyncio.run(main())
    assert "after" not in scene.texts
    assert dict(changes(scene.records))["interjection-1"] == "executed"
    assert "Result:\nStopped." in heard(scene.session)


def test_steps_wait_for_clearance_side_by_side(tmp_path: Path) -> None:
    """Each step asks for itself, whichever is answered first; a step that is denied did not complete."""
    policy = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]'
    body = """\
steps:
  - {id: a, call: t.write, params: {text: one}}
  - {id: b, call: t.write, params: {text: two}}
"""
    world = World()

    async def main() -> Session:
        script = replies({"/": [plan(body), "Done."]})
        async with runtime(
            tmp_path, script, world=world, policy=policy, answers={"A step": ["{}"], "Plan": ["no"]}
        ) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await until(lambda: len(asked(session)) == 2)
            run = session.state.agents["/audit"].plan
            assert run is not None
            await until(lambda: run.state.in_state("waiting_human") == ["a", "b"])
            first, second = asked(session)
            await session.clear(second, True)
            await session.clear(first, False)
            assert (await session.answer(said.n)).body == "Done."
            return session

    session = asyncio.run(main())
    records = list(replay(session.journal, verify=True).records)
    assert [text for _, _, text in world.done] == ["two"]
    assert {"a": "failed", "b": "executed"}.items() <= dict(changes(records)).items()
    assert "- a (t.write): failed: t.write did not complete." in heard(session)


def asked(session: Session) -> list[int]:
    return [one.n for one in session.records() if one.kind == "clearance" and one.text("op") == "ask"]


# --- crashes ----------------------------------------------------------------------------------------------------


def test_a_plan_goes_on_from_every_record_and_no_effect_happens_twice(tmp_path: Path) -> None:
    """As after `kill -9` behind each record of a session with steps, a child agent and a failure."""
    script, answers = researcher(), {"A step failed.": "{}", "Plan the": "no"}
    first = World()
    body = AGENTS + "  - {id: bad, call: t.fail, params: {text: bad}}\n"
    script["/"] = [plan(body), "Done."]

    async def main() -> int:
        async with runtime(tmp_path, replies(script), world=first, answers=answers) as opened:
            session = await opened.open()
            await session.ask("Go")
            records, name = list(session.records()), session.id
        began = next(one.n for one in records if one.kind == "spawn")
        for at in range(began, len(records)):
            world = World()
            async with runtime(tmp_path, replies(script), world=world, answers=answers) as opened:
                copy = await opened.open(await opened.fork(name, at, run=True))
                await copy.answer(at)
            replay(copy.journal, verify=True)
            called = {
                (one.agent, one.number("action"))
                for one in records[:at]
                if one.kind == "call" and one.text("function") in ("t.write", "t.fail")
            }
            made = [
                one
                for one in copy.records(at)
                if one.kind == "call" and one.text("function") in ("t.write", "t.fail")
            ]
            effects = [text for _, function, text in world.done if function == "t.write"]
            assert len(called) + len(made) <= 3, f"behind record {at}: {made}"
            assert len(effects) == len(set(effects))
        return len(records) - began

    assert asyncio.run(main()) > 40


def test_a_plan_that_is_dropped_by_a_fork_carries_nothing_out_and_ends(tmp_path: Path) -> None:
    """From each record of it: no step, no call of its child agents; the root hears that it did not finish."""
    script, answers = researcher(), {"A step failed.": "{}", "Plan the": "no"}
    script["/"] = [plan(AGENTS), "Done.", "Fine.", "Fine."]

    async def main() -> int:
        async with runtime(tmp_path, replies(script), answers=answers) as opened:
            session = await opened.open()
            await session.ask("Go")
            records, name = list(session.records()), session.id
        began = next(one.n for one in records if one.kind == "spawn")
        below = next(one.agent for one in records if one.n == began)
        ended = next(one.n for one in records if one.kind == "reply" and one.agent == below)
        for at in range(began, ended):
            world = World()
            async with runtime(tmp_path, replies(script), world=world, answers=answers) as opened:
                copy = await opened.open(await opened.fork(name, at))
                assert not [view.path for view in copy.tree() if view.state in ("acting", "thinking")], at
                assert (await copy.ask("Rather not.")).text("status") == "ok"
            replay(copy.journal, verify=True)
            assert not world.done, f"behind record {at}"
        return ended - began

    assert asyncio.run(main()) > 25


JUDGING = {
    "Plan the": WRITTEN,
    "Judge the": '{"decision": "continue", "reason": "go on"}',
    "Look at ": '{"action": "continue"}',
    "A step failed.": '{"steps": [{"id": "instead", "call": "t.read", "params": {"text": "instead"}}]}',
    "Decide whether": '{"achieved": true, "confidence": 0.9, "reasoning": "all there", "final_answer": "There."}',
    "Answer from": "All is there.",
    "Answer the task": "All is there [a].",
    "Write the whole": json.dumps(
        {
            "steps": [
                {"id": "a", "call": "t.read", "params": {"text": "one"}},
                {"id": "b", "call": "t.write", "auto": {"text": "lower(a)"}, "after": ["a"]},
                {"id": "c", "call": "t.read", "params": {"text": "three"}},
            ],
            "confidence": 0.9,
            "branches": [{"step": "c", "when": "a contains 'one'", "set": {"text": "four"}}],
        }
    ),
}


@pytest.mark.parametrize("mode", ["static", "reflect", "nreflect", "orchestrator", "analyze", "profile"])
def test_a_plan_of_every_mode_goes_on_after_every_record(tmp_path: Path, mode: str) -> None:
    """It ends with the same result, verifies, and makes no call with an effect a second time."""
    script = replies({"/": [plan("goal: Find out", f"PLAN audit mode={mode}"), "Done."]})

    async def main() -> list[str]:
        async with runtime(tmp_path, script, answers=JUDGING) as opened:
            session = await opened.open()
            await session.ask("Go")
            records, name = list(session.records()), session.id
        replay(session.journal, verify=True)
        began = next(one.n for one in records if one.kind == "spawn")
        for at in range(began, len(records)):
            world = World()
            async with runtime(tmp_path, script, world=world, answers=JUDGING) as opened:
                copy = await opened.open(await opened.fork(name, at, run=True))
                await copy.answer(at)
            replay(copy.journal, verify=True)
            before = sum(one.kind == "call" and one.text("function") == "t.write" for one in records[:at])
            after = sum(function == "t.write" for _, function, _ in world.done)
            assert before + after == 1, f"after record {at}"
            if not lost(records[:at]):
                assert ended(copy.records()) == ended(records), f"after record {at}"
        return [one.text("question") for one in records if one.kind == "ask"]

    questions = asyncio.run(main())
    assert questions[0] == ("profile" if mode == "profile" else "plan")
    assert (len(questions) >= 2) is (mode != "static")


def ended(records: Sequence[Record]) -> list[tuple[str, str]]:
    """How the plan and the root answered."""
    return [(one.agent, one.body) for one in records if one.kind == "reply"]


def lost(records: Sequence[Record]) -> bool:
    """Whether a call with an effect was under way: what came of it nobody knows, so it is not made again."""
    calls = {one.n for one in records if one.kind == "call" and one.text("function") == "t.write"}
    return bool(calls - {one.number("call") for one in records if one.kind == "result"})


def test_a_plan_that_waits_for_a_person_goes_on_after_every_record(tmp_path: Path) -> None:
    """With an agent among its steps. What a person allowed before is not asked again."""
    policy = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]'
    script = replies({**researcher(), "/audit/researcher": ["Three CVEs.", "Still three."]})
    answers = {"A step failed.": "{}", "Plan the": "no"}

    async def answered(session: Session, since: int, finish: asyncio.Task[Record]) -> None:
        """A person says yes to all that waits, until it is over."""
        while not finish.done():
            for call in open_questions(session):
                await session.clear(call, True)
            await asyncio.sleep(0)

    async def through(session: Session, since: int) -> None:
        async with asyncio.TaskGroup() as group:
            finish = group.create_task(session.answer(since))
            group.create_task(answered(session, since, finish))

    async def main() -> int:
        async with runtime(tmp_path, script, world=World(), answers=answers, policy=policy) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await through(session, said.n)
            records, name = list(session.records()), session.id
        began = next(one.n for one in records if one.kind == "spawn")
        for at in range(began, len(records)):
            world = World()
            async with runtime(tmp_path, script, world=world, answers=answers, policy=policy) as opened:
                copy = await opened.open(await opened.fork(name, at, run=True))
                await through(copy, at)
            replay(copy.journal, verify=True)
            before = sum(one.kind == "call" and one.text("function") == "t.write" for one in records[:at])
            after = sum(function == "t.write" for _, function, _ in world.done)
            assert before + after == 1, f"after record {at}"
        return len(records) - began

    assert asyncio.run(main()) > 30


def open_questions(session: Session) -> list[int]:
    """Questions to a person that have no answer yet."""
    answered = {one.number("ask") for one in session.records() if one.text("op") == "answer"}
    return [call for call in asked(session) if call not in answered]


def test_a_plan_that_was_cut_off_while_it_was_planned_is_planned_on(tmp_path: Path) -> None:
    more = {"Plan the steps": ["steps: [{id: c, call: t.write, params: {text: three}}]"]}
    script = replies({"/": [plan("goal: Find out"), "Done."]})

    async def main() -> None:
        async with runtime(tmp_path, script, answers={"Plan the steps": [WRITTEN]}) as opened:
            session = await opened.open()
            await session.ask("Go")
            cut = next(one.n for one in session.records() if one.kind == "plan")
            forked = await opened.fork(session.id, cut, run=True)
        async with runtime(tmp_path, script, answers=more) as opened:
            copy = await opened.open(forked)
            await copy.answer(cut)
            assert dict(changes(copy.records()))["c"] == "executed"
        replay(copy.journal, verify=True)

    asyncio.run(main())


def test_verification_notices_a_step_that_moved_otherwise(tmp_path: Path) -> None:
    from iact.core.errors import ReplayMismatch
    from tests.core.session.test_verify import rewrite

    session, _, _ = ask(tmp_path, replies({"/": [plan(TWO), "Done."]}))

    def early(records: list[Record]) -> list[Record]:
        at = next(n for n, one in enumerate(records) if one.kind == "node" and one.text("to") == "executed")
        return [*records[:at], *records[at + 1 :]]

    rewrite(session.journal, early)
    with pytest.raises(ReplayMismatch):
        replay(session.journal, verify=True)


def test_a_bug_in_the_machine_costs_the_plan_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record that it was told of is in the journal: so it must be read again, also by a program with that bug."""
    told = PlanMachine.attempt_ended

    def breaks(machine: PlanMachine, node: str, outcome: Outcome | None, at: float) -> None:
        if node == "a":
            raise KeyError("a bug")
        told(machine, node, outcome, at)

    monkeypatch.setattr(PlanMachine, "attempt_ended", breaks)

    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done.", "And more."]}) as scene:
            assert (await scene.finish()).body == "Done."
            await until(lambda: not scene.world.running)
            assert (await scene.session.ask("More?")).body == "And more."
        return scene

    scene = asyncio.run(main())
    assert "An internal error ended this plan (KeyError)." in heard(scene.session)
    assert not replay(scene.session.journal, verify=True).tree.agents["/audit"].actions


async def test_while_a_plan_is_paused_its_time_writes_nothing(tmp_path: Path) -> None:
    async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}) as scene:
        run = scene.session.state.agents["/audit"].plan
        assert run is not None
        assert run.due is not None
        await scene.session.pause("/audit")
        assert run.due is None
        await scene.session.resume("/audit")
        assert run.due is not None
        assert (await scene.finish()).body == "Done."


async def test_a_session_that_stops_while_files_are_listed_for_a_plan_records_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = Grounding.listing

    async def and_stops(grounding: Grounding, tree: Tree, agent: Agent) -> SeenFiles | None:
        found = await listing(grounding, tree, agent)
        session._live.stop(IactError("An internal error stopped this session."))
        return found

    monkeypatch.setattr(Grounding, "listing", and_stops)
    async with runtime(tmp_path, replies({"/": ["Nothing."]})) as opened:
        session = await opened.open()
        with pytest.raises(IactError, match="An internal error stopped"):
            await session.run_plan(HELD, thinks=False)
        assert not {"spawn", "control"} & {record.kind for record in session.records()}
