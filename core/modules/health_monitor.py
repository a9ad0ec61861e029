"""Asks running modules regularly whether they still serve, so that a dead one is noticed before its next call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable
from functools import partial
from typing import Final, Generic, TypeVar

from iact.core.modules.background import Background, Supervisor
from iact.core.ports import Clock

EVERY: Final = 30.0
"""Seconds between two checks."""


Name = TypeVar("Name", bound=Hashable)


class HealthMonitor(Generic[Name]):
    """Checks what is running, by `clock`; without a clock, never.

    `running`: what to check now. `look`: checks one, and acts on the result.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        clock: Clock | None,
        running: Callable[[], Collection[Name]],
        look: Callable[[Name], Awaitable[None]],
    ) -> None:
        self._clock = clock
        self._running = running
        self._look = look
        self._background = Background(supervisor)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start checking, because something is running; checking ends on its own once nothing is."""
        if self._clock is None:
            return
        if self._task is None or self._task.done():
            self._task = self._background.begin(partial(self._beat, self._clock), "health of modules")

    async def close(self) -> None:
        """Stop checking."""
        await self._background.close()

    async def _beat(self, clock: Clock) -> None:
        while self._running():
            await clock.sleep(EVERY)
            for name in list(self._running()):
                await self._look(name)
