"""Threads for what blocks, an engine's client above all: of our own, and with a clean-up that knows how each call ended."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, ParamSpec, TypeVar

from iact.core.ports import Report

MOST: Final = 16
"""How many run at once."""

_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


@functools.cache
def _executor() -> ThreadPoolExecutor:
    """Threads of our own: an engine that hangs must not take those that the journal's writer waits for."""
    return ThreadPoolExecutor(MOST, thread_name_prefix="iact-sandbox")


def begin(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> asyncio.Future[_Result]:
    """Begin to run a blocking `function` in a thread; it runs to its end whatever becomes of the future."""
    return asyncio.get_running_loop().run_in_executor(
        _executor(), functools.partial(function, *args, **kwargs)
    )


async def in_thread(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """Run a blocking `function` in a thread. When cancelled, wait for it to end first, then pass that on.

    A container that was being made while its caller was cancelled is known to that caller's clean-up this way.
    """
    running = begin(function, *args, **kwargs)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()
        raise


def from_thread(report: Report) -> Report:
    """`report`, callable from a thread: each line is handed to the event loop that is running now."""
    loop = asyncio.get_running_loop()

    def say(line: str) -> None:
        with suppress(RuntimeError):  # the loop is gone: nobody listens any more
            loop.call_soon_threadsafe(report, line)

    return say
