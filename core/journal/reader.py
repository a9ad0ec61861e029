"""Reads a journal as a stream, from its start or from an earlier position: in bounded memory, and while it grows.

Nothing is locked: a journal only grows after its last whole record, so everything up to there is final. Bytes after it
are read again next time, because they may be a torn tail that the next writer cuts off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from iact.core.errors import JournalError
from iact.core.journal.file import FILE, check_format, open_journal
from iact.core.journal.parser import Parser
from iact.core.journal.seal import Sealer, Seals
from iact.core.records.record import GENESIS, Record

_CHUNK: Final = 1 << 20


class Reader:
    """A position in the journal at `path`, its file or its session's directory; at first before record 1."""

    def __init__(self, path: Path, sealer: Sealer | None = None) -> None:
        self.file: Final = path / FILE if path.is_dir() else path
        self._sealer = sealer
        self.seals = Seals()
        """The seals of the `sealer` on the records of the last `read`."""
        self.offset = 0
        """The byte after the last record returned."""
        self.pending = 0
        """How many bytes followed it."""
        self.last = 0
        """The number of that record."""
        self.digest = GENESIS
        """The digest of that record."""

    def read(self) -> Iterator[Record]:
        """Yield every whole record after this position. The position moves along with the records taken.

        Raises:
            JournalCorrupt: a record is invalid.
            JournalTooNew: written by a newer major version.
            JournalError: there is no such file, or it can't be read.
        """
        parser = Parser(n=self.last, prev=self.digest, sealer=self._sealer)
        self.seals = parser.seals
        parser.offset = self.offset

        try:
            with open_journal(self.file) as stream:
                stream.seek(self.offset)
                while chunk := stream.read(_CHUNK):
                    for record in parser.feed(chunk):
                        self._pass(record, parser.offset)
                        yield record
        except OSError as error:
            raise JournalError(f"The journal {self.file} can't be read: {error.strerror}.") from error

        self.pending = parser.pending

    def _pass(self, record: Record, offset: int) -> None:
        """Move past a record, which ends at `offset`."""
        if record.n == 1:
            check_format(record)
        self.last = record.n
        self.digest = record.digest
        self.offset = offset
