"""Sessions that are open when their runtime ends are closed together, and each whatever becomes of the others."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from iact.core.gate.policy_file import Policies
from iact.core.journal import read_journal
from iact.core.models.roles import Models
from iact.core.modules.invoker import Modules
from iact.core.ports import ModuleHost
from iact.core.session.runtime import Runtime
from tests.core.session.fakes import FakeHost, FakeModules, ScriptedModel, TickingClock, World, replies


class SlowToClose(FakeModules):
    """Ends when so many are ending at the same time."""

    ending: asyncio.Semaphore
    all_are_ending: asyncio.Event

    async def close(self) -> None:
        await self.ending.acquire()
        if self.ending.locked():
            self.all_are_ending.set()
        await self.all_are_ending.wait()


class FailingToClose(FakeModules):
    """Has a bug of ours."""

    async def close(self) -> None:
        raise ZeroDivisionError("a bug")


def _runtime(data: Path, *opened: Modules) -> Runtime:
    """A runtime whose sessions have these modules, one after another."""
    left = list(opened)

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return left.pop(0)

    models = Models({"smart": ScriptedModel(replies({"/": ["Yes."]}))})
    return Runtime(
        data,
        models,
        FakeHost(),
        clock=TickingClock(),
        open_modules=open_modules,
        policies=lambda: Policies.from_toml(""),
    )


async def test_sessions_are_closed_together(tmp_path: Path) -> None:
    """docker stop gives a server ten seconds, and each session's containers may take some of them."""
    together = 8
    modules = [SlowToClose(World()) for _ in range(together)]
    SlowToClose.ending, SlowToClose.all_are_ending = asyncio.Semaphore(together), asyncio.Event()

    async with _runtime(tmp_path, *modules) as runtime:
        for _ in modules:
            session = await runtime.open()
            await session.ask("Are you there?")
    assert SlowToClose.all_are_ending.is_set()


async def test_a_session_that_fails_to_close_keeps_no_other_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)  # the bug is on purpose
    world = World()
    async with _runtime(tmp_path, FakeModules(world), FailingToClose(world), FakeModules(world)) as runtime:
        journals = list[Path]()
        for _ in range(3):
            session = await runtime.open()
            await session.ask("Are you there?")
            journals.append(session.journal.parent)

    ended = [read_journal(journal).records[-1].kind == "close" for journal in journals]
    assert ended == [True, False, True]
