"""How a command ends at SIGINT, SIGTERM and SIGHUP: in order at the first of them, at once at a second.

In order means: calls are stopped, containers and mounts are removed, journals are closed. At once means that nothing is
waited for: containers end by themselves, because nobody holds their leases any more, and the next start removes the rest.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

_SAME_WISH: Final = 1.0
"""Seconds within which further signals are the same wish: a closing terminal and a service manager send several."""
_AT_ONCE: Final = (
    b"iact: ended at once. What is left is removed by the next start, or by: iact doctor --fix\n"
)

_T = TypeVar("_T")


class EndSignals:
    """The signals of this process."""

    def __init__(self) -> None:
        self.number: signal.Signals | None = None
        """The signal that ends the command; None if there was none."""
        self._since = 0.0
        self._act: Callable[[], None] | None = None

    def begin(self) -> None:
        """Handle the signals from now on. SIGTERM and SIGHUP stay ignored if the caller ignores them, as nohup does."""
        # A shell that starts a process in the background makes it ignore SIGINT. If one is sent anyway, it is meant.
        signal.signal(signal.SIGINT, self._signalled)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._signalled)

    @contextmanager
    def calling(self, act: Callable[[], object]) -> Iterator[None]:
        """Inside this context, the first signal calls `act` on the running loop, instead of raising KeyboardInterrupt."""
        import asyncio  # help and completion load this file, and no event loop

        loop = asyncio.get_running_loop()
        before = self._act
        if self.number is not None:  # it came before there was anything to call
            act()

        def call() -> None:
            loop.call_soon_threadsafe(act)

        self._act = call
        try:
            yield
        finally:
            self._act = before

    def _signalled(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if self.number is not None:
            if now - self._since >= _SAME_WISH:
                _end_at_once(number)
            return

        self.number, self._since = signal.Signals(number), now
        if self._act is None:
            raise KeyboardInterrupt
        self._act()


ENDING: Final = EndSignals()
"""Signals belong to a process, so there is one."""


def run(work: Coroutine[object, object, _T]) -> _T:
    """Run `work` to its end, like `asyncio.run`. The first signal cancels it.

    Raises:
        KeyboardInterrupt: it was cancelled by a signal.
    """
    import asyncio

    async def cancelled_by_a_signal() -> _T:
        task = asyncio.current_task()
        assert task is not None
        with ENDING.calling(task.cancel):
            return await work

    try:
        return asyncio.run(cancelled_by_a_signal())
    except asyncio.CancelledError:
        if ENDING.number is not None:
            raise KeyboardInterrupt from None
        raise


def _end_at_once(number: int) -> None:
    # Its terminal may be gone, or stopped, and a full pipe is read by nobody: nothing may be waited for.
    with suppress(OSError, ValueError):
        errors = sys.stderr.fileno()
        _, writable, _ = select.select([], [errors], [], 0)
        if writable:
            os.write(errors, _AT_ONCE)
    os._exit(128 + number)
