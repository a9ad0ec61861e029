"""One timer for a whole plan: time limits, backoffs and rate limits are entries of one heap.

A task per timer would double the cost of a node that has a time limit, which is every node.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from iact.core.ports import Clock


class Alarm:
    """Calls back at times of the clock; `run` is the task that waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Callable[[str], None], str]] = []
        self._count = 0
        self._earlier = asyncio.Event()

    def after(self, seconds: float, call: Callable[[str], None], about: str) -> None:
        """Call `call(about)` in `seconds`; it can't be taken back, so it must look whether it still matters."""
        self.at(self._clock.monotonic() + seconds, call, about)

    def at(self, due: float, call: Callable[[str], None], about: str) -> None:
        """Call `call(about)` when the clock's monotonic time is `due`."""
        if not self._heap or due < self._heap[0][0]:
            self._earlier.set()
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, call, about))

    async def run(self) -> None:
        """Wait and call back, until cancelled."""
        while True:
            self._earlier.clear()
            while self._heap and self._heap[0][0] <= self._clock.monotonic():
                _, _, call, about = heapq.heappop(self._heap)
                call(about)
            if not self._heap:
                await self._earlier.wait()
                continue
            wait = self._heap[0][0] - self._clock.monotonic()
            if wait > 0 and not self._earlier.is_set():
                await self._sleep(wait)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, or less if an earlier entry arrives."""
        async with asyncio.TaskGroup() as group:
            sleep = group.create_task(self._clock.sleep(seconds))
            earlier = group.create_task(self._earlier.wait())
            await asyncio.wait((sleep, earlier), return_when=asyncio.FIRST_COMPLETED)
            sleep.cancel()
            earlier.cancel()
