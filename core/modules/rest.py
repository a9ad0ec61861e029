"""When the modules of a session that makes no calls are stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from core.ports import Clock


class Rest:
    """Stops what runs once nothing was called for a while on `clock`; without a clock or with 0 seconds, never.

    `running`: what could be stopped, each with the seconds without a call after which it may be. `seconds`: the
    least of these that there is. `stop`: stops one of them.
    """

    def __init__(
        self,
        clock: Clock | None,
        seconds: float,
        running: Callable[[], Mapping[str, float]],
        stop: Callable[[str], Awaitable[None]],
    ) -> None:
        self._clock = clock if seconds > 0 else None
        self._seconds = seconds
        self._running = running
        self._stop = stop
        self._calls = 0
        self._last = 0.0
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Nothing is stopped within, nor for as long afterwards."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            if self._clock is not None:
                self._last = self._clock.monotonic()
                if self._task is None or self._task.done():
                    self._task = asyncio.create_task(self._wait(self._clock))

    def due(self, name: str) -> bool:
        """Whether something was not called for so long that it may be stopped."""
        return self._clock is not None and not self._calls and name in self._due(self._clock)

    async def close(self) -> None:
        """Stop nothing any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _due(self, clock: Clock) -> list[str]:
        quiet = clock.monotonic() - self._last
        return [name for name, seconds in self._running().items() if seconds <= quiet]

    async def _wait(self, clock: Clock) -> None:
        while running := self._running():
            due = [] if self._calls else self._due(clock)
            for name in due:
                await self._stop(name)
            if not due:
                # What may be stopped when can change meanwhile, so look again after the least pause at the latest.
                left = self._last + min(running.values()) - clock.monotonic()
                await clock.sleep(min(left, self._seconds) if left > 0 else self._seconds)
