"""How far the model on board is, for the people who wait for it: on its way, being loaded, ready, or why it can't come.

What is reported comes from the threads that download and load, and from the loop. A watcher sees the newest state, and not
necessarily each.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

BoardPhase = Literal["waiting", "downloading", "checking", "loading", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class BoardState:
    """How far the model on board is."""

    phase: BoardPhase
    done: int = 0
    """The bytes of its file that are here, while they are downloaded."""
    total: int = 0
    """The bytes of its whole file."""
    why: str = ""
    """Why it can't come, as a sentence for people."""


Report = Callable[["BoardState | None"], None]


class Board:
    """The state of the model on board that is in use; None without one, or before it was needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: BoardState | None = None
        self._newest = 0
        self._heard = 0
        self._watchers: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @property
    def state(self) -> BoardState | None:
        """The newest state."""
        return self._state

    def reporter(self) -> Report:
        """What a model reports its state to. Once a newer one has reported, this one is no longer heard."""
        with self._lock:
            self._newest += 1
            number = self._newest

        def report(state: BoardState | None) -> None:
            with self._lock:
                if number < self._heard:
                    return
                self._heard = number
                self._state = state
                watchers = tuple(self._watchers)
            for loop, changed in watchers:
                with contextlib.suppress(RuntimeError):  # its loop has ended
                    loop.call_soon_threadsafe(changed.set)

        return report

    def clear(self) -> None:
        """No model on board is in use any more."""
        self.reporter()(None)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncIterator[BoardState | None]]:
        """The state now, and whenever it changes."""
        watcher = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._watchers.add(watcher)
        try:
            yield self._changes(watcher[1])
        finally:
            with self._lock:
                self._watchers.discard(watcher)

    async def _changes(self, changed: asyncio.Event) -> AsyncIterator[BoardState | None]:
        while True:
            changed.clear()
            yield self._state
            await changed.wait()
