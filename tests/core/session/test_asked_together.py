"""Several calls that wait for the same reason are one question: shown each in full, answered once, and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from iact.core import Session
from iact.core.errors import UsageError
from iact.core.journal import read_journal
from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.core.stored.replay import replay
from iact.core.views.questions import OpenQuestions
from tests.core.session.fakes import World, replies, runtime
from tests.core.session.test_clearance import ASKS, clearances
from tests.core.session.test_control import until
from tests.core.session.test_verify import mismatch, rewrite
from tests.records import with_fields

THREE = "```WRITE\na\n```\n```WRITE\nb\n```\n```WRITE\nc\n```"
SCRIPT = {"/": [THREE, "Done."]}


async def questions(session: Session, count: int) -> list[int]:
    """The questions that wait, once there are so many."""

    def waiting() -> tuple[Record, ...]:
        return OpenQuestions(session.records()).waiting

    await until(lambda: len(waiting()) >= count)
    return [one.n for one in waiting()]


def done(world: World) -> list[str]:
    return [text for _, _, text in world.done]


@pytest.mark.parametrize("allow", [True, False])
def test_calls_of_one_reply_are_asked_about_at_once_and_answered_once(tmp_path: Path, allow: bool) -> None:
    world = World()

    async def main() -> Path:
        async with runtime(tmp_path, replies(SCRIPT), world=world, policy=ASKS) as opened:
            session = await opened.open(intent=2)
            said = await session.say("Go")
            first, *others = await questions(session, 3)
            assert [one.n for one in OpenQuestions(session.records()).together()] == [first, *others]
            assert done(world) == []
            await session.clear(first, allow, also=others)
            await session.answer(said.n)
            return session.journal

    records = list(replay(asyncio.run(main()), verify=True).records)
    assert done(world) == (["a", "b", "c"] if allow else [])
    asked, answered = clearances(records, "ask"), clearances(records, "answer")
    assert [one.fields["params"] for one in asked] == [{"text": "a"}, {"text": "b"}, {"text": "c"}]
    assert [one.number("ask") for one in answered] == [one.n for one in asked]
    assert {(one.text("by"), one.fields["allow"]) for one in answered} == {("user", allow)}


def test_one_by_one_each_has_its_own_answer(tmp_path: Path) -> None:
    world = World()

    async def main() -> Path:
        async with runtime(tmp_path, replies(SCRIPT), world=world, policy=ASKS) as opened:
            session = await opened.open(intent=2)
            said = await session.say("Go")
            first, second, third = await questions(session, 3)
            await session.clear(third, True)
            await session.clear(second, False)
            assert done(world) == []  # they are made in their order
            await session.clear(first, True)
            await session.answer(said.n)
            return session.journal

    replay(asyncio.run(main()), verify=True)
    assert done(world) == ["a", "c"]


def test_a_call_that_was_not_shown_is_not_covered(tmp_path: Path) -> None:
    """The same function again, in the next reply: it is asked about, and the yes to all says nothing of it."""
    world = World()
    script = {"/": [THREE, "```WRITE\nd\n```", "Done."]}

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), world=world, policy=ASKS) as opened:
            session = await opened.open(intent=2)
            said = await session.say("Go")
            first, *others = await questions(session, 3)
            await session.clear(first, True, also=others)
            (later,) = await questions(session, 1)
            assert done(world) == ["a", "b", "c"]
            await session.clear(later, False)
            await session.answer(said.n)
            return session.journal

    replay(asyncio.run(main()), verify=True)
    assert done(world) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "reply",
    [
        "```WRITE\na\n```\n~~~WRITE text=$v\n~~~",  # what the name stands for may be another value by then
        "```WRITE\na\n```\n```WRITE\na\n```",  # made before
        "```WRITE\na\n```\n```t.read\nx\n```\n```WRITE\nb\n```",  # behind another function, whose result may matter
    ],
)
def test_what_may_be_another_call_by_its_turn_waits_for_it(tmp_path: Path, reply: str) -> None:
    script = {"/": [f"```VAR v\nb\n```\n{reply}", "Done."]}

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), policy=ASKS) as opened:
            session = await opened.open(intent=2)
            said = await session.say("Go")
            (first,) = await questions(session, 1)
            await session.clear(first, True)
            await until(lambda: len(clearances(session.records(), "ask")) == 2)
            results = [one for one in session.records() if one.kind == "result"]
            assert results[0].n < clearances(session.records(), "ask")[1].n
            await session.clear(clearances(session.records(), "ask")[1].n, True)
            await session.answer(said.n)
            return session.journal

    replay(asyncio.run(main()), verify=True)


def test_only_questions_that_are_one_are_answered_together_and_all_or_none(tmp_path: Path) -> None:
    world = World()

    async def main() -> Path:
        async with runtime(tmp_path, replies(SCRIPT), world=world, policy=ASKS) as opened:
            session = await opened.open(intent=2)
            said = await session.say("Go")
            first, second, third = await questions(session, 3)
            with pytest.raises(UsageError, match="answered together"):
                await session.clear(first, True, also=[said.n])
            await session.clear(second, False)
            with pytest.raises(UsageError, match="No call waits"):
                await session.clear(first, True, also=[second, third])
            assert await questions(session, 2) == [first, third]
            assert done(world) == []
            await session.clear(first, False, also=[third])
            await session.answer(said.n)
            return session.journal

    replay(asyncio.run(main()), verify=True)
    assert done(world) == []


def test_a_crash_asks_nothing_twice_and_keeps_the_answers(tmp_path: Path) -> None:
    world = World()

    async def ask() -> str:
        async with runtime(tmp_path, replies(SCRIPT), world=world, policy=ASKS) as opened:
            session = await opened.open(intent=2)
            await session.say("Go")
            _, second, _ = await questions(session, 3)
            await session.clear(second, False)
            return session.id

    async def answer(name: str) -> Path:
        async with runtime(tmp_path, replies({"/": ["Done."]}), world=world, policy=ASKS) as opened:
            session = await opened.open(name)
            first, third = await questions(session, 2)
            await session.clear(first, True, also=[third])
            await until(lambda: any(one.kind == "reply" for one in session.records()))
            return session.journal

    journal = asyncio.run(answer(asyncio.run(ask())))
    replay(journal, verify=True)
    assert done(world) == ["a", "c"]
    assert len(clearances(read_journal(journal).records, "ask")) == 3


def test_what_was_read_since_from_outside_voids_an_answer_that_was_given_ahead(tmp_path: Path) -> None:
    """The person saw calls of an agent that had read nothing; what it reads before their turn did not stand there."""
    world = World()

    async def main() -> None:
        async with runtime(tmp_path, replies(SCRIPT), world=world, policy=ASKS) as opened:
            session = await opened.open(intent=2)
            said = await session.say("Go")
            first, second, _ = await questions(session, 3)
            await session.clear(second, True)
            session.state.root.labels |= {"tool:web.fetch"}  # as a result would bring it
            await session.clear(first, True)
            await until(lambda: len(clearances(session.records(), "ask")) == 4)
            again = clearances(session.records(), "ask")[-1]
            assert (again.fields["params"], again.fields["read"]) == (
                {"text": "b"},
                ["inside:t.write", "tool:web.fetch"],
            )
            with pytest.raises(UsageError, match="No call waits"):
                await session.clear(second, True)
            assert done(world) == ["a"]
            await session.clear(again.n, False)
            await until(lambda: len(clearances(session.records(), "ask")) == 5)
            await session.clear(clearances(session.records(), "ask")[-1].n, False)
            await session.answer(said.n)

    asyncio.run(main())
    assert done(world) == ["a"]


@pytest.mark.parametrize("fields", [{"action": 2}, {"params": {"text": "z"}}, {"function": "t.read"}])
def test_a_question_ahead_of_its_turn_that_is_forged_is_named(
    tmp_path: Path, fields: Mapping[str, JSON]
) -> None:
    async def main() -> Path:
        async with runtime(tmp_path, replies(SCRIPT), policy=ASKS) as opened:
            session = await opened.open(intent=2)
            said = await session.say("Go")
            first, *others = await questions(session, 3)
            await session.clear(first, True, also=others)
            await session.answer(said.n)
            return session.journal

    journal = asyncio.run(main())
    second = clearances(read_journal(journal).records, "ask")[1]

    def change(records: list[Record]) -> list[Record]:
        return [with_fields(one, {**one.fields, **fields}) if one.n == second.n else one for one in records]

    rewrite(journal, change)
    assert mismatch(journal).n == second.n
