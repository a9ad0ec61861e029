"""Tasks that outlive the call which began them: each has an owner that ends it, and a bug in one is in the log.

They run in the task group of their session, which so has none left when it ends. Where modules run for no session (to be
described), their owner alone ends them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final

_LOG: Final = logging.getLogger(__name__)

Job = Callable[[], Coroutine[object, object, None]]


class Supervisor:
    """Where the tasks of a session's modules run: in its group, from when there is one."""

    def __init__(self) -> None:
        self.group: asyncio.TaskGroup | None = None

    def spawn(self, task: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Begin `task`, which must not fail: that would end the whole session."""
        if self.group is None:
            return asyncio.create_task(task, name=name)
        return self.group.create_task(task, name=name)


class Background:
    """The tasks of one owner. A failure costs the task alone; nothing waits for it, so it is told in the log."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, job: Job, name: str) -> asyncio.Task[None]:
        """Run `job` until it ends, or its owner does."""
        task = self._supervisor.spawn(_supervised(job, name), name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self, *tasks: asyncio.Task[None]) -> None:
        """Stop some of them, and wait until they have."""
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Stop all of them, and wait until they have."""
        await self.end(*self._tasks)

    async def finish(self) -> None:
        """Wait until all have come to their own end."""
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _supervised(job: Job, name: str) -> None:
    try:
        await job()
    except Exception:
        _LOG.exception("The task %s met a bug.", name)
