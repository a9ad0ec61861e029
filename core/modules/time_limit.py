"""The time that a module has for a call. It stands while a person has to answer for the call to go on.

Whether somebody is asked is known to whoever asks them, and not to be had from the module.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

_LOOKS: Final = 0.05
"""Seconds between two looks at least."""


@asynccontextmanager
async def time_limit(seconds: float, waited: Callable[[], float]) -> AsyncIterator[asyncio.Timeout]:
    """Let what is inside take `seconds`, and as long as it had to wait besides: `waited` gives that so far.

    Raises:
        TimeoutError: the time was over.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    timer: asyncio.TimerHandle

    def look() -> None:
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
