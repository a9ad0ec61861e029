"""Live text and the records that contain it, arriving in any order: each word is sent once."""

from __future__ import annotations

from pathlib import Path

from iact.core import Session
from iact.core.records.record import Record
from iact.core.views.events import Delta, Event, RecordAppended
from iact.faces.acp.updates import Updates
from iact.faces.live_text import LiveText
from tests.core.session.fakes import replies, runtime

CALLS = "I have it done.\n\n```CALL coder\nFix it.\n```"
PROSE = "I have it done."
SAID = "All is well."


async def spoken(place: Path) -> tuple[Session, list[Record]]:
    """A session whose root wrote twice, and its records."""
    async with runtime(place, replies({"/": [CALLS, SAID], "/coder": ["Fixed."]})) as opened:
        session = await opened.open()
        await session.ask("Fix my code.")
        return session, list(session.records())


def told(session: Session, events: list[Event]) -> str:
    """What an editor reads of the root."""
    live, updates, text = LiveText(session, 0), Updates(session.id), ""
    for event in events:
        for one in live.take(event):
            if isinstance(one, RecordAppended):
                sent = updates.take(one.record)
            else:
                assert isinstance(one, Delta)
                sent = updates.write(one)
            text += "".join(
                str(getattr(update.content, "text", ""))
                for update in sent
                if update.session_update == "agent_message_chunk"
            )
    return text


def root_of(records: list[Record], kind: str) -> int:
    return next(place for place, one in enumerate(records) if one.kind == kind and one.agent == "/")


async def test_wherever_text_comes_among_the_records_each_word_is_told_once(tmp_path: Path) -> None:
    """A record is told when it is on disk: the next reply may be written by then, or this one be told as a whole."""
    session, records = await spoken(tmp_path)
    events: list[Event] = [RecordAppended(one) for one in records]
    assert told(session, events) == f"{PROSE}{SAID}"
    for place in range(len(events) + 1):
        written: list[Event] = [Delta("/", "All is "), Delta("/", "well.")]
        assert told(session, [*events[:place], *written, *events[place:]]) == f"{PROSE}{SAID}", place


async def test_text_whose_record_is_not_told_yet_is_told_at_once(tmp_path: Path) -> None:
    session, records = await spoken(tmp_path)
    session.state.records = root_of(records, "reply")  # as it was before the root's reply was folded
    live = LiveText(session, 0)
    for record in records[: session.state.records]:
        assert [*live.take(RecordAppended(record))]
    written = Delta("/", SAID)
    assert [*live.take(written)] == [written]
    assert [*live.take(Delta("/coder", "Fixed."))] == []
