"""The error for a record that is not what the core would have written."""

from __future__ import annotations

from iact.core.errors import ReplayMismatch
from iact.core.records.record import Record


def mismatch(record: Record, what: str) -> ReplayMismatch:
    """Return the error that names a record. `what`: the end of the sentence "it …"."""
    return ReplayMismatch(f"Record {record.n} ({record.kind}) differs: it {what}.", n=record.n)
