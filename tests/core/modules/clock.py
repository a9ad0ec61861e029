"""A clock whose time only passes when it is told to."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime


class HeldClock:
    """Implements `core.ports.Clock`."""

    def __init__(self) -> None:
        self._now = 0.0
        self._passed = asyncio.Event()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._now, UTC)

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        end = self._now + seconds
        while self._now < end:
            await self._passed.wait()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds
        self._passed.set()
        self._passed = asyncio.Event()
