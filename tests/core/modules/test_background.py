"""Tasks that outlive the call which began them."""

from __future__ import annotations

import asyncio
import logging

import pytest

from iact.core.modules.background import Background, Job, Supervisor


async def _fails() -> None:
    raise ValueError("a bug")


def test_a_bug_costs_its_task_alone_and_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        background, held = Background(Supervisor()), asyncio.Event()
        other = background.begin(held_up(held), "other")
        await asyncio.gather(background.begin(_fails, "looking"))
        assert not other.done()
        held.set()
        await background.finish()
        assert other.done()

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert "The task looking met a bug." in caplog.text
    assert "a bug" in caplog.text


def held_up(held: asyncio.Event) -> Job:
    async def wait() -> None:
        await held.wait()

    return wait


def test_what_runs_ends_with_its_owner() -> None:
    async def main() -> bool:
        background = Background(Supervisor())
        task = background.begin(held_up(asyncio.Event()), "waiting")
        await asyncio.sleep(0)
        await background.close()
        return task.cancelled()

    assert asyncio.run(main())


def test_a_session_has_none_left_when_its_group_ends_and_a_bug_in_one_does_not_end_it() -> None:
    async def main() -> None:
        supervisor = Supervisor()
        background, held = Background(supervisor), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            supervisor.group = group
            waiting = background.begin(held_up(held), "waiting")
            failing = background.begin(_fails, "looking")
            await asyncio.wait([failing])
            assert not waiting.done()
            held.set()
        assert waiting.done()

    asyncio.run(main())
