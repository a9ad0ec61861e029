"""A clock that moves only when somebody sleeps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class VirtualClock:
    """Implements `core.ports.Clock`. `slept` lists what was slept, in order."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 11, 21, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)
