"""Decides when modules of a session are stopped because they are not being called."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Generic, TypeVar

from iact.core.modules.background import Background, Supervisor
from iact.core.ports import Clock

Name = TypeVar("Name", bound=Hashable)


class IdleTimer(Generic[Name]):
    """Stops modules that were not called for a while, by `clock`; without a clock or with 0 seconds, never.

    `running`: what could be stopped, each with the number of seconds without a call after which it may be. `seconds`:
    the smallest such number. `stop`: stops one of them.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        clock: Clock | None,
        seconds: float,
        running: Callable[[], Mapping[Name, float]],
        stop: Callable[[Name], Awaitable[None]],
    ) -> None:
        self._clock = clock if seconds > 0 else None
        self._seconds = seconds
        self._running = running
        self._stop = stop
        self._calls: Counter[Name] = Counter()
        """How many calls of each module are under way."""
        self._last: dict[Name, float] = {}
        """When each was last called, or first seen without a call."""
        self._background = Background(supervisor)
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def awake(self, name: Name) -> Iterator[None]:
        """Keep a module from being stopped inside the context, and for its idle time afterwards."""
        self._calls[name] += 1
        try:
            yield
        finally:
            self._calls[name] -= 1
            if self._clock is not None:
                self._last[name] = self._clock.monotonic()
                self._begin(self._clock)

    def _begin(self, clock: Clock) -> None:
        """Wait for modules to become idle, unless that is going on."""
        if self._task is None or self._task.done():
            self._task = self._background.begin(partial(self._wait, clock), "idle modules")

    def due(self, name: Name) -> bool:
        """Whether a module has not been called for so long that it may be stopped."""
        return self._clock is not None and self._left(self._clock).get(name, 1) <= 0

    async def close(self) -> None:
        """Stop nothing any more."""
        await self._background.close()

    def _left(self, clock: Clock) -> dict[Name, float]:
        """Seconds until each module that is not being called may be stopped."""
        now = clock.monotonic()
        return {
            name: self._last.setdefault(name, now) + seconds - now
            for name, seconds in self._running().items()
            if not self._calls[name]
        }

    async def _wait(self, clock: Clock) -> None:
        """Stop idle modules until none is running."""
        while running := self._running():
            for gone in self._last.keys() - running.keys():
                if not self._calls[gone]:  # otherwise it is being started
                    del self._last[gone]
                    del self._calls[gone]

            left = self._left(clock)
            due = [name for name, seconds in left.items() if seconds <= 0]
            for name in due:
                await self._stop(name)

            if not due:
                # These times can change while waiting, so check again after the smallest idle time at the latest.
                await clock.sleep(min([self._seconds, *left.values()]))
