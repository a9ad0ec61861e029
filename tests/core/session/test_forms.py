"""What modules ask a person: put to them once, carried back, bounded, in the journal, verified, and never an agent's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from iact.core import Session
from iact.core.errors import UsageError
from iact.core.journal import read_journal
from iact.core.ports import JSON
from iact.core.records.form_fields import form_fields
from iact.core.records.forms import FormAsk
from iact.core.records.record import Record
from iact.core.session.monitor import Authorities
from iact.core.stored.replay import replay
from iact.core.views.questions import OpenQuestions, undecided_since
from tests.core.session.fakes import World, replies, runtime
from tests.core.session.test_control import until

SCHEMA: Mapping[str, JSON] = {
    "type": "object",
    "properties": {
        "town": {"type": "string", "title": "Town", "maxLength": 20},
        "nights": {"type": "integer", "minimum": 1, "maximum": 30, "default": 2},
        "room": {"type": "string", "enum": ["single", "double"], "default": "single"},
    },
    "required": ["town"],
}


def asks(message: str = "Where to?", schema: Mapping[str, JSON] | str | None = SCHEMA, url: str = "") -> str:
    """A call that asks."""
    told = schema if isinstance(schema, str) else "" if schema is None else json.dumps(schema)
    said = json.dumps({"message": message, "schema": told, "url": url})
    return f"```t.read\nask {said}\n```"


def forms(records: Sequence[Record], op: str) -> list[Record]:
    return [one for one in records if one.kind == "form" and one.text("op") == op]


async def question(session: Session, known: int = 0) -> int:
    """The number of a question that stands open, behind record `known`."""
    await until(lambda: bool(forms(session.records(known), "ask")))
    return forms(session.records(known), "ask")[0].n


def play(
    data: Path,
    script: Sequence[str],
    act: Callable[[Session], Awaitable[None]] | None = None,
    *,
    authorities: Authorities | None = None,
    tools: Sequence[str] = (),
) -> tuple[list[str], list[Record]]:
    """Say something, and meanwhile act; gives what calls came to, and the journal, verified. `tools`: of the front end."""
    world = World()

    async def main() -> Path:
        made = runtime(data, replies({"/": [*script, "Done."]}), world=world, authorities=authorities)
        async with made as opened:
            session = await opened.open(intent=1)
            said = await session.say("Go", tools=tools)
            if act is not None:
                await act(session)
            await session.answer(said.n)
            assert OpenQuestions(session.records()).waiting == ()
            return session.journal

    journal = asyncio.run(main())
    return [text for _, _, text in world.done], list(replay(journal, verify=True).records)


def test_what_a_person_fills_in_goes_to_the_module_with_the_defaults(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        asked = await question(session)
        (waiting,) = OpenQuestions(session.records()).waiting
        assert waiting.n == asked
        await session.answer_form(asked, "accept", {"town": "Oslo", "nights": 3})

    done, records = play(tmp_path, [asks()], act)
    assert done == ['accept {"town": "Oslo", "nights": 3, "room": "single"}']
    (ask,), (answer,) = forms(records, "ask"), forms(records, "answer")
    assert isinstance(ask.content, FormAsk)
    assert (ask.content.function, ask.content.message) == ("t.read", "Where to?")
    assert [one.kind for one in ask.content.fields] == ["text", "integer", "choice"]
    (call,) = [one.n for one in records if one.kind == "call"]
    assert ask.content.call == call
    assert answer.fields["values"] == {"town": "Oslo", "nights": 3, "room": "single"}
    assert answer.text("by") == "user"


def test_a_person_may_refuse_and_lets_nothing_out(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        await session.answer_form(await question(session), "decline", {"town": "Oslo"})

    done, records = play(tmp_path, [asks()], act)
    assert done == ["decline {}"]
    assert "values" not in forms(records, "answer")[0].fields


def test_what_does_not_fit_is_not_taken_and_the_question_stays_open(tmp_path: Path) -> None:
    wrong: list[tuple[Mapping[str, JSON], str]] = [
        ({}, "Town: this is needed"),
        ({"town": "x" * 21}, "Town: This can be at most 20 characters"),
        ({"town": 7}, "Town: This must be a text"),
        ({"town": "Oslo", "nights": 2.5}, "nights: This must be a whole number"),
        ({"town": "Oslo", "nights": 0}, "nights: This must be at least 1"),
        ({"town": "Oslo", "nights": True}, "nights: This must be a number"),
        ({"town": "Oslo", "room": "suite"}, "room: This must be one of what can be chosen"),
        ({"town": "Oslo", "card": "4111"}, "The form has no field 'card'"),
    ]

    async def act(session: Session) -> None:
        asked = await question(session)
        for values, sentence in wrong:
            with pytest.raises(UsageError, match=sentence):
                await session.answer_form(asked, "accept", values)
        await session.answer_form(asked, "accept", {"town": "Oslo"})

    done, records = play(tmp_path, [asks()], act)
    assert done == ['accept {"town": "Oslo", "nights": 2, "room": "single"}']
    assert len(forms(records, "answer")) == 1


def test_only_what_is_asked_can_be_answered_and_only_once(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        asked = await question(session)
        with pytest.raises(UsageError, match="No call waits"):
            await session.answer_form(asked + 1, "decline")
        first = asyncio.ensure_future(session.answer_form(asked, "accept", {"town": "Oslo"}))
        second = asyncio.ensure_future(session.answer_form(asked, "accept", {"town": "Rome"}))
        await asyncio.wait([first, second])
        assert first.exception() is None
        with pytest.raises(UsageError, match="No call waits"):
            await second

    done, records = play(tmp_path, [asks()], act)
    assert done == ['accept {"town": "Oslo", "nights": 2, "room": "single"}']
    assert len(forms(records, "answer")) == 1


def test_a_question_without_fields_is_answered_with_yes_or_no_and_an_address_likewise(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        asked = await question(session)
        await session.answer_form(asked, "accept")
        await session.answer_form(await question(session, asked), "accept")

    done, records = play(tmp_path, [asks(schema=None), asks(schema=None, url="https://pay.example/7")], act)
    assert done == ["accept {}", "accept {}"]
    assert [one.fields.get("url") for one in forms(records, "ask")] == [None, "https://pay.example/7"]


REFUSED: Mapping[str, tuple[str, str, str]] = {
    "many fields": (
        "Hm?",
        json.dumps({"properties": {f"f{n}": {"type": "string"} for n in range(1000)}}),
        "",
    ),
    "nested": ("Hm?", '{"properties": {"a": {"type": "object", "properties": {}}}}', ""),
    "no type": ("Hm?", '{"properties": {"a": {}}}', ""),
    "no JSON": ("Hm?", "{", ""),
    "deep": ("Hm?", "[" * 60_000, ""),
    "an array": ("Hm?", "[]", ""),
    "hidden name": ("Hm?", '{"properties": {"a\\u202eb": {"type": "string"}}}', ""),
    "hidden choice": ("Hm?", '{"properties": {"a": {"type": "string", "enum": ["a\\u200b"]}}}', ""),
    "numbers to choose": ("Hm?", '{"properties": {"a": {"type": "string", "enum": [1, 2]}}}', ""),
    "nothing to choose": ("Hm?", '{"properties": {"a": {"type": "string", "enum": []}}}', ""),
    "long title": ("Hm?", json.dumps({"properties": {"a": {"type": "string", "title": "x" * 300}}}), ""),
    "format password": ("Hm?", '{"properties": {"a": {"type": "string", "format": "password"}}}', ""),
    "write only": ("Hm?", '{"properties": {"a": {"type": "string", "writeOnly": true}}}', ""),
    "called a password": ("Hm?", '{"properties": {"oldPassword": {"type": "string"}}}', ""),
    "called a key": ("Hm?", '{"properties": {"api_key": {"type": "string"}}}', ""),
    "titled as a token": (
        "Hm?",
        '{"properties": {"a": {"type": "string", "title": "Your GitHub access token"}}}',
        "",
    ),
    "no message": (" ", "", ""),
    "long message": ("x" * 5000, "", ""),
    "script": ("Hm?", "", "javascript:alert(1)"),
    "http": ("Hm?", "", "http://pay.example/"),
    "a user name": ("Hm?", "", "https://bank.example@evil.example/"),
    "odd host": ("Hm?", "", "https://b\u0430nk.example/"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_nobody_can_be_shown_is_refused_with_a_sentence(tmp_path: Path, name: str) -> None:
    message, schema, url = REFUSED[name]
    (done,), records = play(tmp_path, [asks(message, schema, url)])
    assert done.startswith("refused {} ")
    assert done.endswith(".")
    assert not forms(records, "ask")


@pytest.mark.parametrize(
    "name", ["token", "key", "passport", "secretary", "tokens_left", "keyboard", "bypass"]
)
def test_what_is_no_secret_is_asked_for(name: str) -> None:
    assert [one.name for one in form_fields(json.dumps({"properties": {name: {"type": "string"}}}))] == [name]


def test_what_nobody_sees_in_words_that_are_shown_is_written_out(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        await session.answer_form(await question(session), "decline")

    schema: Mapping[str, JSON] = {"properties": {"a": {"type": "string", "title": "A\u202ex"}}}
    _, records = play(tmp_path, [asks("Pay\u200b <b>now</b>", schema)], act)
    (ask,) = [one.content for one in forms(records, "ask")]
    assert isinstance(ask, FormAsk)
    assert (ask.message, ask.fields[0].title) == ("Pay\\u200b <b>now</b>", "A\\u202ex")


def test_with_nobody_to_ask_it_is_answered_at_once(tmp_path: Path) -> None:
    done, records = play(tmp_path, [asks()], authorities=Authorities(attended=False))
    assert done == ["cancel {} There is nobody to ask."]
    (answered,) = forms(records, "answer")
    assert (answered.text("decision"), answered.text("by")) == ("cancel", "policy")
    assert [one.question for one in undecided_since(records, 0)] == forms(records, "ask")


def test_who_says_nothing_in_time_lets_nothing_out(tmp_path: Path) -> None:
    done, records = play(tmp_path, [asks()], authorities=Authorities(seconds=0.05))
    assert done == ["cancel {} Nobody answered in time."]
    assert forms(records, "answer")[0].text("by") == "time"


def test_in_a_lockdown_nobody_is_asked(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        asked = await question(session)
        await session.lockdown(True)
        await session.answer_form(asked, "decline")
        await session.lockdown(False)

    _, records = play(tmp_path, [asks()], act)
    assert len(forms(records, "ask")) == 1


def test_a_question_ends_with_its_call(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        asked = await question(session)
        await session.inject("/", "Stop that", "interrupt")
        await until(lambda: bool(forms(session.records(), "answer")))
        with pytest.raises(UsageError, match="No call waits"):
            await session.answer_form(asked, "accept", {"town": "Oslo"})

    done, records = play(tmp_path, [asks(), "I stop."], act)
    assert done == []
    assert forms(records, "answer")[0].text("by") == "core"


def test_a_question_that_a_crash_left_is_closed_when_the_session_is_opened_again(tmp_path: Path) -> None:
    identity = ""

    async def first() -> None:
        nonlocal identity
        async with runtime(tmp_path, replies({"/": [asks(), "Done."]})) as opened:
            session = await opened.open(intent=1)
            identity = session.id
            await session.say("Go")
            await question(session)

    asyncio.run(first())
    journal = tmp_path / "sessions" / identity / "journal.md"
    records = read_journal(journal.parent).records
    assert [one.text("by") for one in forms(records, "answer")] == ["core"]
    replay(journal, verify=True)


async def test_a_fork_in_the_middle_of_a_question_asks_nothing(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({"/": [asks(), "Done."]})) as opened:
        session = await opened.open(intent=1)
        said = await session.say("Go")
        asked = await question(session)
        other = await opened.open(await opened.fork(session.id, asked))
        await until(lambda: OpenQuestions(other.records()).waiting == ())
        assert other.state.forms == {}
        await session.answer_form(asked, "decline")
        await session.answer(said.n)
        replay(other.journal, verify=True)


def everything(data: Path) -> Path:
    """A session with every kind of record about forms; its folder."""

    async def act(session: Session) -> None:
        asked = await question(session)
        await session.answer_form(asked, "accept", {"town": "Oslo"})
        asked = await question(session, asked)
        await session.answer_form(asked, "decline")
        asked = await question(session, asked)
        await session.answer_form(asked, "accept")
        await session.answer_form(await question(session, asked), "accept", {"result": "shown"})

    shows = '```FRONTEND tool=show\n{"place": "Oslo"}\n```'
    script = [asks(), asks("And then?"), asks("Pay here.", None, "https://pay.example/"), shows]
    _, records = play(data, script, act, tools=["show"])
    return data / "sessions" / records[0].text("session")
