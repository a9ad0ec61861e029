"""What is said of a record over which a rule stumbles.

A record's fields are what they should be when it is read. A journal may come from anywhere, though, and say what can't
be all the same; whoever reads it hears of the record, and not of a line of our program.
"""

from __future__ import annotations

from typing import Final

from iact.core.errors import IactError, JournalCorrupt
from iact.core.records.record import Record

STUMBLES: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""What a rule raises over a record that is not as such records are. Live, where we wrote it, that is our bug."""


def damaged(record: Record, error: Exception) -> JournalCorrupt:
    """What is wrong with a record over which a rule stumbled."""
    known = isinstance(error, IactError)
    what = str(error).rstrip(".") if known else f"what it says can't be ({type(error).__name__})"
    return JournalCorrupt(f"Record {record.n} ({record.kind}) is damaged: {what}.", n=record.n, offset=None)
