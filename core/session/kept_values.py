"""The values beside a journal, of which one may be lost: a disk, a copy or a person can take a file away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from iact.core.errors import JournalError
from iact.core.records.calls import Result
from iact.core.records.dialogue import Upload
from iact.core.records.record import Record
from iact.core.records.session import Notice

CODE: Final = "lost"
"""The code of the notice about lost values."""

_NAMED: Final = 5
"""How many lost values a notice names."""


class KeptValues:
    """Reads the values of one session by their SHA-256. In the place of a lost value, it gives a sentence that says so.

    `read`: gives a value, or raises `JournalError`. `lost`: why, for each value that was read and is lost.
    """

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self.lost: Final[dict[str, str]] = {}

    def look_for(self, records: Iterable[Record], directory: Path) -> None:
        """Find the values of these records that have no file in a session's `directory`. Blocks."""
        for record in records:
            content = record.content
            blob = content.blob if isinstance(content, Result | Upload) else None
            if blob is not None and not (directory / "blobs" / blob.sha256).exists():
                self(blob.sha256)

    def __call__(self, digest: str) -> bytes:
        try:
            return self._read(digest)
        except JournalError as error:
            self.lost[digest] = str(error)
            return f"[This value is lost: {error} Get it again from where it came from.]".encode()


def notice_of(lost: Iterable[str], records: Iterable[Record]) -> str:
    """What people are told about lost values, if `records` don't say so already; empty if there is nothing to tell."""
    reasons = sorted(lost)
    if not reasons:
        return ""

    named = " ".join(reasons[:_NAMED])
    more = f" And {len(reasons) - _NAMED} more." if len(reasons) > _NAMED else ""
    text = (
        f"Values of this session are lost, and agents read in their place that they are. {named}{more} Put the files "
        "back from a backup (iact backup), or go on without them."
    )
    told = any(isinstance(record.content, Notice) and record.body == text for record in records)
    return "" if told else text
