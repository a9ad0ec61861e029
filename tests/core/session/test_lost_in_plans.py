"""A content that is lost while a plan is under way: no tool is given the sentence about it, and the plan says so."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from iact.core.records.record import Record
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from tests.core.session.fakes import World, replies
from tests.core.session.plan_scenes import Answers, heard, plan, runtime, until

LONG: Final = "a line of many words " * 1500
SENTENCE: Final = "The content of this value was lost."
GIVE_UP: Final[Answers] = {
    "A step failed.": '{"action": "give_up", "cause": "gone"}',
    "The steps below are a plan": "no",
    "Plan the": "no",
    "A plan": "no",
}

FROM_A_STEP: Final = f"""\
goal: Look
steps:
  - {{id: a, call: t.read, params: {{text: "{LONG}"}}}}
  - {{id: b, call: t.read, params: {{text: held}}, after: [a]}}
  - {{id: c, call: t.write, refs: {{text: {{step: a}}}}, after: [b]}}
"""
FROM_THE_CALLER: Final = """\
goal: Look
steps:
  - {id: b, call: t.read, params: {text: held}}
  - {id: c, call: t.write, params: {text: $read_1}, after: [b]}
"""
TO_AN_AGENT: Final = f"""\
goal: Look
steps:
  - {{id: a, call: t.read, params: {{text: "{LONG}"}}}}
  - {{id: b, call: t.read, params: {{text: held}}, after: [a]}}
  - {{id: c, agent: reader, task: Read it., refs: {{text: {{step: a}}}}, after: [b]}}
"""
READ: Final = f"```READ\n{LONG}\n```"
GIVEN: Final = plan(FROM_THE_CALLER)


def _is_held(session: Session) -> bool:
    return any(record.kind == "call" and record.agent == "/audit" for record in _of_step_b(session))


def _of_step_b(session: Session) -> list[Record]:
    records = list(session.records())
    fired = next((record.n for record in records if record.text("node") == "b" and record.kind == "fire"), 0)
    return records[fired:] if fired else []


async def _held(data: Path, root: list[str]) -> Path:
    """A session that ended while step b of its plan ran; its contents are lost then. Returns its directory."""
    world = World(hold={"held": asyncio.Event()})
    async with runtime(data, replies({"/": root}), world=world) as opened:
        session = await opened.open()
        await session.say("Go")
        await until(lambda: _is_held(session))
        folder = session.journal.parent
    for blob in (folder / "blobs").iterdir():
        blob.unlink()
    return folder


@pytest.mark.parametrize(
    ("root", "why"),
    [
        ([plan(FROM_A_STEP), "Done."], "the content of the result of a, which is its text, was lost"),
        ([READ, GIVEN, "Done."], "the content of the variable that is its text was lost"),
    ],
    ids=["from a step", "from its caller"],
)
async def test_a_tool_is_not_given_what_was_lost(tmp_path: Path, root: list[str], why: str) -> None:
    folder = await _held(tmp_path, root)

    world = World()
    async with runtime(tmp_path, replies({"/": root}), world=world, answers=GIVE_UP) as opened:
        session = await opened.open(folder.name)
        await until(lambda: not session.state.at_work or session.failure is not None)
        assert session.failure is None
        told = heard(session)

    assert f"t.write was not run: {why}." in told
    assert not any(SENTENCE in text for _, _, text in world.done)
    assert [name for _, name, _ in world.done] == ["t.read"]
    replay(folder, verify=True)


async def test_an_agent_of_a_step_reads_that_it_was_lost(tmp_path: Path) -> None:
    script = {"/": [plan(TO_AN_AGENT), "Done."], "/audit/reader": ["It is not there."]}
    folder = await _held(tmp_path, script["/"])

    async with runtime(tmp_path, replies(script), answers=GIVE_UP) as opened:
        session = await opened.open(folder.name)
        await until(lambda: not session.state.at_work or session.failure is not None)
        assert session.failure is None
        assert "was lost" in heard(session, "/audit/reader")
    replay(folder, verify=True)


async def test_what_was_read_before_it_was_lost_is_passed_on(tmp_path: Path) -> None:
    """A plan that goes on has its results in memory. Only who opens the session again is without them."""
    script = {"/": [plan(FROM_A_STEP), "Done."]}
    hold = asyncio.Event()
    world = World(hold={"held": hold})
    async with runtime(tmp_path, replies(script), world=world) as opened:
        session = await opened.open()
        said = await session.say("Go")
        await until(lambda: _is_held(session))
        folder = session.journal.parent
        for blob in (folder / "blobs").iterdir():
            blob.unlink()
        hold.set()
        answer = await session.answer(said.n)
    assert answer.body == "Done."
    assert world.done[-1][1:] == ("t.write", LONG)
    replay(folder, verify=True)
