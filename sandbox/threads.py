"""Our own threads for blocking calls, above all an engine's client, with a clean-up that learns how each call ended."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
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
    return await _ended(begin(function, *args, **kwargs))


async def to_the_end(cleaning: Coroutine[object, object, _Result]) -> _Result:
    """Await a clean-up. When cancelled meanwhile, wait for its end, then raise the cancellation."""
    return await _ended(asyncio.create_task(cleaning))


async def _ended(running: asyncio.Future[_Result]) -> _Result:
    # A caller may be cancelled more than once, for instance by its session and then by the end of the program.
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error

    if cancelled is None:
        return running.result()
    if not running.cancelled():
        running.exception()
    raise cancelled


def from_thread(report: Report) -> Report:
    """Wrap `report` so that it can be called from a thread: lines are passed to the event loop that is running now."""
    loop = asyncio.get_running_loop()

    def say(line: str) -> None:
        with suppress(RuntimeError):  # the loop is gone: nothing listens any more
            loop.call_soon_threadsafe(report, line)

    return say
