"""Describes a record that makes a rule fail.

A record's fields are checked when it is read. A journal may come from anywhere, though, and still hold impossible
content. The reader is then told about the record, and not about a line of our program.
"""

from __future__ import annotations

from typing import Final

from iact.core.errors import IactError, JournalCorrupt
from iact.core.records.record import Record

STUMBLES: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""What a rule raises over an impossible record. In a live session, where we wrote the record, that is our bug."""


def damaged(record: Record, error: Exception) -> JournalCorrupt:
    """Describe what is wrong with a record over which a rule failed."""
    known = isinstance(error, IactError)
    what = str(error).rstrip(".") if known else f"what it says can't be ({type(error).__name__})"
    return JournalCorrupt(f"Record {record.n} ({record.kind}) is damaged: {what}.", n=record.n, offset=None)
