"""What people see of a model while it is asked: that it writes, or why it waits, and since when.

Retries, rate limits and silence happen inside the model's stream, and no record reports them until the reply is
complete. So each change is passed on as it happens, as an `Activity`, and the waits are kept for the record.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from types import TracebackType
from typing import Final

from iact.core.models.caller import ask_on_behalf_of
from iact.core.ports import (
    ModelEvent,
    ReasoningDelta,
    StreamRecast,
    StreamRestart,
    StreamRetry,
    StreamWait,
    TextDelta,
)
from iact.core.records.parts import Wait, WaitState
from iact.core.records.record import timestamp
from iact.core.session.live import Live
from iact.core.views.events import Activity

_SILENT: Final = 10.0
"""Seconds of silence in the middle of a reply after which people are told that the model has stalled."""

_MOST: Final = 20
"""How many waits one record holds at most."""


class ModelCall:
    """One call of a model for an agent or a plan, as a context manager; its activity ends with the context."""

    def __init__(self, live: Live, path: str) -> None:
        self.waits: list[Wait] = []
        self._live = live
        self._path = path
        self._state: Activity | None = None
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: datetime | None = None

    def __enter__(self) -> ModelCall:
        ask_on_behalf_of(self._live.tree.traceparent)
        self._show(Activity(self._path, "asking", self._now()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ask_on_behalf_of("")
        self._over()
        if self._timer is not None:
            self._timer.cancel()
        self._live.show(Activity(self._path, "", self._now()))

    def take(self, event: ModelEvent) -> None:
        """Take the next event of the stream."""
        match event:
            case TextDelta():
                self._heard("writing")
            case ReasoningDelta():
                self._heard("reasoning")
            case StreamRestart(reason, attempt, of, seconds, limited):
                self._over()
                now = self._live.clock.now()
                until = timestamp(now + timedelta(seconds=seconds))
                state: WaitState = "limited" if limited else "retrying"
                self._show(Activity(self._path, state, timestamp(now), until, attempt, of, reason))
            case StreamRetry():
                self._over()
                self._show(Activity(self._path, "asking", self._now()))
            case StreamWait(why):
                self._over()
                self._show(Activity(self._path, "loading", self._now(), why=why))
            case StreamRecast():
                self._state = None  # the next piece shows the state

    def _now(self) -> str:
        return timestamp(self._live.clock.now())

    def _show(self, activity: Activity) -> None:
        self._state = activity
        self._live.show(activity)

    def _heard(self, state: str) -> None:
        """Note that a piece of the reply or of the reasoning arrived."""
        self._last = asyncio.get_running_loop().time()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SILENT, self._listen)
        if self._state is None or self._state.state != state:
            self._over()
            self._show(Activity(self._path, "writing" if state == "writing" else "reasoning", self._now()))

    def _listen(self) -> None:
        """Check whether the model still writes. One timer serves many pieces: a timer for each would cost too much."""
        loop = asyncio.get_running_loop()
        silent = loop.time() - self._last
        writes = self._state is not None and self._state.state in ("writing", "reasoning")
        if writes and silent >= _SILENT:
            since = self._live.clock.now() - timedelta(seconds=silent)
            why = "The model has begun its reply, but has stopped sending."
            self._show(Activity(self._path, "stalled", timestamp(since), why=why))
        self._timer = loop.call_later(max(0.1, _SILENT - silent) if writes else _SILENT, self._listen)

    def _over(self) -> None:
        """End the current wait, if any, and keep it for the record."""
        state, self._state = self._state, None
        if state is None or state.state not in ("limited", "retrying", "stalled"):
            return
        waited = self._live.clock.now() - datetime.fromisoformat(state.since)
        if len(self.waits) < _MOST:
            ms = max(0, round(waited.total_seconds() * 1000))
            self.waits.append(Wait(state=state.state, why=state.why, ms=ms))
