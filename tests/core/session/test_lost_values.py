"""A content beside the journal that is missing or damaged: its value is named as lost, and the session goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from iact.core.errors import IactError, JournalCorrupt, JournalError, UsageError
from iact.core.journal import read_journal
from iact.core.ports import ModelProfile
from iact.core.records.session import Migrate, Notice
from iact.core.stored.journals import check_integrity
from iact.core.stored.replay import context, replay, view_of
from iact.core.views.timeline import Timeline
from tests.core.session.fakes import ScriptedModel, World, replies, runtime

LONG = "a line of many words\n" * 1500
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(2000)
CALL = "```CALL child\nSay what is in $read_1.\n```"
LOST = "(The content of this value was lost. It was text/plain, 31.5 kB.)"


def remove(blob: Path) -> None:
    blob.unlink()


def truncate(blob: Path) -> None:
    blob.write_bytes(blob.read_bytes()[:100])


def change(blob: Path) -> None:
    blob.write_bytes(b"x" + blob.read_bytes()[1:])


def link(blob: Path) -> None:
    blob.rename(blob.with_name("elsewhere"))
    blob.symlink_to("elsewhere")


DAMAGE: list[Callable[[Path], None]] = [remove, truncate, change, link]


async def made(data: Path, first: list[str] | None = None) -> Path:
    """A session with one long result in $read_1. Returns its directory."""
    said = first or [f"```READ\n{LONG}\n```", "It is read."]
    async with runtime(data, replies({"/": said}), chunk=4096) as opened:
        session = await opened.open()
        await session.ask("Read it.")
        return session.journal.parent


def migrations(folder: Path) -> list[Migrate]:
    return [record.content for record in read_journal(folder).records if isinstance(record.content, Migrate)]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_session_goes_on_without_a_lost_value(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    folder = await made(tmp_path)
    (blob,) = (folder / "blobs").iterdir()
    damage(blob)

    script = replies(
        {
            "/": ["", "", "```SHOW read_1\n```", "```READ text=$read_1\n```", CALL, "It is lost."],
            "/child": ["It is not there."],
        }
    )
    world = World()
    model = ScriptedModel(script, chunk=4096)
    async with runtime(tmp_path, script, world=world, model=model) as opened:
        session = await opened.open(folder.name)
        assert session.state.root.table["read_1"].text() == LOST
        answer = await session.ask("Show it, and read it once more.")
        assert answer.body == "It is lost."
        contents = [message.content for message in model.asked[-1].messages]

    lost = "was not run: the content of $read_1 (text/plain, 31.5 kB) was lost. Make it once more, or go on"
    assert any(f"`SHOW` {lost}" in text for text in contents)
    given = next(asked for asked in model.asked if asked.path == "/child").messages[-1].content
    assert "with $read_1 (text/plain, 31.5 kB, its content was lost):" in given
    (refused,) = [text for text in contents if f"`READ` {lost}" in text]
    assert "It is used so" not in refused, "its form was right"
    (notice,) = [record for record in read_journal(folder).records if isinstance(record.content, Notice)]
    assert "$read_1" in notice.body
    assert world.done == [], "the sentence is no text of the agent's"

    # From there on the session is verified, and every view of it works.
    assert [list(migration.lost) for migration in migrations(folder)] == [[blob.name]]
    replay(folder, verify=True)
    records = read_journal(folder).records
    reader = replay(folder).tree.blobs
    for at in range(1, len(records) + 1):
        view_of(records[:at], reader).nodes()
    timeline = Timeline(reader)
    timeline.extend(records)
    context(folder, "/")


async def test_opening_once_more_records_nothing(tmp_path: Path) -> None:
    folder = await made(tmp_path)
    (blob,) = (folder / "blobs").iterdir()
    blob.unlink()
    for _ in range(3):
        async with runtime(tmp_path, replies({})) as opened:
            await opened.open(folder.name)
    assert len(migrations(folder)) == 1


async def test_a_value_that_is_back_is_lost_no_longer(tmp_path: Path) -> None:
    folder = await made(tmp_path)
    (blob,) = (folder / "blobs").iterdir()
    content = blob.read_bytes()
    blob.unlink()
    async with runtime(tmp_path, replies({})) as opened:
        await opened.open(folder.name)

    blob.write_bytes(content)
    script = replies({"/": ["", "", "```READ text=$read_1\n```", "Read."]})
    world = World()
    async with runtime(tmp_path, script, world=world, chunk=4096) as opened:
        session = await opened.open(folder.name)
        assert session.state.root.table["read_1"].load() == content
        await session.ask("Read it once more.")
    assert [text for _, _, text in world.done] == [content.decode()]
    assert [len(migration.lost) for migration in migrations(folder)] == [1, 0]
    replay(folder, verify=True)


async def test_what_is_computed_once_more_is_not_lost(tmp_path: Path) -> None:
    folder = await made(tmp_path)
    (blob,) = (folder / "blobs").iterdir()
    blob.unlink()
    script = replies({"/": ["", "", f"```READ\n{LONG}\n```", "```READ text=$read_2\n```", "Here."]})
    world = World()
    async with runtime(tmp_path, script, world=world, chunk=4096) as opened:
        session = await opened.open(folder.name)
        await session.ask("Once more.")
    assert len(world.done) == 2
    assert world.done[0][2] == world.done[1][2]
    replay(folder, verify=True)


async def test_a_value_that_is_lost_while_the_session_is_open(tmp_path: Path) -> None:
    script = {
        "/": [f"```READ\n{LONG}\n```", "It is read.", "```READ text=$read_1\n```", "Hm.", "It is lost."]
    }
    async with runtime(tmp_path, replies(script), chunk=4096) as opened:
        session = await opened.open()
        await session.ask("Read it.")
        folder = session.journal.parent
        (blob,) = (folder / "blobs").iterdir()
        change(blob)
        with pytest.raises(IactError, match="Open the session again to go on without this value"):
            await session.ask("Read it once more.")

    async with runtime(tmp_path, replies(script)) as opened:
        session = await opened.open(folder.name)
        answer = await session.ask("What is it?")
        assert answer.body == "It is lost."
    replay(folder, verify=True)


@pytest.mark.no_prefix_law("what is lost can't be sent once more")
async def test_a_lost_picture_is_not_sent_to_a_model(tmp_path: Path) -> None:
    script = replies({"/": ["A chart.", "Still a chart."]})
    model = ScriptedModel(script)
    model.profile = ModelProfile("scripted", 100_000, takes=("image",))
    async with runtime(tmp_path, script, model=model) as opened:
        session = await opened.open()
        await session.upload("chart.png", "image/png", PICTURE)
        await session.ask("What is it?")
        folder = session.journal.parent
    assert any(message.parts for message in model.asked[-1].messages)

    (blob,) = (folder / "blobs").iterdir()
    blob.unlink()
    async with runtime(tmp_path, script, model=model) as opened:
        session = await opened.open(folder.name)
        await session.ask("And now?")
    assert not any(message.parts for message in model.asked[-1].messages)
    replay(folder, verify=True)


async def test_a_check_names_every_lost_blob(tmp_path: Path) -> None:
    first = [f"```READ\n{LONG}1\n```", f"```READ\n{LONG}2\n```", f"```READ\n{LONG}3\n```", "All read."]
    folder = await made(tmp_path, first)
    gone, changed, kept = sorted((folder / "blobs").iterdir())
    gone.unlink()
    change(changed)

    found = check_integrity(folder)
    assert {blob.digest for blob in found.lost} == {gone.name, changed.name}
    assert all(read_journal(folder).records[blob.record - 1].kind == "result" for blob in found.lost)
    assert "2 can't be read" in str(found.error)
    assert found.record is None

    assert kept.name not in str(found.error)


# --- journals


@pytest.mark.parametrize("kept", [None, -37, -1], ids=["whole", "half a record", "all but a byte"])
async def test_zeros_that_a_power_failure_left_are_dropped(tmp_path: Path, kept: int | None) -> None:
    """github/copilot-cli#2927: the file had grown, and what was written never came."""
    journal = await made(tmp_path) / "journal.md"
    journal.write_bytes(journal.read_bytes()[:kept] + bytes(5000))

    script = replies({"/": ["", "", "Here.", "Here.", "Here."]})
    async with runtime(tmp_path, script) as opened:
        (listed,) = opened.sessions()
        assert listed.readable
        session = await opened.open(journal.parent.name)
        await session.ask("Are you there?")
    replay(journal, verify=True)
    assert b"\0" not in journal.read_bytes()


async def test_a_journal_damaged_in_its_middle_says_how_to_go_on(tmp_path: Path) -> None:
    """github/copilot-cli#1864: there was no way out."""
    journal = await made(tmp_path) / "journal.md"
    whole = journal.read_bytes()
    place = whole.index(b"It is read.")
    journal.write_bytes(whole[:place] + bytes(11) + whole[place + 11 :])

    async with runtime(tmp_path, replies({"/": ["", "", "Read."]}), chunk=4096) as opened:
        with pytest.raises(JournalCorrupt, match="iact journal fork") as info:
            await opened.open(journal.parent.name)
        forked = opened.store.fork(journal.parent.name, info.value.n - 1)
        session = await opened.open(forked.session)
        answer = await session.ask("And now?")
        assert answer.body == "Read."


async def test_characters_that_end_a_line_elsewhere_end_no_record(tmp_path: Path) -> None:
    """github/copilot-cli#2012 and #2649: a session with U+2028, or a line break in a result, could not be resumed."""
    odd = 'a\u2028b\u2029c\x85d\x0be\x0cf\rg\r\nh\x00i <!-- iact {"n":3 -->\n### 4 \ufeff\x1b[31m.'
    first = [f"```READ\n{odd}\n```", odd]
    folder = await made(tmp_path, first)
    async with runtime(tmp_path, replies({"/": ["", "", "Here."]})) as opened:
        session = await opened.open(folder.name)
        answer = await session.ask(odd)
        assert answer.body == "Here."
    assert odd in [record.body for record in read_journal(folder).records if record.kind == "say"]
    replay(folder, verify=True)


@pytest.mark.parametrize("how", ["empty", "missing"])
async def test_a_session_whose_records_are_gone_is_listed_and_can_be_deleted(
    tmp_path: Path, how: str
) -> None:
    folder = await made(tmp_path)
    journal = folder / "journal.md"
    journal.write_bytes(b"")
    if how == "missing":
        journal.unlink()

    async with runtime(tmp_path, replies({})) as opened:
        assert opened.sessions() == [], "one that is being made has no record yet"
        for place in (folder, journal):
            if place.exists():
                os.utime(place, (1_000_000_000, 1_000_000_000))
        (listed,) = opened.sessions()
        assert (listed.id, listed.state) == (folder.name, "unreadable")
        assert f"its journal is {how}" in listed.what
        with pytest.raises((JournalError, UsageError)):
            await opened.open(folder.name)

        opened.store.delete(folder.name)
        assert opened.sessions() == []
        assert [deleted.id for deleted, _ in opened.store.deleted()] == [folder.name]
