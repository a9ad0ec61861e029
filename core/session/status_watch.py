"""Tracks the status of the open sessions of a runtime, for watchers such as the page, which shows all sessions.

A watcher receives each session that changed, once and with its newest status: a slow watcher misses the states in
between, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Final

from iact.core.ports import Clock
from iact.core.records.record import timestamp
from iact.core.session.live import Live
from iact.core.views.status import SessionStatus, standing


class StatusWatcher:
    """The sessions that change from the moment of entering, with their status.

    A status of None: the session is no longer open, or something else about it must be read again (its name, whether it
    exists).
    """

    def __init__(self, watchers: set[StatusWatcher]) -> None:
        self._watchers = watchers
        self._changed: dict[str, SessionStatus | None] = {}
        self._ready = asyncio.Event()

    async def __aenter__(self) -> StatusWatcher:
        self._watchers.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watchers.discard(self)

    def __aiter__(self) -> StatusWatcher:
        return self

    async def __anext__(self) -> tuple[str, SessionStatus | None]:
        while not self._changed:
            self._ready.clear()
            await self._ready.wait()
        session = next(iter(self._changed))
        return session, self._changed.pop(session)

    def offer(self, session: str, now: SessionStatus | None) -> None:
        """Queue a change; never blocks."""
        self._changed[session] = now
        self._ready.set()


class SessionStatuses:
    """The statuses of the open sessions."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now: dict[str, SessionStatus] = {}
        self._watchers: Final[set[StatusWatcher]] = set()

    @property
    def now(self) -> Mapping[str, SessionStatus]:
        """The current status, by session."""
        return self._now

    @property
    def watched(self) -> int:
        """How many watchers there are."""
        return len(self._watchers)

    def watch(self) -> StatusWatcher:
        """A new watcher."""
        return StatusWatcher(self._watchers)

    def follow(self, live: Live) -> None:
        """Follow a session that was opened."""
        live.on_applied.append(lambda record: self._look(live, record.at))
        live.on_stopped.append(lambda: self._look(live, timestamp(self._clock.now())))
        self._look(live, live.records[-1].at if live.records else timestamp(self._clock.now()))

    def leave(self, session: str) -> None:
        """Stop following a session that was closed."""
        if self._now.pop(session, None) is not None:
            self.changed(session)

    def changed(self, session: str) -> None:
        """Tell watchers to read a session again."""
        for watcher in self._watchers:
            watcher.offer(session, self._now.get(session))

    def _look(self, live: Live, at: str) -> None:
        session = live.tree.session
        state, what = standing(live.tree, failure=live.failure is not None)
        before = self._now.get(session)
        if before is None or (before.state, before.what) != (state, what):
            now = self._now[session] = SessionStatus(state, at, what)
            for watcher in self._watchers:
                watcher.offer(session, now)
