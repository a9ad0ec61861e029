"""A thread that runs one blocking call after another for the event loop.

Not an executor: the interpreter waits for executors' threads when it exits, and a database that hangs must not make the
product hang. A call whose caller has stopped waiting still runs to its end.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
_Job = Callable[[], None]


class Worker:
    """One daemon thread. Calls are served in order; `waiting` is the number of calls that are not done."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._undone = 0
        self._thread = threading.Thread(target=self._serve, name=f"hippocampus-{name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of calls that are not done, including the one that is running."""
        return self._undone

    async def run(self, call: Callable[[], Result]) -> Result:
        """Run `call` in the thread and return its result. Cancelling stops the waiting, not the call."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()

        def finish(result: Result | None, error: Exception | None) -> None:
            self._undone -= 1
            if done.cancelled():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]  # None only where Result is None

        def job() -> None:
            result: Result | None = None
            failure: Exception | None = None
            try:
                result = call()
            except Exception as error:
                failure = error
            except BaseException as error:  # a panic of a native library is not an Exception
                failure = RuntimeError(f"{type(error).__name__}: {error}")

            try:
                loop.call_soon_threadsafe(finish, result, failure)
            except RuntimeError:  # the loop is closed: nothing waits
                return

        self._undone += 1
        self._jobs.put(job)
        return await done

    async def close(self, seconds: float) -> bool:
        """Let the thread end after its queued calls. Return whether it ended within `seconds`."""
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join, seconds)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
