"""Our own threads for blocking calls, above all an engine's client, with a clean-up that learns how each call ended."""

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
    """A separate thread pool: an engine that hangs must not occupy the threads that the journal's writer needs."""
    return ThreadPoolExecutor(MOST, thread_name_prefix="iact-sandbox")


def begin(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> asyncio.Future[_Result]:
    """Start a blocking `function` in a thread. It runs to its end whatever happens to the future."""
    return asyncio.get_running_loop().run_in_executor(
        _executor(), functools.partial(function, *args, **kwargs)
    )


async def in_thread(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """Run a blocking `function` in a thread. When cancelled, wait for it to end, then raise the cancellation.

    This way, the caller's clean-up knows about a container that was being created when the caller was cancelled.
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
    """Wrap `report` so that it can be called from a thread: lines are passed to the event loop that is running now."""
    loop = asyncio.get_running_loop()

    def say(line: str) -> None:
        with suppress(RuntimeError):  # the loop is gone: nothing listens any more
            loop.call_soon_threadsafe(report, line)

    return say
