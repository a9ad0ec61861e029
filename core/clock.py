"""The real clock; tests use their own."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from time import monotonic


class SystemClock:
    """The time of this machine (implements `core.ports.Clock`)."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds from an arbitrary point."""
        return monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""
        await asyncio.sleep(seconds)
