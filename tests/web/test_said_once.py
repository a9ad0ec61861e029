"""A message is said once, although its answer was lost and the server was started again before it came a second time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from iact.core.journal import read_journal
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.web.server import WebServer
from tests.core.session.fakes import Asked, TickingClock, runtime
from tests.web.dialling import Message, dial, run, send, until


def _answer(asked: Asked) -> str:
    return f"Answer {asked.turn + 1}."


async def _ask(opened: Runtime, session: str | None, **message: object) -> Message:
    """Send a message to a server that is started for it, and is ended when it has answered."""
    async with WebServer(opened) as server, dial(server) as client:
        await send(client, type="hello", session=session)
        await send(client, id=7, **message)
        return (await until(client, id=7))[-1]


def _said(data: Path) -> Mapping[str, list[str]]:
    """What people said in each session, the messages to agents included."""
    said = dict[str, list[str]]()
    for folder in sorted((data / "sessions").iterdir()):
        said[folder.name] = [record.body for record in read_journal(folder).records if _is_message(record)]
    return said


def _is_message(record: Record) -> bool:
    return record.kind == "say" or record.text("op") == "inject"


@pytest.mark.parametrize("is_told", [False, True])
def test_a_message_is_said_once_over_a_restart(tmp_path: Path, is_told: bool) -> None:
    """`is_told`: whether the client was told of the session, but not that its message was said."""

    async def test() -> None:
        async with runtime(tmp_path, _answer) as opened:
            first = await _ask(opened, None, type="say", text="Which moon?", once="one")

        session = str(first["session"])
        async with runtime(tmp_path, _answer) as opened:
            again = await _ask(
                opened, session if is_told else None, type="say", text="Which moon?", once="one"
            )
            assert (again["n"], again["session"]) == (first["n"], session)
        assert _said(tmp_path) == {session: ["Which moon?"]}

        async with runtime(tmp_path, _answer) as opened:
            other = await _ask(opened, session, type="say", text="Which moon?", once="two")
            assert other["n"] > first["n"]
        assert _said(tmp_path) == {session: ["Which moon?", "Which moon?"]}, (
            "another message, with the same text"
        )

    run(test)


def test_a_message_to_an_agent_is_said_once_over_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with runtime(tmp_path, _answer) as opened:
            session = str((await _ask(opened, None, type="say", text="Go", once="one"))["session"])
        word = {"type": "inject", "path": "/", "text": "Look at Titan.", "once": "two"}
        async with runtime(tmp_path, _answer) as opened:
            first = await _ask(opened, session, **word)
        async with runtime(tmp_path, _answer) as opened:
            again = await _ask(opened, session, **word)

        assert again["n"] == first["n"]
        assert _said(tmp_path) == {session: ["Go", "Look at Titan."]}

    run(test)


def test_a_message_of_an_hour_ago_begins_a_session(tmp_path: Path) -> None:
    """Only a session that was begun lately can be the one of a message that is sent again."""

    async def test() -> None:
        async with runtime(tmp_path, _answer) as opened:
            await _ask(opened, None, type="say", text="Go", once="one")
        clock = TickingClock()
        clock.advance(3601)
        async with runtime(tmp_path, _answer, clock=clock) as opened:
            await _ask(opened, None, type="say", text="Go", once="one")
        assert list(_said(tmp_path).values()) == [["Go"], ["Go"]]

    run(test)


def test_a_fork_is_not_the_session_that_its_message_began(tmp_path: Path) -> None:
    async def test() -> None:
        async with runtime(tmp_path, _answer) as opened:
            first = await _ask(opened, None, type="say", text="Go", once="one")
        session = str(first["session"])
        clock = TickingClock()
        clock.advance(60)
        async with runtime(tmp_path, _answer, clock=clock) as opened:
            await opened.fork(session, first["n"])
        later = TickingClock()
        later.advance(120)
        async with runtime(tmp_path, _answer, clock=later) as opened:
            again = await _ask(opened, None, type="say", text="Go", once="one")
        assert again["session"] == session

    run(test)
