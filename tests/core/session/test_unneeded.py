"""A server that runs for months: sessions that nobody needs are closed, open again, and keep their time and place."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from tests.core.session.fakes import TickingClock, World, replies, runtime
from tests.core.session.test_control import until

IDLE = 1800.0


class PassingClock(TickingClock):
    """Waiting takes until the time has passed, which it does when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self._at = 0.0
        self._passed = asyncio.Event()

    def monotonic(self) -> float:
        return self._at

    async def sleep(self, seconds: float) -> None:
        end = self._at + seconds
        while self._at < end:
            await self._passed.wait()

    async def pass_by(self, seconds: float) -> None:
        """Let time pass, a minute at a time, and let everybody do what is due."""
        for _ in range(int(seconds // 60) + 1):
            self._at += 60
            self.advance(60)
            self._passed.set()
            self._passed = asyncio.Event()
            for _ in range(200):
                await asyncio.sleep(0)


@asynccontextmanager
async def tended(runtime: Runtime) -> AsyncIterator[None]:
    """Sessions that nobody needs are closed meanwhile."""
    async with asyncio.TaskGroup() as group:
        closing = group.create_task(runtime.close_unneeded(IDLE))
        yield
        closing.cancel()


def on_disk(session: Session) -> bytes:
    return session.journal.read_bytes()


async def test_a_session_that_nobody_needs_is_closed_and_goes_on_when_it_is_asked_for(tmp_path: Path) -> None:
    clock = PassingClock()
    async with runtime(tmp_path, replies({"/": ["One.", "Two."]}), clock=clock) as opened, tended(opened):
        session = await opened.open()
        await session.ask("Go")
        tasks = len(asyncio.all_tasks())
        await clock.pass_by(IDLE - 120)
        assert opened.is_open(session.id)
        await clock.pass_by(300)
        assert not opened.is_open(session.id)
        assert len(asyncio.all_tasks()) < tasks

        again = await opened.open(session.id)
        assert (await again.ask("On")).body == "Two."


async def test_who_watches_or_asks_keeps_it_open(tmp_path: Path) -> None:
    clock = PassingClock()
    async with runtime(tmp_path, replies({"/": ["One."]}), clock=clock) as opened, tended(opened):
        session = await opened.open()
        await session.ask("Go")
        async with session.watch():
            await clock.pass_by(3 * IDLE)
            assert opened.is_open(session.id)
        await clock.pass_by(IDLE / 2)
        assert await opened.open(session.id) is session  # somebody asked, so the time begins again
        await clock.pass_by(IDLE * 0.7)
        assert opened.is_open(session.id)


async def test_a_session_with_work_stays_open(tmp_path: Path) -> None:
    clock, world = PassingClock(), World(hold={"wait": asyncio.Event()})
    script = replies({"/": ["```t.write\nwait\n```", "Done."]})
    async with runtime(tmp_path, script, clock=clock, world=world) as opened, tended(opened):
        session = await opened.open()
        await session.say("Go")
        await until(lambda: bool(world.running))
        await clock.pass_by(1.5 * IDLE)  # within the bound of a task
        assert opened.is_open(session.id)
        world.hold["wait"].set()
        assert (await session.answer(0)).body == "Done."


async def said(data: Path, clock: PassingClock, answer: str, session_id: str | None = None) -> Session:
    """A session, closed again, in which somebody has said something."""
    async with runtime(data, replies({"/": [answer]}), clock=clock) as opened:
        session = await opened.open(session_id)
        await session.ask("Go")
        return session


async def test_opening_and_closing_and_news_of_modules_change_neither_its_time_nor_its_place(
    tmp_path: Path,
) -> None:
    clock = PassingClock()
    first = await said(tmp_path, clock, "One.")
    clock.advance(3600)
    second = await said(tmp_path, clock, "One.")
    clock.advance(3600)

    async with runtime(tmp_path, replies({}), clock=clock) as opened:
        before = [(row.id, row.changed) for row in opened.sessions()]
        assert [session_id for session_id, _ in before] == [second.id, first.id]

        again = await opened.open(first.id)
        again._live.notice("/", "sandbox", "No engine answers.")
        await opened.close(first.id)
        assert on_disk(first).count(b'"kind":"close"') == 2
        os.utime(first.journal)
        assert [(row.id, row.changed) for row in opened.sessions()] == before

    await said(tmp_path, clock, "Two.", first.id)
    async with runtime(tmp_path, replies({}), clock=clock) as opened:
        assert [row.id for row in opened.sessions()] == [first.id, second.id]


async def test_a_session_in_which_nothing_happened_has_the_time_of_its_beginning(tmp_path: Path) -> None:
    async with runtime(tmp_path, replies({}), clock=PassingClock()) as opened:
        session = await opened.open()
        await opened.close(session.id)
        row, *_ = opened.sessions()
        assert datetime.fromisoformat(row.changed) == datetime.fromisoformat(row.created).replace(
            microsecond=0
        )
        assert datetime.fromisoformat(row.changed) - datetime(2026, 1, 1, tzinfo=UTC) < timedelta(hours=1)
