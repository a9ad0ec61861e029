"""Nothing is left behind: 200 sessions, opened, broken in many ways and closed, leave what was there before.

Containers are looked at where they are real, in `tests/sandbox/test_lifecycle.py`.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from iact.core.errors import JournalCorrupt, JournalUnwritable
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from tests.core.session.fakes import Asked, World, runtime
from tests.core.session.test_control import until

SESSIONS = 200
_HELD = "```CALL_ASYNC a\nTask.\n```\n```CALL_ASYNC b\nTask.\n```\n```READ\nheld\n```"


def behave(asked: Asked) -> str:
    """The root starts two children and stands in a call, if it is asked to; a child breaks, if the root is asked to."""
    text = " ".join(message.content for message in asked.messages)
    if asked.path == "/" and asked.newest.count("Hold"):
        return _HELD
    if "Break" in text:
        raise RuntimeError("a bug of ours")
    return "```READ\nbig:20000\n```" if asked.turn == 0 and asked.path != "/" else "Done."


class Stage:
    """A runtime, what its modules did, and a disk that can be full."""

    def __init__(self, opened: Runtime, world: World, data: Path) -> None:
        self.opened, self.world, self.data = opened, world, data
        self.full = False

    def sync(self, descriptor: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def held(self, session: Session) -> None:
        """Have the root stand in a call, with children at work beside it."""
        before = len(self.world.done)
        await session.say("Hold on.")
        await until(lambda: any(text == "held" for _, _, text in self.world.done[before:]))

    async def crash(self, session: Session) -> None:
        """End a session and leave of it what a `kill -9` before would have left, the end of its journal torn."""
        folder = session.journal.parent
        left = folder.with_name("left")
        shutil.copytree(folder, left)
        os.truncate(left / "journal.md", (left / "journal.md").stat().st_size - 40)
        await self.opened.close(session.id)
        shutil.rmtree(folder)
        left.rename(folder)


async def ends_well(stage: Stage) -> None:
    session = await stage.opened.open()
    await session.ask("Go.")
    await stage.opened.close(session.id)


async def closed_at_work(stage: Stage) -> None:
    session = await stage.opened.open()
    await stage.held(session)
    await stage.opened.close(session.id)
    again = await stage.opened.open(session.id)
    again.watch()
    await stage.opened.close(again.id)


async def crashes(stage: Stage) -> None:
    session = await stage.opened.open()
    await stage.held(session)
    await stage.crash(session)
    again = await stage.opened.open(session.id)
    await again.cancel("/")
    await stage.opened.close(again.id)


async def meets_a_full_disk(stage: Stage) -> None:
    session = await stage.opened.open()
    await stage.held(session)
    stage.full = True
    with pytest.raises(JournalUnwritable):
        await session.say("More.")
    await stage.opened.close(session.id)
    stage.full = False


async def meets_a_bug(stage: Stage) -> None:
    session = await stage.opened.open()
    assert (await session.ask("Break.")).text("status") == "failed"
    await stage.opened.close(session.id)


async def is_damaged(stage: Stage) -> None:
    session = await stage.opened.open()
    await session.ask("Go.")
    await stage.opened.close(session.id)
    with session.journal.open("r+b") as stream:
        stream.seek(30)
        stream.write(b"X")
    with pytest.raises(JournalCorrupt):
        await stage.opened.open(session.id)


async def is_cancelled_and_forked(stage: Stage) -> None:
    session = await stage.opened.open()
    await stage.held(session)
    forked = await stage.opened.fork(session.id, 1)
    await session.cancel("/")
    await stage.opened.close(session.id)
    await stage.opened.open(forked)
    await stage.opened.close(forked)


LIVES: list[Callable[[Stage], Awaitable[None]]] = [
    ends_well, closed_at_work, crashes, meets_a_full_disk, meets_a_bug, is_damaged, is_cancelled_and_forked,
]  # fmt: skip


def held_now(temporary: Path) -> tuple[int, int, int, int]:
    """How many tasks, threads, descriptors and temporary files this process has."""
    return (
        len(asyncio.all_tasks()),
        threading.active_count(),
        len(os.listdir("/proc/self/fd")),
        len(list(temporary.iterdir())),
    )


@pytest.mark.no_prefix_law("all sessions share one model")
def test_sessions_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)  # the bugs are on purpose
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    world = World(hold={"held": asyncio.Event()})
    data = tmp_path / "data"

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        async with runtime(data, behave, world=world) as opened:
            stage = Stage(opened, world, data)
            monkeypatch.setattr(os, "fdatasync", stage.sync)
            monkeypatch.setattr(os, "fsync", lambda descriptor: None)
            for life in LIVES:
                await life(stage)
            before = held_now(temporary)
            for number in range(SESSIONS):
                await LIVES[number % len(LIVES)](stage)
            after = held_now(temporary)
            # What tests before this one left to the collector may go meanwhile; nothing may come.
            assert all(now <= then for now, then in zip(after, before, strict=True)), (before, after)
            assert not opened._open

    asyncio.run(main())
    names = {path.name for path in data.glob("sessions/*/*")} | {path.name for path in data.glob("*")}
    known = {"sessions", "journal.md", "about.json", "blobs", "workspace", "seal.key", "experience.json"}
    assert names <= known | {"index.sqlite"}
    assert not list(data.glob("sessions/.*"))
    assert not list(data.glob("sessions/*/blobs/.*"))
