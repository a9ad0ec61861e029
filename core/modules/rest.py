"""When the modules of a session that makes no calls are stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from core.ports import Clock


class Rest:
    """Stops what runs once nothing was called for `seconds` on `clock`; without a clock or with 0 seconds, never.

    `running`: what could be stopped now. `stop`: stops one of them.
    """

    def __init__(
        self,
        clock: Clock | None,
        seconds: float,
        running: Callable[[], Sequence[str]],
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

    @property
    def resting(self) -> bool:
        """Whether nothing is called now."""
        return not self._calls

    async def close(self) -> None:
        """Stop nothing any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _wait(self, clock: Clock) -> None:
        while self._running():
            left = self._last + self._seconds - clock.monotonic()
            if self._calls or left > 0:
                await clock.sleep(self._seconds if self._calls else left)
                continue
            for name in self._running():
                await self._stop(name)
