"""What a slow, a full and a dying disk mean for a session, and how its end is told."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from iact.commands.questions import TerminalQuestions
from iact.commands.run import show_progress
from iact.core.errors import JournalUnwritable
from iact.core.journal.file import read_journal
from iact.core.session.session import Session
from iact.core.session.watch import Watcher
from iact.core.stored.replay import replay
from iact.core.views.events import NoticeEvent
from tests.core.session.fakes import ScriptedModel, World, replies, runtime
from tests.core.session.test_control import until


class Disk:
    """Writes reach it only while `works` is set; `full`: they fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.works = threading.Event()
        self.works.set()
        self.full = False
        self._sync = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", self._write)

    def _write(self, descriptor: int) -> None:
        self.works.wait(300)
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._sync(descriptor)


async def first_notice(events: Watcher) -> str:
    async for event in events:
        if isinstance(event, NoticeEvent):
            return event.text
    raise AssertionError("nobody was told")


def reading(turns: int) -> dict[str, list[str]]:
    return {"/": [*(f"```READ\n{n}\n```" for n in range(turns)), "Done."]}


def test_an_agent_is_never_far_ahead_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, turns = Disk(monkeypatch), 38
    model = ScriptedModel(replies(reading(turns)), chunk=100)

    async def main() -> Path:
        async with runtime(tmp_path, replies({}), model=model) as opened:
            session = await opened.open()
            said = await session.say("Go")
            disk.works.clear()
            try:
                for _ in range(20_000):
                    await asyncio.sleep(0)
                # Four records a turn; a group may have been on its way to the disk when that stopped.
                assert 1 < len(model.asked) < 30
            finally:
                disk.works.set()
            await session.answer(said.n)
            return session.journal

    assert (
        len([one for one in replay(asyncio.run(main()), verify=True).records if one.kind == "turn"]) == turns
    )


def test_the_end_of_a_session_is_recorded_once(tmp_path: Path) -> None:
    async def life(session_id: str | None, *texts: str) -> Session:
        async with runtime(tmp_path, replies({"/": ["One.", "Two."]})) as opened:
            session = await opened.open(session_id)
            for text in texts:
                await session.ask(text)
        return session

    def closes() -> list[int]:
        records = read_journal(session.journal).records
        assert records[-1].kind == "close"
        return [one.n for one in records if one.kind == "close"]

    session = asyncio.run(life(None, "First"))
    assert len(closes()) == 1
    asyncio.run(life(session.id))  # nothing happens in it
    assert len(closes()) == 1
    asyncio.run(life(session.id, "Second"))
    assert len(closes()) == 2
    replay(session.journal, verify=True)


def test_a_watcher_sees_the_end_of_a_session(tmp_path: Path) -> None:
    async def main() -> list[object]:
        async with runtime(tmp_path, replies({"/": ["One."]})) as opened:
            session = await opened.open()
            async with session.watch() as events:
                await session.ask("Go")
                await opened.close(session.id)
                return [event async for event in events]

    last = [event for event in asyncio.run(main()) if hasattr(event, "record")][-1]
    assert last.record.kind == "close"


def test_whoever_waits_for_an_answer_is_told_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, hold = Disk(monkeypatch), asyncio.Event()
    script = {"/": ["```READ\nheld\n```", "Done."]}

    async def main() -> None:
        world = World(hold={"held": hold})
        async with runtime(tmp_path, replies(script), world=world) as opened:
            session = await opened.open()
            said = await session.say("Go")
            async with session.watch() as events:
                waiting = asyncio.ensure_future(session.answer(said.n))
                await until(lambda: world.done)
                disk.full = True
                hold.set()
                with pytest.raises(JournalUnwritable, match="No space left"):
                    await asyncio.wait_for(waiting, 60)
                told = await asyncio.wait_for(first_notice(events), 60)
        assert "No space left" in told

    asyncio.run(main())


def test_whoever_waits_for_an_answer_is_told_when_the_session_is_closed(tmp_path: Path) -> None:
    hold = asyncio.Event()

    async def main() -> None:
        world = World(hold={"held": hold})
        async with runtime(tmp_path, replies({"/": ["```READ\nheld\n```"]}), world=world) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await until(lambda: world.done)
            waiting = asyncio.ensure_future(session.answer(said.n))
            await opened.close(session.id)
            with pytest.raises(JournalUnwritable, match="was closed"):
                await asyncio.wait_for(waiting, 60)

    asyncio.run(main())


def test_progress_goes_on_after_more_than_it_could_follow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = {"/": ["```READ\nx\n```", "Done."]}

    async def main() -> None:
        async with runtime(tmp_path, replies(script)) as opened:
            session = await opened.open()
            progress = asyncio.ensure_future(
                show_progress(session, TerminalQuestions(session, asyncio.ensure_future, asks=False))
            )
            await until(lambda: session._live._watchers)
            for number in range(5000):
                session._live.publish(NoticeEvent(f"notice {number}"))
            await session.ask("Go")
            await opened.close(session.id)
            await asyncio.wait_for(progress, 60)

    asyncio.run(main())
    assert capsys.readouterr().err.splitlines()[-1] == "/: t.read x"
