"""The time limit of a module's call. It is suspended while the call waits for a person's answer.

Only the code that asks the person knows of such a wait; the module's word does not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

_LOOKS: Final = 0.05
"""The minimum time between two checks, in seconds."""


@asynccontextmanager
async def time_limit(seconds: float, waited: Callable[[], float]) -> AsyncIterator[asyncio.Timeout]:
    """Let the body take `seconds`, plus the time it has waited, which `waited` returns.

    Raises:
        TimeoutError: the time is over.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    timer: asyncio.TimerHandle

    def look() -> None:
        """End the body, or look again when it may be over."""
        nonlocal timer
        left = end + waited() - loop.time()
        if left > 0:
            timer = loop.call_later(max(left, _LOOKS), look)
        else:
            scope.reschedule(loop.time())

    timer = loop.call_at(end, look)
    try:
        async with asyncio.timeout(None) as scope:
            yield scope
    finally:
        timer.cancel()
