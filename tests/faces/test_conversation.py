"""An exchange through a face: every record once and in order, questions that wait for a person, and the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from a2a.types import Message, Part
from ag_ui.core import ResumeEntry

from iact.core import Session
from iact.core.errors import IactError, UsageError
from iact.core.records.forms import FormAnswer
from iact.core.records.record import Record
from iact.core.views.consent import question_digest
from iact.core.views.events import Delta, Event, RecordAppended
from iact.core.views.questions import OpenQuestions
from iact.faces.a2a.said import answer as from_agent
from iact.faces.ag_ui import heard
from iact.faces.asked_text import asked_text, is_answer
from iact.faces.conversation import ClientAnswer, Exchange, answer, say, turn_of, unattended
from tests.core.session import plan_scenes
from tests.core.session.fakes import World, replies, runtime
from tests.core.session.test_clearance import ASKS, ONE
from tests.core.session.test_forms import asks, question
from tests.core.session.test_plans import PAINTER


async def answered(session: Session, exchange: Exchange, allow: bool) -> tuple[list[Record], str]:
    """Read an exchange to its end and answer what it asks; gives its records, and what the root wrote."""
    records: list[Record] = []
    written = ""
    async for event in exchange:
        if isinstance(event, RecordAppended):
            records.append(event.record)
            for question in exchange.questions.waiting:
                if question.n == event.record.n:
                    await session.clear(question.n, allow)
        elif isinstance(event, Delta):
            written = event.text if event.restart else written + event.text
    return records, written


async def rest(events: AsyncIterator[Event]) -> list[Event]:
    return [one async for one in events]


def numbers(records: Sequence[Record]) -> list[int]:
    return [one.n for one in records]


@pytest.mark.parametrize("allow", [True, False])
async def test_an_exchange_gives_each_record_once_and_its_question_waits_until_it_is_answered(
    tmp_path: Path, allow: bool
) -> None:
    world = World()
    async with runtime(tmp_path, replies(ONE), world=world, policy=ASKS) as opened:
        session = await opened.open(intent=2)
        exchange = await say(session, "Write it.")
        records, written = await answered(session, exchange, allow)
        assert numbers(records) == list(range(exchange.said.n + 1, exchange.reply.n + 1))
        assert exchange.reply.body == "Done."
        assert written.endswith("Done.")
        assert exchange.questions.waiting == ()
        assert len(world.done) == allow


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("deny", "decline {}"),
        ('{"allow": false, "values": {"town": "Oslo"}}', "decline {}"),
        (
            '{"allow": true, "values": {"town": "Oslo"}}',
            'accept {"town": "Oslo", "nights": 2, "room": "single"}',
        ),
    ],
)
async def test_what_a_module_asks_is_answered_in_a_word_or_with_values(
    tmp_path: Path, said: str, heard: str
) -> None:
    world = World()
    async with runtime(tmp_path, replies({"/": [asks(), "Done."]}), world=world) as opened:
        session = await opened.open(intent=1)
        exchange = await say(session, "Go.")
        asked = await question(session)
        seen = question_digest(session.records(asked - 1)[0])
        with pytest.raises(UsageError, match="Town: this is needed"):
            await answer(session, [ClientAnswer(asked, seen, "allow")])
        await answer(session, [ClientAnswer(asked, seen, said)])
        await rest(aiter(exchange))
    assert [text for _, _, text in world.done] == [heard]


async def test_where_nobody_is_there_a_module_is_told_no(tmp_path: Path) -> None:
    world = World()
    async with runtime(tmp_path, replies({"/": [asks(), "Done."]}), world=world) as opened:
        session = await opened.open(intent=1)
        assert await unattended(await say(session, "Go.")) == 1
    assert [text for _, _, text in world.done] == ["decline {}"]


async def test_a_form_says_with_which_line_it_is_answered(tmp_path: Path) -> None:
    world = World()
    async with runtime(tmp_path, replies({"/": [asks(), "Done."]}), world=world) as opened:
        session = await opened.open(intent=1)
        exchange = await say(session, "Go.")
        asked = session.records(await question(session) - 1)[0]
        text = asked_text(session.id, asked)
        inside, outside = text.split("```\n\n")
        line = inside.rstrip().splitlines()[-1]
        assert line == '{"allow": true, "values": {"town": "…"}}'
        assert '"allow" or' not in outside
        assert is_answer(asked, line)
        await answer(session, [ClientAnswer(asked.n, question_digest(asked), line)])
        await rest(aiter(exchange))
    assert [text for _, _, text in world.done] == [
        'accept {"town": "\\u2026", "nights": 2, "room": "single"}'
    ]


@pytest.mark.parametrize(
    ("said", "decision"),
    [("{x} is the set", "accept"), ('{"colour": "green"}', "accept"), ('{"allow": false}', "decline")],
)
async def test_an_answer_in_words_may_begin_with_a_brace(tmp_path: Path, said: str, decision: str) -> None:
    answers = {"A helper asks something": '{"ask_person": true}', "A step failed.": "{}", "Plan the": "no"}
    async with plan_scenes.runtime(tmp_path, replies(PAINTER), answers=answers) as opened:
        session = await opened.open()
        exchange = await say(session, "Go.")
        await plan_scenes.until(lambda: OpenQuestions(session.records()).waiting)
        (asked,) = OpenQuestions(session.records()).waiting
        decided = await answer(session, [ClientAnswer(asked.n, question_digest(asked), said)])
        await rest(aiter(exchange))
    assert decided.text("decision") == decision


SHOWS = '```FRONTEND tool=show\n{"place": "Oslo"}\n```'


async def test_where_nobody_is_there_no_tool_of_a_front_end_is_said_to_have_run(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": [SHOWS, "Done."]})) as opened:
        session = await opened.open(intent=1)
        said = await session.say("Go.", tools=["show"])
        assert await unattended(Exchange(session, said)) == 1
        (decided,) = [one for one in session.records() if isinstance(one.content, FormAnswer)]
        assert (decided.text("decision"), decided.text("by")) == ("decline", "user")


async def test_where_nobody_is_there_an_agents_question_is_not_answered(tmp_path: Path) -> None:
    """Its answer is whatever a person says, so a no that is a word would be that person's answer."""
    answers = {"A helper asks something": '{"ask_person": true}', "A step failed.": "{}", "Plan the": "no"}
    async with plan_scenes.runtime(tmp_path, replies(PAINTER), answers=answers) as opened:
        session = await opened.open()
        assert await unattended(await say(session, "Go.")) == 1
        (decided,) = [one for one in session.records() if isinstance(one.content, FormAnswer)]
        assert (decided.text("decision"), decided.text("by")) == ("decline", "user")


@pytest.mark.parametrize("no", ["deny", '{"allow": false}'])
async def test_the_no_of_an_agents_client_is_the_answer_of_nobody(tmp_path: Path, no: str) -> None:
    """A2A has one word for no, also for what takes any words."""
    async with runtime(tmp_path, replies({"/": [SHOWS, "Done."]})) as opened:
        session = await opened.open(intent=1)
        said = await session.say("Go.", tools=["show"])
        asked = session.records(await question(session) - 1)[0]
        await from_agent(session, Message(parts=[Part(text=no)]), [asked])
        await session.answer(said.n)
        (decided,) = [one for one in session.records() if isinstance(one.content, FormAnswer)]
        assert decided.text("decision") == "decline"


def test_an_interrupt_that_its_front_end_leaves_is_a_no() -> None:
    left = ResumeEntry(interrupt_id="call_s_1_0123456789abcdef", status="cancelled")
    assert heard.answers([left]) == [(left.interrupt_id, None)]


async def test_a_second_exchange_begins_behind_the_first(tmp_path: Path) -> None:
    script = {"/": ["One.", "Two."]}
    async with runtime(tmp_path, replies(script)) as opened:
        session = await opened.open()
        for expected in ("One.", "Two."):
            exchange = await say(session, "Go on.")
            records, _ = await answered(session, exchange, True)
            assert exchange.reply.body == expected
            assert records[0].n == exchange.said.n + 1
            assert records[-1] == exchange.reply


async def test_an_exchange_in_a_session_that_is_closed_ends_with_an_error(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies(ONE)) as opened:
        session = await opened.open()
        exchange = await say(session, "Write it.")
        events = aiter(exchange)
        await anext(events)
        await opened.close(session.id)
        with pytest.raises(IactError):
            await rest(events)


async def test_a_turn_is_found_by_its_id_and_by_nothing_else(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": ["One."]})) as opened:
        session = await opened.open()
        exchange = await say(session, "Go.")
        await rest(aiter(exchange))
        found = await turn_of(opened, f"{session.id}.{exchange.said.n}")
        assert (found.said, found.reply) == (exchange.said, exchange.reply)
        for wrong in (
            "",
            ".",
            session.id,
            *(f"{session.id}.{n}" for n in (0, exchange.reply.n, "9" * 5000, "٣", "-1")),
        ):
            with pytest.raises(UsageError, match="There is no task"):
                await turn_of(opened, wrong)
