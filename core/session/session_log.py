"""What the log of a process has of one session: lines for whoever looks after a server, made from its records.

The journal says what happened, in full; here is only that something did which an operator may have to do with. No line
has anything that a model, a person or a module wrote, which the path of an agent is, too: there are names of functions,
codes and counts, the session and whose it is.
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
    """`user`: the id of whose session it is; empty where nobody said."""

    def __init__(self, session: str, user: str) -> None:
        self._whose: Final = {"session": session, **({"user": user} if user else {})}

    def opened(self) -> None:
        """It is open from now on."""
        self._say("session opened")

    def closed(self) -> None:
        """It is not any more."""
        self._say("session closed")

    def take(self, record: Record) -> None:
        """A record is durable."""
        if _LOG.isEnabledFor(logging.INFO) and (said := line_of(record)) is not None:
            self._say(said[0], record=record.n, **said[1])

    def _say(self, event: str, **fields: object) -> None:
        _LOG.info(event, extra={**self._whose, **fields})


def line_of(record: Record) -> Said | None:
    """What is logged of a record; None: nothing."""
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
