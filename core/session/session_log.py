"""The log lines of one session, made from its records, for the person who runs a server.

The journal says in full what happened; the log only notes events that may concern an operator. No line contains
anything that a model, a person or a module wrote, and so not even the path of an agent. There are only names of
functions, codes and counts, the session, and its user.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from iact.core.records.calls import ClearanceAsk, Gate, Result
from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from iact.core.records.session import Notice

_LOG: Final = logging.getLogger(__name__)

Said = tuple[str, Mapping[str, object]]
"""What happened, always in the same words, and its fields."""


class SessionLog:
    """`user`: the id of the user who owns the session; empty if unknown."""

    def __init__(self, session: str, user: str) -> None:
        self._whose: Final = {"session": session, **({"user": user} if user else {})}

    def opened(self) -> None:
        """Log that the session was opened."""
        self._say("session opened")

    def closed(self) -> None:
        """Log that the session was closed."""
        self._say("session closed")

    def take(self, record: Record) -> None:
        """Log a durable record, if it is worth a line."""
        if _LOG.isEnabledFor(logging.INFO) and (said := line_of(record)) is not None:
            self._say(said[0], record=record.n, **said[1])

    def _say(self, event: str, **fields: object) -> None:
        _LOG.info(event, extra={**self._whose, **fields})


def line_of(record: Record) -> Said | None:
    """The line for a record; None if it is not logged."""
    match record.content:
        case Notice(level=level, code=code):
            return "people were told", {"severity": level, "code": code}
        case Gate(allow=False, function=function, by=by):
            return "call refused by the gate", {"function": function, "by": by}
        case Result(status="error" | "incomplete" as status, function=function, call=call, ms=ms) if (
            call and "." in function
        ):
            return "call of a module failed", {"function": function, "status": status, "ms": ms}
        case ClearanceAsk(to="person", function=function):
            return "a person is asked about a call", {"function": function}
        case Reply(bound="quota"):
            return "refused by a quota", {}
        case Reply(bound=bound) if bound:
            return "ended at a bound", {"bound": bound}
        case _:
            return None
