"""How long calls have waited for people, no matter what was asked; their time limits are suspended meanwhile.

The waits of a call may overlap; overlapping time is counted once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iact.core.session.live import Live

_STANDS: Final = 3600.0
"""For how many seconds the clock of one call is suspended at most, however often it asks."""


@dataclass(slots=True)
class _Wait:
    """A wait of calls for an answer, on the session's clock. `ended`: None while they wait."""

    calls: tuple[int, ...]
    began: float
    ended: float | None = None


class PersonWaits:
    """The waits of one session, by the record of the question, as long as their calls are under way."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._waits: dict[int, _Wait] = {}

    def begin(self, ask: int, calls: tuple[int, ...]) -> None:
        """Note that a question was asked, and that these calls wait for its answer."""
        acting = {one.call for agent in self._live.tree.agents.values() for one in agent.actions}
        self._waits = {n: one for n, one in self._waits.items() if not acting.isdisjoint(one.calls)}
        self._waits[ask] = _Wait(calls, self._live.clock.monotonic())

    def end(self, ask: int) -> None:
        """Note that a question was answered."""
        wait = self._waits.get(ask)
        if wait is not None and wait.ended is None:
            wait.ended = self._live.clock.monotonic()

    def waited(self, call: int) -> float:
        """How many seconds the call at a record has waited for answers so far."""
        now = self._live.clock.monotonic()
        spans = sorted((one.began, one.ended or now) for one in self._waits.values() if call in one.calls)
        seconds, until = 0.0, 0.0
        for began, ended in spans:
            seconds += max(0.0, ended - max(began, until))
            until = max(until, ended)
        return min(seconds, _STANDS)
