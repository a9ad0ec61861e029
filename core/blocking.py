"""Blocking work in a thread of its own, which is waited for whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


async def to_its_end(work: Callable[[], _Result]) -> _Result:
    """Do blocking work, and wait for its end even if cancelled; otherwise the next job would run at the same time."""
    thread = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        await asyncio.wait([thread])
        thread.exception()
        raise
