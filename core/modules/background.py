"""Tasks that outlive the call which began them: each has an owner that ends it, and a bug in one is in the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final

_LOG: Final = logging.getLogger(__name__)

Job = Callable[[], Coroutine[object, object, None]]


class Background:
    """The tasks of one owner. A failure costs the task alone; nothing waits for it, so it is told in the log."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, job: Job, name: str) -> asyncio.Task[None]:
        """Run `job` until it ends, or its owner does."""
        task = asyncio.create_task(_supervised(job, name), name=name)
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
