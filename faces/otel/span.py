"""OpenTelemetry spans as plain data, with ids that are reproducible from the journal.

An id is a digest over the session's id and the record at which the span begins. So spans sent while a session runs are
the same as spans made from its journal years later, and sending one twice changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

from iact.core.ports import JSON

SpanKind = Literal["internal", "client"]
Attribute: TypeAlias = str | int | float | bool | tuple[str, ...]
Attributes: TypeAlias = Mapping[str, Attribute]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event at one moment of a span. `at`: nanoseconds since 1970."""

    name: str
    at: int
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanLink:
    """A related span in another trace."""

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class Span:
    """Work of a session, from `start` to `end`, in nanoseconds since 1970. `end` is None for unfinished work.

    `trace_id` and `span_id` are hexadecimal. `parent_id` is empty for the root of a trace. `error`: the reason of a
    failure, in one word; it is also the `error.type`.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: SpanKind
    start: int
    end: int | None
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    error: str = ""

    def to_json(self) -> dict[str, JSON]:
        """The span as JSON."""
        return {
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "parent_id": self.parent_id or None,
            "name": self.name,
            "kind": self.kind,
            "start": self.start,
            "end": self.end,
            "status": "error" if self.error else "unset",
            "attributes": _json(self.attributes),
            "events": [
                {"name": one.name, "at": one.at, "attributes": _json(one.attributes)} for one in self.events
            ],
            "links": [{"trace_id": one.trace_id, "span_id": one.span_id} for one in self.links],
        }


def _json(attributes: Attributes) -> dict[str, JSON]:
    return {name: list(one) if isinstance(one, tuple) else one for name, one in attributes.items()}


def trace_id(session: str) -> str:
    """The trace id of a session."""
    return hashlib.sha256(f"iact trace {session}".encode()).hexdigest()[:32]


def span_id(session: str, record: int, what: str) -> str:
    """The id of a span that begins with a record, or that only this record describes."""
    return hashlib.sha256(f"iact span {session} {record} {what}".encode()).hexdigest()[:16]


def nanoseconds(at: str) -> int:
    """The time of a record in nanoseconds since 1970."""
    return (datetime.fromisoformat(at) - _EPOCH) // _MICROSECOND * 1000
