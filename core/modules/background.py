"""Tasks that outlive the call that began them: each has an owner that ends it, and a bug in one is logged.

They run in the task group of their session, so none is left when it ends. If modules run without a session (to be
described), only the owner ends them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final

_LOG: Final = logging.getLogger(__name__)

Job = Callable[[], Coroutine[object, object, None]]


class Supervisor:
    """Runs the tasks of a session's modules: in the session's group, once it has one."""

    def __init__(self) -> None:
        self.group: asyncio.TaskGroup | None = None

    def spawn(self, task: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Begin `task`, which must not fail: that would end the whole session."""
        if self.group is None:
            return asyncio.create_task(task, name=name)
        return self.group.create_task(task, name=name)


class Background:
    """The tasks of one owner. A failure ends only the task; nothing waits for it, so it is logged."""

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
        """Stop some tasks, and wait until they have ended."""
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Stop all tasks, and wait until they have ended."""
        await self.end(*self._tasks)

    async def finish(self) -> None:
        """Wait until all tasks have ended on their own."""
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _supervised(job: Job, name: str) -> None:
    try:
        await job()
    except Exception:
        _LOG.exception("The task %s met a bug.", name)
