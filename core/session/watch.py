"""Watchers of a session: each has its own bounded queue and can't slow down anything else."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Final

from iact.core.errors import IactError, UsageError
from iact.core.views.events import Delta, Event, OutputEvent, TreeChanged

_LIMIT: Final = 4096
"""The most events that wait for a watcher."""

_JOINED: Final = 65_536
"""From how many characters on no more text is added to an event that waits. Each addition copies all of it."""


class Lagging(IactError):
    """The watcher was too slow: it must watch again and read the records that it missed."""


class Watcher:
    """The events from the moment of entering. Streamed text is merged while it waits; records never are."""

    def __init__(self, watchers: set[Watcher], first: tuple[Event, ...]) -> None:
        self._watchers = watchers
        self._queue: deque[Event] = deque(first)
        self._ready = asyncio.Event()
        self._entered = False
        self._lagging = self._closed = False

    async def __aenter__(self) -> Watcher:
        self._watchers.add(self)
        self._entered = True
        if self._queue:
            self._ready.set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watchers.discard(self)

    def __aiter__(self) -> Watcher:
        return self

    async def __anext__(self) -> Event:
        if not self._entered:
            raise UsageError(
                "Nothing is watched yet: write `async with session.watch() as events:`, and iterate over events."
            )
        while not self._queue:
            if self._lagging:
                raise Lagging(
                    "This watcher was too slow; ask for the records since the last one that it has."
                )
            if self._closed:
                raise StopAsyncIteration
            self._ready.clear()
            await self._ready.wait()
        return self._queue.popleft()

    def offer(self, event: Event) -> None:
        """Queue an event; never blocks."""
        if self._lagging or self._closed:
            return
        if not self._join(event):
            self._queue.append(event)
        if len(self._queue) > _LIMIT:
            self._queue.clear()
            self._lagging = True
        self._ready.set()

    def close(self) -> None:
        """End the stream after the queued events, because the session ends."""
        self._closed = True
        self._ready.set()

    def _join(self, event: Event) -> bool:
        if not self._queue:
            return False
        last = self._queue[-1]
        joined: Event | None = None
        match last, event:
            case Delta(agent, text, first, kind), Delta(other, more, False, same) if (agent, kind) == (
                other,
                same,
            ) and len(text) < _JOINED:
                joined = Delta(agent, text + more, first, kind)
            case OutputEvent(agent, call, text), OutputEvent(other, same, more) if (agent, call) == (
                other,
                same,
            ) and len(text) < _JOINED:
                joined = OutputEvent(agent, call, text + more)
            case TreeChanged(), TreeChanged():
                joined = event
        if joined is None:
            return False
        self._queue[-1] = joined
        return True
