"""The order in which a client receives the root's streamed text and its records."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from iact.core.records.dialogue import Discard, Reply, Turn
from iact.core.session.session import Session
from iact.core.views.events import Delta, Event, RecordAppended


class LiveText:
    """Orders a session's events for clients that receive text while it is written and the rest with its record.

    Records are reported when they are on disk, but text immediately. So the root's text can arrive before the records that
    precede it, or after the record that contains it. Text waits until everything that happened before it has been
    reported. If the end of a turn arrives first, that turn and the next are reported by their records only. `last`: the
    last record that was reported.
    """

    def __init__(self, session: Session, last: int) -> None:
        self._session = session
        self._last = last
        self._early: deque[tuple[int, Event]] = deque()
        self._deaf = False
        """Whether the current text is only reported by its record."""
        self._missed = False

    def take(self, event: Event) -> Iterator[Event]:
        """Process the next event and yield the events to report now. Each record must be passed once, in order."""
        if isinstance(event, RecordAppended):
            record = event.record
            if record.agent == "/" and isinstance(record.content, Turn | Reply | Discard):
                self._deaf, self._missed = bool(self._early) or self._missed, False
                self._early.clear()
            self._last = record.n
            yield event
        elif not isinstance(event, Delta):
            yield event
        elif event.agent == "/" and not self._deaf:
            self._early.append((self._session.state.records, event))
        elif event.agent == "/":
            self._missed = self._missed or self._session.state.records > self._last
        while self._early and self._early[0][0] <= self._last:
            yield self._early.popleft()[1]
