"""What a session asks a person: which questions wait for an answer, as a fold over its records."""

from __future__ import annotations

from collections.abc import Iterable

from iact.core.records.calls import ClearanceAnswer, ClearanceAsk, Result
from iact.core.records.hosts import HostAnswer, HostAsk
from iact.core.records.record import Record


def is_question(record: Record) -> bool:
    """Whether a record asks a person."""
    if isinstance(record.content, HostAsk):
        return True
    return isinstance(record.content, ClearanceAsk) and record.content.to == "person"


class OpenQuestions:
    """The questions of a session that wait, oldest first. Give it every record, in order."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._waiting: list[Record] = []
        for record in records:
            self.add(record)

    @property
    def waiting(self) -> tuple[Record, ...]:
        """Their records; the content of each is a `ClearanceAsk` or a `HostAsk`."""
        return tuple(self._waiting)

    def add(self, record: Record) -> None:
        """The next record: it may ask, answer, or end the call that a question was about."""
        if is_question(record):
            self._waiting.append(record)
        elif (place := _place(record)) is not None:
            self._waiting = [one for one in self._waiting if _place(one) != place]


def _place(record: Record) -> tuple[str, int, int] | None:
    """The action that a question, its answer or a result is about; of a host, the question itself."""
    content = record.content
    if isinstance(content, HostAsk):
        return "", record.n, 0
    if isinstance(content, HostAnswer):
        return "", content.ask, 0
    if isinstance(content, ClearanceAsk | ClearanceAnswer | Result):
        return record.agent, content.turn, content.action
    return None
