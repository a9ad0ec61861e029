"""The order in which a client is told what the root writes, and the records that hold it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from iact.core.records.dialogue import Discard, Reply, Turn
from iact.core.session.events import Delta, Event, RecordAppended
from iact.core.session.session import Session


class LiveText:
    """Puts a session's events in order, for whoever tells text while it is written and the rest of it with its record.

    A record is told when it is on disk, and text at once. So what the root writes can be here before the records that
    came before it, or after the one that holds it. It waits until all is told that had happened by then; where a turn's
    end comes first, records alone tell that turn and the next. `last`: the record that was told last.
    """

    def __init__(self, session: Session, last: int) -> None:
        self._session = session
        self._last = last
        self._early: deque[tuple[int, Event]] = deque()
        self._deaf = False
        """What is written now is told by its record alone."""
        self._missed = False

    def take(self, event: Event) -> Iterator[Event]:
        """What is to be told now, as of the next event. Each record is to be given once, in order."""
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
