"""Sends the spans of sessions while they run, from a separate thread. A session only passes on the records it wrote.

A collector that is slow or down does not slow down a session. Spans that it did not accept are dropped, with one warning.
The journal has everything, so `iact journal spans SESSION --otlp` can send them later, under the same ids.

When a session is reopened after its process was killed, all spans that ended since it was last closed are sent again,
because it is unknown how many had arrived. A parent that was never sent from this process is sent before its children.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

from iact.core.records.record import Record
from iact.core.records.session import Close
from iact.faces.otel.span import Span
from iact.faces.otel.spans import SpanFold

_LOG: Final = logging.getLogger(__name__)
BATCH: Final = 512
"""The maximum number of spans in a request."""
_GATHER: Final = 0.2
"""Seconds for which spans are collected for one request."""
_PARENTS: Final = frozenset({"create_agent", "invoke_agent", "invoke_workflow", "plan"})
_PATIENCE: Final = 5.0
"""Seconds at the end for sending the remaining spans, if the collector was answering."""
_LITTLE: Final = 1.0
"""The same if it was not answering."""


class SpanExport(Protocol):
    """Sends spans."""

    def send(self, spans: Sequence[Span]) -> bool:
        """Send spans and return whether they arrived. Blocks."""
        ...

    def close(self) -> None:
        """Drop what is still waiting."""
        ...


class FollowedSession:
    """One session: which of its spans to send, and when."""

    def __init__(self, *, content: bool) -> None:
        self._fold = SpanFold(content=content)
        self._unsent: dict[str, Span] = {}
        """Ended spans that were not sent from this process and may have children."""

    def begin(self, records: Iterable[Record]) -> list[Span]:
        """Start following, with the session's existing records. Returns the ended spans that must be sent again."""
        again: list[Span] = []
        for record in records:
            trace = self._fold.trace_id
            ended = self._fold.take(record)
            if self._fold.trace_id != trace:  # the trace of a fork
                self._unsent.clear()
                again.clear()
            self._unsent |= {one.span_id: one for one in ended}
            again += ended
            if isinstance(record.content, Close):
                again.clear()
        for one in again:
            self._unsent.pop(one.span_id)
        self._unsent = {one: span for one, span in self._unsent.items() if _may_have_children(span)}
        return [*self._above(again), *again]

    def take(self, record: Record) -> list[Span]:
        """The spans to send after this record."""
        ended = self._fold.take(record)
        return [*self._above(ended), *ended]

    def _above(self, spans: Iterable[Span]) -> list[Span]:
        """The ancestors of these spans that were not sent from this process yet."""
        found: list[Span] = []
        for one in spans if self._unsent else ():
            parent = one.parent_id
            while (above := self._unsent.pop(parent, None)) is not None:
                found.append(above)
                parent = above.parent_id
        return found


def _may_have_children(span: Span) -> bool:
    return span.attributes["gen_ai.operation.name"] in _PARENTS


class SpanSender:
    """The thread that turns records into spans and sends them, for all sessions of a process."""

    def __init__(self, export: SpanExport, *, content: bool = False) -> None:
        self._export = export
        self._content = content
        self._queue: queue.SimpleQueue[Callable[[], list[Span]] | None] = queue.SimpleQueue()
        self._answers = self._told = self._given_up = False
        self._thread = threading.Thread(target=self._work, name="OpenTelemetry export", daemon=True)
        self._thread.start()

    def follow(self, records: Sequence[Record]) -> Callable[[Record], None]:
        """Follow a session that was opened with these records. Returns a function to call with each later record. Never blocks."""
        followed = FollowedSession(content=self._content)
        self._queue.put(partial(followed.begin, tuple(records)))
        return lambda record: self._queue.put(partial(followed.take, record))

    def close(self) -> None:
        """Send the remaining spans within a few seconds. Blocks. All sessions must be closed before."""
        self._queue.put(None)
        self._thread.join(_PATIENCE if self._answers else _LITTLE)
        self._given_up = True
        self._export.close()
        self._thread.join(_LITTLE)

    def _work(self) -> None:
        waiting: list[Span] = []
        due: float | None = None
        while True:
            try:
                told = self._queue.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
                if told is None:
                    self._send(waiting)
                    return
                waiting += told()
            except queue.Empty:
                self._send(waiting)
            except Exception:
                _LOG.exception("Making spans of a record met a bug; the session goes on.")
            if len(waiting) >= BATCH:
                self._send(waiting)
            if not waiting:
                due = None
            elif due is None:
                due = time.monotonic() + _GATHER

    def _send(self, waiting: list[Span]) -> None:
        while waiting and not self._given_up:
            batch = waiting[:BATCH]
            del waiting[:BATCH]
            self._answers = self._export.send(batch)
            if not self._answers and not self._told:
                self._told = True
                _LOG.warning(
                    "The OpenTelemetry collector does not take spans, and those of now are not kept for it. Sessions go "
                    "on. To send the spans of one later: iact journal spans SESSION --otlp"
                )
            elif self._answers and self._told:
                self._told = False
                _LOG.warning("The OpenTelemetry collector takes spans again.")
