"""How many sessions are at work at once: one too many says so, and is answered once another is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from iact.core.ports import AtOnce
from iact.core.records.dialogue import Reply
from iact.core.stored.replay import replay
from tests.core.session.fakes import ScriptedModel, replies, runtime


class SessionLimits:
    """Limits of a user who may have `most` sessions at work."""

    most = 1

    async def sessions(self, *, begun: bool = False) -> AtOnce:
        return AtOnce(self.most)

    async def containers(self) -> None:
        """Any number."""

    def count(self, kind: str, taken: Callable[[], int]) -> None:
        """Nobody shares them."""


async def test_one_session_too_many_is_refused_until_another_is_done(tmp_path: Path) -> None:
    hold, limits = asyncio.Event(), SessionLimits()
    model = ScriptedModel(lambda asked: "Done and done and done.", holds={"/": hold})
    async with asyncio.timeout(300), runtime(tmp_path, replies({}), model=model, limits=limits) as opened:
        first, second, third = [await opened.open() for _ in range(3)]
        working = asyncio.create_task(first.ask("Go."))
        while not model.asked:  # noqa: ASYNC110 - it is asked in a task of the session
            await asyncio.sleep(0)
        refused = await second.ask("Go.")
        assert isinstance(refused.content, Reply)
        assert refused.content.bound == "quota"
        assert "No more than 1 of your sessions" in refused.body
        assert len(model.asked) == 1

        limits.most = 2
        also = asyncio.create_task(third.ask("Go."))
        while len(model.asked) < 2:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0)
        limits.most = 1
        hold.set()
        assert (await working).body == (await also).body == "Done and done and done."
        again = await second.ask("And now?")
        assert again.body == "Done and done and done."
        journal = second.journal
    replay(journal, verify=True)
